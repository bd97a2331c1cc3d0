"""What the dashboard's tests share: a real cluster on the session's loop, accounts of each role, and a logged-in
client.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from django.test import AsyncClient

from dashboard.access.tokens import create_token
from dashboard.audit import outside
from dashboard.cluster.gateway import Gateway, use_gateway
from dashboard.groups.group_cache import group_book
from dashboard.models.management import Role, User
from dashboard.status.board import board
from dashboard.topics.topic_cache import topic_book
from gantrymq.client.admin.client import AdminClient
from gantrymq.message.model import Message
from gantrymq.remoting.signature import Credentials
from tests.harness import ServingCluster, serving
from tests.suite.unit_guard import brokers_beside
from tests.waiting import WITHIN_S

PASSWORD = "a long way from 1234"
Client = Callable[..., Awaitable[AsyncClient]]
Topic = Callable[..., Awaitable[str]]  # the fixture make_topic


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServingCluster]:
    """A name server and a broker, running on the loop that the tests of this folder run on.

    It stands still while other tests run, so the broker is silent for as long as they take.
    """
    with brokers_beside():
        async with serving(tmp_path_factory.mktemp("cluster"), namesrv={"broker_expiry_ms": 3_600_000}) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(cluster: ServingCluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    """The process's gateway, pointed at that cluster, whose broker always answers."""
    async with gateway_to(cluster.namesrv_address, monkeypatch) as instance:
        yield instance


@contextlib.asynccontextmanager
async def gateway_to(
    namesrv: str, monkeypatch: pytest.MonkeyPatch, credentials: Credentials | None = None
) -> AsyncIterator[Gateway]:
    """The process's gateway while the block runs: a patient one."""
    instance = patient_gateway(namesrv, monkeypatch, credentials)
    use_gateway(instance)
    try:
        yield instance
    finally:
        use_gateway(None)
        await instance.close()


def patient_gateway(namesrv: str, monkeypatch: pytest.MonkeyPatch, credentials: Credentials | None = None) -> Gateway:
    """A gateway that waits for each answer: the limits of pages are short, and a test's process may be held up."""
    monkeypatch.setattr("dashboard.cluster.calls.KNOWN_WAIT_S", WITHIN_S)  # or a list may show what was known before
    monkeypatch.setattr("dashboard.cluster.calls.AdminClient", functools.partial(AdminClient, timeout_s=WITHIN_S))
    instance = Gateway(namesrv, credentials=credentials)
    ask = instance.calls.call

    async def patiently(question: Callable[[AdminClient], Awaitable[Any]], timeout_s: float = 0.0) -> Any:
        return await ask(question, max(timeout_s, WITHIN_S))

    monkeypatch.setattr(instance.calls, "call", patiently)
    return instance


@pytest.fixture(autouse=True)
def _unwatched_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each template Django's test client keeps a copy of the context, for all its requests at once: nobody asks."""
    monkeypatch.setattr("django.test.client.store_rendered_templates", lambda *_, **__: None)


@pytest.fixture(autouse=True)
def _no_audit_head() -> Iterator[None]:
    """Each test has tables of its own, and one data folder."""
    yield
    outside.path().unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _empty_board() -> Iterator[None]:
    board.clear()
    group_book.clear()
    topic_book.clear()
    yield
    board.clear()
    group_book.clear()
    topic_book.clear()


@pytest.fixture
def make_user(transactional_db: None) -> Callable[..., User]:
    """Accounts by role; the hash of the one password is made once."""

    def make(role: str = Role.ADMIN, username: str | None = None) -> User:
        user = User(username=username or role, role=role, password=_password_hash())
        user.save()
        return user

    return make


@pytest.fixture
def admin(make_user: Callable[..., User]) -> User:
    """An administrator called admin; the password is PASSWORD."""
    return make_user()


@pytest.fixture
def log_in(make_user: Callable[..., User]) -> Client:
    """`client = await log_in("reader")`: a client with a session of that role."""
    users = {role: make_user(role) for role in (Role.ADMIN, Role.OPERATOR, Role.READER)}

    async def client_of(role: str = Role.ADMIN, **options: Any) -> AsyncClient:
        client = AsyncClient(**options)
        await client.aforce_login(users[Role(role)])
        session = await client.asession()
        await session.aupdate({"started_at": int(time.time()), "touched_at": int(time.time())})
        await session.asave()
        return client

    return client_of


@pytest_asyncio.fixture(loop_scope="session")
async def make_topic(gateway: Gateway) -> Topic:
    """A topic of its own for each test, with messages in it if asked."""

    async def make(name: str, *, queues: int = 4, messages: list[Message] | None = None) -> str:
        await gateway.topics.create(name, queues=queues)
        for message in messages or []:
            await gateway.messages.send(message)
        return name

    return make


@pytest.fixture
def users(make_user: Callable[..., User]) -> dict[str, User]:
    return {role.value: make_user(role) for role in Role}


class ClientAt(AsyncClient):
    """A client at an address of its own."""

    def __init__(self, address: str, **options: Any) -> None:
        super().__init__(**options)
        self._address = address

    def _base_scope(self, **request: Any) -> dict[str, Any]:
        return dict(super()._base_scope(**request)) | {"client": [self._address, 4711]}


class Api:
    """Calls with one token."""

    def __init__(self, secret: str) -> None:
        self._client, self.headers = AsyncClient(), {"authorization": f"Bearer {secret}"}

    async def call(self, method: str, address: str, body: Any = None) -> tuple[int, Any]:
        options: dict[str, Any] = {"headers": self.headers}
        if body is not None:
            options |= {"data": json.dumps(body), "content_type": "application/json"}
        response = await getattr(self._client, method)("/api/v1" + address, **options)
        if response.streaming:  # it may have no end
            response.close()
            return response.status_code, None
        return response.status_code, json.loads(response.content) if response.content else None


async def api_for(user: User, scope: str = "write") -> Api:
    _, secret = await create_token(user, "test", scope, 7)
    return Api(secret)


_known_hash = ""


def _password_hash() -> str:
    global _known_hash
    if not _known_hash:
        from django.contrib.auth.hashers import make_password

        _known_hash = make_password(PASSWORD)
    return _known_hash


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All async tests here share the session's loop, on which the cluster runs."""
    for item in items:
        if "tests/dashboard" in item.path.as_posix() and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
