"""Consumer filters: who has which condition, for how long, and the file that is RocketMQ's."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.filters import consumer_filter
from appliance.broker.filters.bloom import BloomFilter
from appliance.broker.filters.consumer_filter import ConsumerFilter, ConsumerFilterManager
from appliance.process.json_file import StateFileError
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import BodyError
from gantrymq.message.properties import encode_properties
from gantrymq.remoting.bodies import SubscriptionData
from store.queues.consume_queue_ext import ExtUnit
from tests.waiting import Clock

GOLDEN = Path(__file__).parents[1] / "golden_config" / "consumerFilter.json"
DAY_S = 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock()


def manager(folder: Path, clock: Clock, **settings: Any) -> ConsumerFilterManager:
    filters = ConsumerFilterManager(folder / "consumerFilter.json", BrokerConfig(**settings), clock=clock)
    filters.load()
    return filters


@pytest.fixture
def filters(tmp_path: Path, clock: Clock) -> ConsumerFilterManager:
    return manager(tmp_path, clock)


def sql(text: str, version: int = 1, topic: str = "T") -> SubscriptionData:
    return SubscriptionData(topic, text, sub_version=version, expression_type="SQL92")


def known(filters: ConsumerFilterManager, topic: str = "T", group: str = "g") -> ConsumerFilter:
    found = filters.get(topic, group)
    assert found is not None
    return found


# -- groups come and go -----------------------------------------------------------------------------------------------


def test_a_heartbeat_brings_conditions_and_tags_are_none(filters: ConsumerFilterManager) -> None:
    filters.register("g", [sql("a = 1"), SubscriptionData("U", "x || y"), sql("", topic="V")])
    assert known(filters).condition.text == "a = 1"
    assert (filters.get("U", "g"), filters.get("V", "g"), len(filters)) == (None, None, 1)


def test_a_newer_version_replaces_an_older_does_not(filters: ConsumerFilterManager, clock: Clock) -> None:
    filters.register("g", [sql("a = 1", 5)])
    born = known(filters).born_ms
    clock.now += 10
    filters.register("g", [sql("a = 2", 4)])
    filters.register("g", [sql("a = 3", 5)])
    assert known(filters).condition.text == "a = 1"
    filters.register("g", [sql("a = 1", 6)])  # the same condition: its bits stay true
    assert (known(filters).client_version, known(filters).born_ms) == (6, born)
    filters.register("g", [sql("a = 2", 7)])
    assert (known(filters).condition.text, known(filters).born_ms) == ("a = 2", born + 10_000)


def test_a_text_that_is_no_condition_takes_the_old_one_away(filters: ConsumerFilterManager) -> None:
    filters.register("g", [sql("a = 1", 1)])
    filters.register("g", [sql("a =", 2)])
    assert filters.get("T", "g") is None
    filters.register("g", [sql("a = 1", 3)])
    assert known(filters).client_version == 3


def test_what_is_not_subscribed_any_more_dies_and_can_come_back(filters: ConsumerFilterManager) -> None:
    filters.register("g", [sql("a = 1"), sql("b = 1", topic="U")])
    filters.register("h", [sql("a = 1")])
    filters.register("g", [sql("b = 1", topic="U")])
    assert (known(filters).is_dead, known(filters, "U").is_dead, known(filters, "T", "h").is_dead) == (1, 0, 0)
    filters.unregister("g")
    assert known(filters, "U").is_dead
    filters.register("g", [sql("a = 1"), sql("b = 1", topic="U")])
    assert not known(filters).is_dead
    assert not known(filters, "U").is_dead


def test_the_long_dead_are_dropped(filters: ConsumerFilterManager, clock: Clock) -> None:
    filters.register("g", [sql("a = 1")])
    filters.register("h", [sql("a = 1")])
    filters.unregister("g")
    clock.now += DAY_S - 1
    filters.clean()
    assert len(filters) == 2
    clock.now += 1
    filters.clean()
    assert (filters.get("T", "g"), len(filters)) == (None, 1)


def test_the_table_is_bounded_and_the_dead_make_room(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_filter, "FILTERS_MAX", 3)
    filters = manager(tmp_path, clock)
    for group in "abcd":
        filters.register(group, [sql("a = 1")])
    assert (filters.get("T", "d"), len(filters)) == (None, 3)
    filters.unregister("b")
    filters.register("d", [sql("a = 1")])
    assert filters.get("T", "b") is None
    assert not known(filters, "T", "d").is_dead


@pytest.mark.parametrize("bad", [sql("a = '\ud800'"), sql("a = 1", topic="a/../b"), sql("a = 1", topic="x" * 500)])
def test_what_could_not_stand_in_the_file_is_not_taken(
    filters: ConsumerFilterManager, tmp_path: Path, clock: Clock, bad: SubscriptionData
) -> None:
    filters.register("g", [bad, sql("a = 1")])
    assert len(filters) == 1
    filters.persist()
    assert len(manager(tmp_path, clock)) == 1


@pytest.mark.parametrize(
    "change", [{"subString": [5]}, {"topic": [1]}, {"expressionType": {}}, {"subVersion": 1 << 63}]
)
def test_a_subscription_of_other_types_is_no_subscription(change: dict[str, Any]) -> None:
    with pytest.raises(BodyError):
        SubscriptionData.from_dict(sql("a = 1").to_dict() | change)


# -- bits -------------------------------------------------------------------------------------------------------------


def test_a_message_gets_the_bits_of_the_groups_that_want_it(filters: ConsumerFilterManager) -> None:
    assert filters.bitmap_of("TopicTest", b"") == b""
    filters.register("CG_SQL", [sql("color = 'red'", topic="TopicTest")])
    filters.register("other", [sql("color = 'blue'", topic="TopicTest")])
    filters.unregister("CG_SQL")  # the dead get their bits too: they will be back
    red = filters.bitmap_of("TopicTest", encode_properties({"color": "red"}).encode())
    assert [bit for bit in range(112) if red[bit // 8] >> bit % 8 & 1] == [22, 50, 91]
    assert filters.bitmap_of("TopicTest", encode_properties({"color": "green"}).encode()) == bytes(14)


@pytest.mark.parametrize(
    ("changes", "may_match"),
    [
        ({}, False),
        ({"bitmap": b""}, True),  # stored while bits were not made
        ({"bitmap": bytes(13)}, True),  # of a filter of another size
        ({"store_timestamp": 1_800_000_000_000}, True),  # from the moment the condition came, or before
        ({"bitmap": b"\xff" * 14}, True),
    ],
)
def test_bits_say_no_only_when_they_can_know(
    filters: ConsumerFilterManager, changes: dict[str, Any], may_match: bool
) -> None:
    filters.register("g", [sql("a = 1")])
    unit = ExtUnit(34, 0, 1_800_000_000_001, bytes(14))._replace(**changes)
    assert known(filters).content_filter.may_match(unit) is may_match


# -- the file ---------------------------------------------------------------------------------------------------------


def test_a_real_brokers_file_is_read_and_written_as_it_was(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "consumerFilter.json"
    path.write_bytes(GOLDEN.read_bytes())
    clock.now = 1_795_228_300.0
    filters = manager(tmp_path, clock)
    found = known(filters, "TopicTest", "CG_SQL")
    assert found.positions == (22, 91, 50)
    assert found.condition.is_met({"color": "red", "TAGS": "x"})
    filters.register("CG_SQL", [sql("color = 'red' AND TAGS is not null", 1_795_228_189_111, "TopicTest")])
    assert not found.is_dead
    filters.persist()
    written, original = json.loads(path.read_bytes()), json.loads(GOLDEN.read_bytes())
    entry = original["filterDataByTopic"]["TopicTest"]["groupFilterData"]["CG_SQL"]
    assert entry.keys() == written["filterDataByTopic"]["TopicTest"]["groupFilterData"]["CG_SQL"].keys()
    entry |= {"dead": False, "deadTime": 0}
    assert written == original


def test_after_a_start_all_are_dead_until_they_say_hello(
    filters: ConsumerFilterManager, tmp_path: Path, clock: Clock
) -> None:
    filters.register("g", [sql("a = 1")])
    filters.persist()
    clock.now += 3600
    restarted = manager(tmp_path, clock)
    assert known(restarted).dead_ms == int((clock.now - 30) * 1000)
    assert known(restarted).born_ms == known(filters).born_ms


def test_bits_of_another_size_void_the_whole_file(
    filters: ConsumerFilterManager, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters.register("g", [sql("a = 1")])
    filters.persist()
    assert len(manager(tmp_path, clock)) == 1
    monkeypatch.setattr(consumer_filter, "BloomFilter", functools.partial(BloomFilter, expected=64))
    assert len(manager(tmp_path, clock)) == 0


def test_an_entry_that_rocketmq_took_and_we_do_not_is_left_out(tmp_path: Path, clock: Clock) -> None:
    text = GOLDEN.read_text().replace("color = 'red'", "color LIKE 'red'")
    (tmp_path / "consumerFilter.json").write_text(text)
    assert len(manager(tmp_path, clock)) == 0


@pytest.mark.parametrize(
    "text", ['{"filterDataByTopic":[1]}', '{"filterDataByTopic":{"T":{"groupFilterData":{"g":5}}}}']
)
def test_another_document_stops_the_start(tmp_path: Path, clock: Clock, text: str) -> None:
    (tmp_path / "consumerFilter.json").write_text(text)
    with pytest.raises(StateFileError, match="consumer filters"):
        manager(tmp_path, clock)
