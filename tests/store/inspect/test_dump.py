"""Rows of a store: by offset, by queue, by key; units, index entries, checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.inspect.dump import Selection, dump_checkpoint, dump_index, dump_records, dump_units
from store.inspect.folder import StoreFolder
from tests.store.golden import commit_log_records, unpack


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[StoreFolder]:
    with StoreFolder(unpack("clean_broker", tmp_path).root) as folder:
        yield folder


def test_all_records_come_in_order(apache: StoreFolder) -> None:
    offsets = [row["physicalOffset"] for row in dump_records(apache, Selection())]
    assert offsets == [offset for offset, _raw in commit_log_records(apache.root)]


def test_a_record_shows_what_apache_stored(apache: StoreFolder) -> None:
    row = next(dump_records(apache, Selection(), with_body=True))
    assert (row["topic"], row["queueId"], row["body"], row["storeSize"]) == ("TopicTest", 2, "hello", 224)
    assert row["msgId"] == "7F000001000051AF0000000000000000"
    assert row["properties"]["KEYS"] == "k1 k2"
    assert row["bodyIntact"]


@pytest.mark.parametrize(("begin", "end", "expected"), [(224, 500, [224, 453]), (225, 500, [453]), (None, 1, [0])])
def test_a_range_of_offsets_may_begin_inside_a_record(
    apache: StoreFolder, begin: int | None, end: int, expected: list[int]
) -> None:
    assert [row["physicalOffset"] for row in dump_records(apache, Selection(begin, end))] == expected


def test_records_of_a_queue_come_by_its_units(apache: StoreFolder) -> None:
    selection = Selection(topic="TopicTest", queue_id=3)
    rows = list(dump_records(apache, selection))
    assert [row["queueOffset"] for row in rows] == list(range(len(rows)))
    units = list(dump_units(apache, selection))
    assert [row["physicalOffset"] for row in units] == [row["physicalOffset"] for row in rows]
    assert units[0] == {
        "topic": "TopicTest", "queueId": 3, "queueOffset": 0, "physicalOffset": 224, "size": 229, "tagsCode": 2598920,
    }  # fmt: skip


@pytest.mark.parametrize(("topic", "expected"), [("TopicTest", [0]), (None, [0, 2806, 4180])])
def test_a_key_is_found_by_index_and_without(apache: StoreFolder, topic: str | None, expected: list[int]) -> None:
    """Without a topic the log is read, and the copies in the schedule and retry topics have the key too."""
    rows = list(dump_records(apache, Selection(topic=topic, key="k2")))
    assert [row["physicalOffset"] for row in rows] == expected


def test_index_entries_of_a_key(apache: StoreFolder) -> None:
    (entry,) = dump_index(apache, Selection(topic="TopicTest", key="k1"))
    assert entry["physicalOffset"] == 0
    assert len(list(dump_index(apache, Selection()))) == 30


def test_extension_units_are_shown_with_their_queue_units(tmp_path: Path) -> None:
    with StoreFolder(unpack("cq_ext", tmp_path).root) as folder:
        row = next(dump_units(folder, Selection()))
    assert row["extension"]["tagsCode"] == 84


def test_the_checkpoint_comes_with_its_markers(apache: StoreFolder) -> None:
    row = dump_checkpoint(apache)
    assert (row["physicMsgTimestamp"], row["state"], row["abort"]) == (1795228199158, "stopped", False)
