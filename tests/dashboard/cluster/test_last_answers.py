"""A broker that has just fallen silent: lists show what it told last, at once, and say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from dashboard.clients.listing import ClientBook
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import PartialFailure
from gantrymq.client.admin.calls import AdminCalls
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.command import RemotingCommand
from tests.dashboard.conftest import Topic
from tests.harness import ServingCluster
from tests.waiting import until


class Silence:
    """Holds back what one broker answers, from `begin` to `end`."""

    def __init__(self, broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._over = asyncio.Event()
        self._over.set()
        call = AdminCalls.call

        async def held(calls: AdminCalls, address: str, *args: Any, **keywords: Any) -> RemotingCommand:
            if address == broker:
                await self._over.wait()
            return await call(calls, address, *args, **keywords)

        monkeypatch.setattr(AdminCalls, "call", held)

    def begin(self) -> None:
        self._over.clear()

    def end(self) -> None:
        self._over.set()


@pytest_asyncio.fixture(loop_scope="session")
async def silence(gateway: Gateway, cluster: ServingCluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Silence]:
    """The gateway's calls last as long as it does: what returns before its end did not wait for it."""
    monkeypatch.setattr("dashboard.cluster.calls.KNOWN_WAIT_S", 0.01)
    made = Silence(cluster.broker_address, monkeypatch)
    yield made
    made.end()


def assert_tells_age(failures: tuple[PartialFailure, ...]) -> None:
    [failure] = failures
    assert failure.what == "broker-a"
    assert failure.reason.startswith("no answer in time; showing its last answer, from ")


async def test_topics_are_listed_while_a_broker_does_not_answer(
    gateway: Gateway, make_topic: Topic, cluster: ServingCluster, silence: Silence
) -> None:
    name = await make_topic("silent-topic", messages=[Message("silent-topic", b"x")])
    [row] = await gateway.topics.with_metrics([r for r in (await gateway.topics.list()).rows if r.name == name])
    silence.begin()
    listing = await gateway.topics.list()
    assert name in {row.name for row in listing.rows} and gateway.calls.is_late(cluster.broker_address)
    assert_tells_age(listing.failures)
    [same] = await gateway.topics.with_metrics([row], max_age_s=0.0)
    assert row.metrics is not None and same.metrics is not None
    assert (same.metrics.value, same.metrics.why) == (row.metrics.value, "no answer in time")
    silence.end()
    await until(lambda: not gateway.calls.is_late(cluster.broker_address))
    await gateway.topics.delete(name)
    listing = await gateway.topics.list()
    assert name not in {row.name for row in listing.rows} and not listing.failures


async def test_groups_and_clients_are_listed_while_a_broker_does_not_answer(
    gateway: Gateway, cluster: ServingCluster, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.clients.listing.SHARED_S", 0)
    admin, clients = await gateway.calls.admin(), ClientBook()
    await admin.groups.create_at(cluster.broker_address, SubscriptionGroupConfig(group_name="g-silent"))
    await gateway.groups.settings()
    seen = (await clients.listing(gateway)).clients
    silence.begin()
    settings, failures = await gateway.groups.settings()
    assert "g-silent" in settings
    assert_tells_age(tuple(failures))
    listing = await clients.listing(gateway)
    assert listing.clients == seen and seen
    assert_tells_age(listing.failures)


async def test_newer_than_the_last_answer_is_awaited(
    gateway: Gateway, cluster: ServingCluster, silence: Silence
) -> None:
    await gateway.topics.list()
    admin = await gateway.calls.admin()  # as another program: nothing here is told of it
    await admin.topics.create_at(cluster.broker_address, TopicConfig(topic_name="silent-new", read_queue_nums=1))
    silence.begin()
    found = asyncio.create_task(gateway.topics.get("silent-new"))
    await until(lambda: gateway.calls.is_late(cluster.broker_address))
    silence.end()
    assert (await found).name == "silent-new"


async def test_after_a_change_the_next_list_waits_for_it(gateway: Gateway, make_topic: Topic, silence: Silence) -> None:
    await make_topic("silent-before")
    await gateway.topics.list()
    silence.begin()
    gateway.topics.forget_listing()
    listing = asyncio.create_task(gateway.topics.list())
    done, _ = await asyncio.wait({listing}, timeout=0.1)
    assert not done
    silence.end()
    assert not (await listing).failures


async def test_a_topic_and_a_group_are_shown_whole_while_their_broker_does_not_answer(
    gateway: Gateway, make_topic: Topic, cluster: ServingCluster, silence: Silence
) -> None:
    name = await make_topic("silent-detail", messages=[Message("silent-detail", b"x")])
    admin = await gateway.calls.admin()
    await admin.groups.create_at(cluster.broker_address, SubscriptionGroupConfig(group_name="g-silent-detail"))
    await admin.offsets.set_at(cluster.broker_address, "g-silent-detail", name, 0, 0)
    topic, group = await gateway.topics.get(name), await gateway.groups.get("g-silent-detail")
    assert topic.queues and group.queues and not topic.failures and not group.failures
    silence.begin()
    topic_then, group_then = await gateway.topics.get(name), await gateway.groups.get("g-silent-detail")
    assert topic_then.queues == topic.queues and group_then.queues == group.queues
    assert topic_then.read_at == topic.read_at and group_then.at == group.at, "no older answer is given a new moment"
    assert_tells_age(topic_then.failures)
    assert_tells_age(group_then.failures)


async def test_a_topic_never_looked_at_does_not_wait_long_for_a_broker_that_owes_another_answer(
    gateway: Gateway, make_topic: Topic, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.cluster.calls.SILENT_TIMEOUT_S", 0.01)
    name = await make_topic("silent-unseen")
    await gateway.topics.list()
    silence.begin()
    topic = await gateway.topics.get(name)
    assert not topic.queues and [failure.what for failure in topic.failures] == ["broker-a"]
