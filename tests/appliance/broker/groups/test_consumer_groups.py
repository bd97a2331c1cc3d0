"""Who is a member of which consumer group, and who is told of changes."""

from __future__ import annotations

import orjson
import pytest

from appliance.broker.groups.consumer_groups import ConsumerManager
from tests.appliance.broker.members import consumer, join, member
from tests.waiting import Clock


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


def test_a_connection_that_says_another_id_takes_its_place_and_tells_nobody(consumers: ConsumerManager) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1")
    join(consumers, two, "c2")
    consumers.push_notices()
    join(consumers, one, "c3")
    assert consumers.push_notices() == 0
    assert consumers.groups["g"].client_ids() == ["c3", "c2"]
    assert orjson.loads(consumers.groups["g"].id_list()) == {"consumerIdList": ["c3", "c2"]}
    consumers.connection_closed(one)
    assert consumers.groups["g"].client_ids() == ["c2"]
    assert consumers.group_count(one) == 0


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


def test_a_lost_member_is_told_even_where_the_group_wants_no_notices(consumers: ConsumerManager) -> None:
    one, two, three = member(1), member(2), member(3)
    for number, connection in enumerate((one, two, three)):
        join(consumers, connection, f"c{number}", is_notifying=False)
    consumers.unregister("g", one)
    assert consumers.push_notices() == 0  # a farewell
    consumers.connection_closed(two)
    assert consumers.push_notices() == 1
    assert three.notices() == ["g"]
