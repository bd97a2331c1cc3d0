"""Pages and REST lists of a large cluster: bytes, requests and queries do not grow with its topics and groups."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from django.db.backends.utils import CursorWrapper

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.topic_requests import READ_FOR_A_LIST_MAX
from dashboard.cluster.values import BrokerRef
from dashboard.groups.group_cache import LOOKS_FOR_A_PAGE, group_book
from dashboard.models.management import Role, User
from dashboard.status.board import board
from dashboard.topics.topic_cache import topic_book
from gantrymq.remoting.admin_bodies import (
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from tests.dashboard.conftest import Client, api_for
from tests.dashboard.status.masters import seen, state
from tests.harness import ServingCluster

FEW, MANY = 500, 5000
BROKERS_FEW, BROKERS_MANY = 5, 50
PAGES = (
    "/", "/topics", "/topics?page=9", "/topics?sort=stored&down=1", "/groups", "/groups?sort=name", "/api/v1/topics",
    "/api/v1/groups",
)  # fmt: skip
OF_BROKERS = ("/", "/brokers", "/api/v1/brokers")
ROWS_OF_REST = 100  # each is read, while a page reads a part of its rows
TABLES = 5  # what a list is made of, and of a group there are two calls
BROKER_BYTES_MAX = 4000  # of a page or list, for one broker
Fill = Callable[[int], Awaitable[None]]
Look = Callable[[], Awaitable[bytes]]


class Cost(NamedTuple):
    size: int
    asked: int  # of brokers and name servers
    queries: int
    steps: int  # functions that were called


class Counter:
    """Counts while it is entered."""

    def __init__(self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = self.queries = self.steps = 0
        call, execute = gateway.calls.call, CursorWrapper.execute

        async def counted_call(*words: Any, **options: Any) -> Any:
            self.asked += 1
            return await call(*words, **options)

        def counted_execute(*words: Any) -> Any:
            self.queries += 1
            return execute(*words)

        monkeypatch.setattr(gateway.calls, "call", counted_call)
        monkeypatch.setattr(CursorWrapper, "execute", counted_execute)

    async def cost_of(self, look: Look) -> Cost:
        self.asked = self.queries = self.steps = 0
        before = sys.getprofile()
        sys.setprofile(self._step)
        try:
            shown = await look()
        finally:
            sys.setprofile(before)
        return Cost(len(shown), self.asked, self.queries, self.steps)

    def _step(self, _frame: object, event: str, _argument: object) -> None:
        self.steps += event == "call"


@pytest_asyncio.fixture(loop_scope="session")
async def fill(cluster: ServingCluster) -> AsyncIterator[Fill]:
    """So many topics and groups in the broker's tables, and those that were there again at the end."""
    topics, groups = cluster.broker.topics, cluster.broker.groups
    had = TopicConfigSerializeWrapper(dict(topics.configs)), SubscriptionGroupWrapper(dict(groups.configs))

    async def made(count: int) -> None:
        names = [f"large-{number:05}" for number in range(count)]
        rows = {name: TopicConfig(topic_name=name, read_queue_nums=4, write_queue_nums=4) for name in names}
        await topics.replace_all(TopicConfigSerializeWrapper(had[0].topic_config_table | rows))
        members = {name: SubscriptionGroupConfig(group_name=name) for name in names}
        await groups.replace_all(SubscriptionGroupWrapper(had[1].subscription_group_table | members))
        topic_book.clear()
        group_book.clear()

    yield made
    await topics.replace_all(had[0])
    await groups.replace_all(had[1])


async def looks_of(log_in: Client, *addresses: str) -> dict[str, Look]:
    client = await log_in(Role.ADMIN)
    api = await api_for(await User.objects.aget(role=Role.ADMIN))

    async def shown(address: str) -> bytes:
        response = await client.get(address, headers=api.headers if address.startswith("/api") else {})
        assert response.status_code == 200, address
        return bytes(response.content)

    return {address: partial(shown, address) for address in addresses}


@pytest.mark.slow
async def test_ten_times_the_topics_and_groups_cost_a_page_no_more_bytes_and_requests(
    log_in: Client, gateway: Gateway, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = await looks_of(log_in, *PAGES)
    counter, costs = Counter(gateway, monkeypatch), []
    for count in (FEW, FEW, MANY):  # what is kept of the first look, as templates, is no part of the comparison
        await fill(count)
        costs.append({name: await counter.cost_of(look) for name, look in looks.items()})
    for name, few in costs[1].items():
        many = costs[2][name]
        assert many.size <= 1.2 * few.size, (name, few, many)
        of_page = max(READ_FOR_A_LIST_MAX, 2 * LOOKS_FOR_A_PAGE)
        assert many.asked <= TABLES + (ROWS_OF_REST if name.startswith("/api") else of_page), (name, many)
        assert many.queries <= few.queries, (name, few, many)
        assert many.steps <= 1.5 * (MANY / FEW) * few.steps, (name, few, many)


async def test_ten_times_the_brokers_are_as_many_rows_and_no_more_requests_and_queries(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers are the sampler's last look: pages ask none of them."""
    looks = await looks_of(log_in, *OF_BROKERS)
    counter, costs = Counter(gateway, monkeypatch), []
    for count in (BROKERS_FEW, BROKERS_FEW, BROKERS_MANY):
        names = [f"broker-{number:03}" for number in range(count)]
        states = [state(BrokerRef(name, f"10.0.0.{at}:10911", "C")) for at, name in enumerate(names)]
        board.snapshot = seen(*states)
        costs.append({address: await counter.cost_of(look) for address, look in looks.items()})
    for address, few in costs[1].items():
        many = costs[2][address]
        assert few.size < many.size <= few.size + BROKER_BYTES_MAX * (BROKERS_MANY - BROKERS_FEW), (address, few, many)
        assert many.asked <= few.asked and many.queries <= few.queries, (address, few, many)
        assert many.steps <= 1.5 * (BROKERS_MANY / BROKERS_FEW) * few.steps, (address, few, many)
