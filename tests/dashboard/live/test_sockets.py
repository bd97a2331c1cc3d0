"""The live socket: who may open it, what it sends, where its limits are."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from http.cookies import SimpleCookie

import pytest
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.test import AsyncClient
from django.utils import timezone

from dashboard.access.permissions import SESSION_LIFE_S, SESSION_STARTED
from dashboard.asgi import application
from dashboard.cluster import units
from dashboard.cluster.gateway import Gateway
from dashboard.live import layer, sockets
from dashboard.live.sampler import Sampler
from dashboard.live.tail import topic_tail
from dashboard.models.management import User
from dashboard.status.board import board
from dashboard.status.verdict import judge
from dashboard.status.waiting import waiting
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic
from tests.dashboard.live.socket_client import PatientCommunicator, communicator, connected, frame_of


@pytest.mark.parametrize(
    "origin",
    [
        None, b"http://evil.example", b"http://localhost:9999", b"null", b"http://localhost", b"https://localhost:8080",
        b"http://localhost:8o8o", b"ftp://localhost:8080",
    ],
)  # fmt: skip
async def test_s14_a_foreign_page_can_not_open_it(origin: bytes | None, log_in: Client) -> None:
    is_open, _ = await communicator(await log_in("admin"), origin).connect()
    assert not is_open


@pytest.mark.parametrize(
    ("scheme", "host", "origin", "is_ours"),
    [
        ("wss", b"localhost", b"https://localhost", True), ("wss", b"localhost", b"https://LOCALHOST:443", True),
        ("wss", b"localhost:8443", b"https://localhost:8443", True), ("wss", b"localhost", b"http://localhost", False),
        ("wss", b"localhost", b"https://localhost:80", False), ("ws", b"localhost", b"http://localhost:80", True),
        ("ws", b"localhost:443", b"https://localhost", False), ("ws", b"localhost:x", b"http://localhost", False),
    ],
)  # fmt: skip
def test_scheme_host_and_port_are_those_of_the_page(scheme: str, host: bytes, origin: bytes, is_ours: bool) -> None:
    scope = {"scheme": scheme, "headers": [(b"host", host), (b"origin", origin)]}
    assert sockets.is_same_origin(scope) is is_ours


async def test_a_host_that_is_not_ours_is_refused_even_if_the_origin_agrees(log_in: Client) -> None:
    client = await log_in("admin")
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    headers = [(b"host", b"evil.example"), (b"origin", b"http://evil.example"), (b"cookie", cookies.encode())]
    is_open, _ = await PatientCommunicator(application, "/live", headers=headers).connect()
    assert not is_open


async def test_s14_without_a_session_it_stays_closed(transactional_db: None) -> None:
    is_open, _ = await communicator(None).connect()
    assert not is_open


async def test_it_sends_everything_first_and_then_each_second(log_in: Client, gateway: Gateway) -> None:
    sampler = Sampler(gateway)
    await sampler.sample()
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["overview"]}))
        first = await frame_of(socket, "overview")
        assert first["all"] and len(first["points"]) == 1 and first["sentence"] == judge(board.snapshot).sentence
        text = ""
        while text != "0":  # a rate needs two looks soon after each other, and nothing that came between them
            await sampler.sample()
            later = await frame_of(socket, "overview")
            assert "all" not in later and len(later["points"]) == 1
            text, at, _ = later["figures"]["cluster.in"]
        assert at is not None


async def test_a_process_that_stood_loses_no_tab(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a send is Redis's: in memory all of it would be the standstill's."""
    monkeypatch.setattr(layer, "SEND_LIMIT_S", -1.0)
    sampler = Sampler(gateway)
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["overview"]}))
        await sampler.sample()
        assert (await frame_of(socket, "overview"))["points"] and not layer.state.why


async def test_the_menus_counts_come_when_they_change(log_in: Client, gateway: Gateway) -> None:
    sampler = Sampler(gateway)
    await sampler.sample()
    before = waiting(board)
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["waiting"]}))
        await socket.send_to(json.dumps({"subscribe": ["nothing"]}))
        await socket.receive_from()  # it is refused, so the first is listened to
        board.open_of_rules = 1200
        await sampler.sample()
        frame = await frame_of(socket, "waiting")
        assert frame["counts"] == {"alerts": units.count(before["alerts"] + 1200), "dead-letters": ""}
        await sampler.sample()
        assert await socket.receive_nothing(), "what did not change is not sent each second"


async def test_a_message_that_arrives_is_pushed_as_a_row(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("pushed", messages=[Message("pushed", b"before")])
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["topic:pushed"]}))
        start = await frame_of(socket, "topic:pushed", "rows")
        assert start["all"] and "before" in start["rows"][0]
        await gateway.messages.send(Message("pushed", b"<b>after</b>"))
        await topic_tail.look(gateway, "pushed")
        frame = await frame_of(socket, "topic:pushed", "rows")
        [row] = frame["rows"]
        assert "&lt;b&gt;after&lt;/b&gt;" in row and "before" not in row
        assert frame["figures"]["topic.stored"][0] == "2"


async def test_a_flood_is_sampled_and_counted(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("flood", queues=1)
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["topic:flood"]}))
        await frame_of(socket, "topic:flood")
        for number in range(60):
            await gateway.messages.send(Message("flood", str(number).encode()))
        await topic_tail.look(gateway, "flood")
        frame = await frame_of(socket, "topic:flood", "rows")
        assert len(frame["rows"]) == 25 and frame["more"] == 35
        assert "<code>59</code>" in frame["rows"][0]


async def test_s15_frames_come_at_most_four_a_second(log_in: Client, gateway: Gateway) -> None:
    sampler = Sampler(gateway)
    await sampler.sample()
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["overview"]}))
        await frame_of(socket, "overview")
        began = time.monotonic()
        for _ in range(20):
            await sampler.sample()
        texts, points = 0, 0
        while points < 20:
            text = await socket.receive_from()
            texts += 1
            points += sum(len(frame["points"]) for frame in json.loads(text)["frames"])
        took_s = time.monotonic() - began  # on a busy machine twenty samples alone take more than a second
        assert points == 20
        assert texts <= 1 + took_s / sockets.FRAME_PERIOD_S
        assert await socket.receive_nothing(0.6)


async def test_what_is_not_there_is_refused_by_name(log_in: Client, gateway: Gateway) -> None:
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["secrets"]}))
        assert json.loads(await socket.receive_from()) == {"channel": "secrets", "error": "not allowed"}
        for wrong in ("no json", "[]", '{"subscribe": "overview"}', '{"subscribe": [1]}'):
            await socket.send_to(wrong)
            assert json.loads(await socket.receive_from())["error"] == "not understood"


@pytest.mark.parametrize("flood", ["x" * 5000, None])
async def test_s15_too_much_ends_it(flood: str | None, log_in: Client) -> None:
    socket = communicator(await log_in("reader"))
    await socket.connect()
    if flood:
        await socket.send_to(flood)
    else:
        for _ in range(sockets.TEXTS_IN_TEN_SECONDS_MAX + 1):
            await socket.send_to("{}")
    assert (await socket.receive_output())["code"] == sockets.CLOSE_TOO_MUCH


async def test_s15_one_account_may_open_so_many_sockets(log_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "SOCKETS_OF_ONE_ACCOUNT_MAX", 2)
    client = await log_in("reader")
    async with connected(client), connected(client):
        one_more = communicator(client)
        assert (await one_more.connect())[0], "only so can its page be told why"
        assert (await one_more.receive_output())["code"] == sockets.CLOSE_TOO_MANY_TABS
    async with connected(client) as socket:
        await socket.send_to(json.dumps({"subscribe": ["topic:no such topic"]}))
        assert json.loads(await socket.receive_from())["error"] == "not allowed"


async def log_out(client: AsyncClient) -> None:
    assert (await client.post("/logout")).status_code == 302


async def change_role(client: AsyncClient) -> None:
    await User.objects.filter(role="operator").aupdate(role="reader")


async def close_account(client: AsyncClient) -> None:
    await User.objects.filter(role="operator").aupdate(is_active=False)


async def change_password(client: AsyncClient) -> None:
    await User.objects.filter(role="operator").aupdate(password="argon2$another")


async def reach_the_absolute_age(client: AsyncClient) -> None:
    session = await client.asession()
    await session.aset(SESSION_STARTED, int(time.time()) - SESSION_LIFE_S - 1)
    await session.asave()


async def be_idle_too_long(client: AsyncClient) -> None:
    await Session.objects.aupdate(expire_date=timezone.now() - timedelta(seconds=1))


ENDS = [log_out, change_role, close_account, change_password, reach_the_absolute_age, be_idle_too_long]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_s14_s16_a_socket_does_not_outlive_its_session(
    end: Callable[[AsyncClient], Awaitable[None]], log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14, S16: within seconds (RECHECK_S)."""
    assert sockets.RECHECK_S < 5
    monkeypatch.setattr(sockets, "RECHECK_S", 0.05)
    client = await log_in("operator")
    socket = communicator(client)
    is_open, _ = await socket.connect()
    assert is_open and await socket.receive_nothing(0.3)
    await end(client)
    assert (await socket.receive_output(10))["code"] == sockets.CLOSE_NO_SESSION


@pytest.mark.parametrize("end", [e for e in ENDS if e is not change_role], ids=lambda end: end.__name__)
async def test_s14_an_ended_session_opens_no_socket(
    end: Callable[[AsyncClient], Awaitable[None]], log_in: Client
) -> None:
    client = await log_in("operator")
    kept = dict(client.cookies)
    await end(client)
    client.cookies = SimpleCookie({name: morsel.value for name, morsel in kept.items()})
    is_open, _ = await communicator(client).connect()
    assert not is_open


async def test_a_socket_whose_session_nobody_knows_is_closed(log_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "RECHECK_S", 0.05)
    socket = communicator(await log_in("reader"))
    await socket.connect()

    def fail(session_key: str | None) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(sockets, "account_of_session", fail)
    assert (await socket.receive_output(10))["code"] == sockets.CLOSE_NOT_KNOWN


async def test_nothing_is_watched_after_the_last_socket_left(log_in: Client, make_topic: Topic) -> None:
    await make_topic("left")
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["topic:left"]}))
        await frame_of(socket, "topic:left")
        assert "left" in topic_tail.watched
    assert "left" not in topic_tail.watched
