"""Who is a member of which group, and who is told of changes."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from appliance.broker.clients import ClientHousekeeping, ConsumerManager, ProducerManager
from appliance.broker.rebalance_lock import RebalanceLockManager
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import ConsumerData, SubscriptionData
from tests.appliance.broker.recording import RecordingConnection


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def consumers(clock: Clock) -> ConsumerManager:
    return ConsumerManager(clock=clock)


@pytest.fixture
def producers(clock: Clock) -> ProducerManager:
    return ProducerManager(clock=clock)


def member(port: int = 1000) -> Any:
    return RecordingConnection(port)


def consumer(group: str = "g", *topics: str, version: int = 1) -> ConsumerData:
    return ConsumerData(
        group, subscription_data_set=[SubscriptionData(topic, sub_version=version) for topic in topics or ("t",)]
    )


def join(
    consumers: ConsumerManager, connection: Any, client: str, data: ConsumerData | None = None, **more: Any
) -> None:
    consumers.register(data or consumer(), connection, client, "JAVA", 401, **more)


def test_all_members_are_told_of_a_newcomer_the_newcomer_too(consumers: ConsumerManager) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1")
    assert consumers.push_notices() == 1
    join(consumers, two, "c2")
    assert consumers.push_notices() == 2
    assert (one.notices(), two.notices()) == (["g", "g"], ["g"])
    assert consumers.groups["g"].client_ids() == ["c1", "c2"]


def test_a_heartbeat_that_says_nothing_new_tells_nobody(consumers: ConsumerManager) -> None:
    one = member()
    join(consumers, one, "c1")
    consumers.push_notices()
    join(consumers, one, "c1")
    join(consumers, one, "c1", consumer(version=2))
    assert consumers.push_notices() == 0
    subscription = consumers.find_subscription("g", "t")
    assert subscription is not None
    assert subscription.sub_version == 2


def test_an_older_subscription_does_not_replace_a_newer_one(consumers: ConsumerManager) -> None:
    join(consumers, member(1), "c1", consumer(version=5))
    join(consumers, member(2), "c2", consumer(version=4))
    assert consumers.groups["g"].subscriptions["t"].sub_version == 5


@pytest.mark.parametrize("topics", [("t", "u"), ("u",)])
def test_topics_that_come_or_go_are_told(consumers: ConsumerManager, topics: tuple[str, ...]) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1")
    join(consumers, two, "c2")
    consumers.push_notices()
    join(consumers, one, "c1", consumer("g", *topics))
    assert consumers.push_notices() == 2
    assert set(consumers.groups["g"].subscriptions) == set(topics)
    assert consumers.groups_subscribing("u") == {"g"}


def test_the_others_are_told_when_a_connection_closes(consumers: ConsumerManager) -> None:
    one, two = member(1), member(2)
    for group in ("g", "h"):
        join(consumers, one, "c1", consumer(group))
        join(consumers, two, "c2", consumer(group))
    consumers.push_notices()
    one.pushed.clear()
    two.pushed.clear()
    consumers.connection_closed(one)
    assert consumers.push_notices() == 2
    assert sorted(two.notices()) == ["g", "h"]
    assert one.notices() == []
    assert consumers.groups["g"].client_ids() == ["c2"]


def test_a_group_without_members_is_forgotten(consumers: ConsumerManager) -> None:
    one = member()
    join(consumers, one, "c1")
    consumers.unregister("g", one)
    consumers.unregister("g", one)
    assert consumers.get("g") is None
    assert consumers.channels("g") == []
    assert consumers.find_subscription("g", "t") is None
    assert consumers.push_notices() == 0


def test_a_client_with_two_connections_is_listed_once(consumers: ConsumerManager) -> None:
    old, new = member(1), member(2)
    join(consumers, old, "c1")
    join(consumers, new, "c1")
    info = consumers.groups["g"]
    assert info.client_ids() == ["c1"]
    found = info.channel_of("c1")
    assert found is not None
    assert found.connection is new


def test_the_list_of_ids_follows_every_change(consumers: ConsumerManager) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1")
    info = consumers.groups["g"]
    assert orjson.loads(info.id_list()) == {"consumerIdList": ["c1"]}
    join(consumers, two, "c2")
    assert orjson.loads(info.id_list()) == {"consumerIdList": ["c1", "c2"]}
    consumers.connection_closed(one)
    assert orjson.loads(info.id_list()) == {"consumerIdList": ["c2"]}


def test_notices_can_be_switched_off_for_a_group_or_the_broker(consumers: ConsumerManager, clock: Clock) -> None:
    join(consumers, member(), "c1", is_notifying=False)
    assert consumers.push_notices() == 0
    quiet = ConsumerManager(notify_enable=False, clock=clock)
    join(quiet, member(), "c1")
    assert quiet.push_notices() == 0


def test_members_silent_for_two_minutes_are_dropped_and_the_others_told(
    consumers: ConsumerManager, producers: ProducerManager, clock: Clock
) -> None:
    silent, lively = member(1), member(2)
    housekeeping = ClientHousekeeping(producers, consumers, clock=clock)
    for number, connection in enumerate((silent, lively)):
        join(consumers, connection, f"c{number}")
        producers.register("p", connection, f"c{number}", "GO", 317)
    consumers.push_notices()
    clock.now = 100
    join(consumers, lively, "c1")
    producers.register("p", lively, "c1", "GO", 317)
    clock.now = 120
    housekeeping.scan()
    assert (silent.is_closing, lively.is_closing) == (False, False)
    clock.now = 121
    housekeeping.scan()
    assert (silent.is_closing, lively.is_closing) == (True, False)
    assert consumers.groups["g"].client_ids() == ["c1"]
    assert [member.client_id for member in producers.channels("p")] == ["c1"]
    assert consumers.push_notices() == 1


def test_a_producer_is_found_by_group_and_by_client(producers: ProducerManager) -> None:
    one, two = member(1), member(2)
    producers.register("p", one, "c1", "JAVA", 401)
    producers.register("p", two, "c2", "JAVA", 401)
    producers.register("q", one, "c1", "JAVA", 401)
    assert producers.connection_of("c1") == one
    picked = {member.client_id for member in (producers.pick("p"), producers.pick("p")) if member is not None}
    assert picked == {"c1", "c2"}
    two.is_closing = True
    assert all(member is not None and member.client_id == "c1" for member in (producers.pick("p"), producers.pick("p")))
    producers.unregister("p", one)
    assert producers.connection_of("c1") == one, "it still produces for the group q"
    producers.connection_closed(one)
    producers.connection_closed(two)
    assert producers.connection_of("c1") is None
    assert producers.groups == {}
    assert producers.pick("p") is None


def test_a_reconnected_client_stays_known_when_its_old_connection_closes(producers: ProducerManager) -> None:
    old, new = member(1), member(2)
    producers.register("p", old, "c1", "JAVA", 401)
    producers.register("p", new, "c1", "JAVA", 401)
    producers.connection_closed(old)
    assert producers.connection_of("c1") == new


async def test_a_thousand_consumers_starting_together_are_told_a_few_times_each(
    consumers: ConsumerManager, producers: ProducerManager
) -> None:
    housekeeping = asyncio.create_task(ClientHousekeeping(producers, consumers, RebalanceLockManager()).run())
    connections = [member(number) for number in range(1000)]
    for number, connection in enumerate(connections):
        join(consumers, connection, f"c{number}")
        if number % 100 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(5):
        while not connections[-1].pushed:
            await asyncio.sleep(0.01)
    assert max(len(connection.pushed) for connection in connections) <= 3
    housekeeping.cancel()
    await asyncio.gather(housekeeping, return_exceptions=True)


def test_housekeeping_forgets_expired_locks(
    consumers: ConsumerManager, producers: ProducerManager, clock: Clock
) -> None:
    locks = RebalanceLockManager(clock=clock)
    locks.lock("g", "c1", [MessageQueue("t", "b", 0)])
    clock.now = 61
    ClientHousekeeping(producers, consumers, locks, clock=clock).scan()
    assert locks._locks == {}
