"""A store folder as a place, read without Spark's session: what is there, what is lost, where a time begins."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from gantrymq.contrib.spark.batch import GantryReader
from gantrymq.contrib.spark.columns import COMMON, ON_DEMAND, schema_of
from gantrymq.contrib.spark.errors import MessagesLost
from gantrymq.contrib.spark.stream import GantryStreamReader
from gantrymq.errors import ConfigError, RecordError
from gantrymq.message.compression import compress_body
from tests.appliance.reports.stores import NOON, Record, unpack_golden
from tests.gantrymq.contrib.spark.stores import FILLER, LOG_FILE_BYTES, put_unit, rows_of, write_store

PLACE = ["topic", "queue_id", "queue_offset"]
SECOND_MS = 1000


def records(count: int, **fields: Any) -> list[Record]:
    """Over two topics and four queues, a second apart."""
    return [
        Record(
            topic="orders" if index % 4 else "mail", queue_id=index % 2, body=b"%d" % index * 20,
            stored_at=NOON + index * SECOND_MS, **fields,
        )
        for index in range(count)
    ]  # fmt: skip


def reader(path: Path, columns: list[str] = PLACE, **options: str) -> GantryReader:
    return GantryReader({"path": str(path)} | options, schema_of(columns))


def offsets(rows: list[dict[str, Any]]) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["queue_id"]), []).append(row["queue_offset"])
    return found


def test_each_message_is_read_once_in_the_order_of_its_queue(tmp_path: Path) -> None:
    write_store(tmp_path, records(400))
    for partitions in ("1", "7", "1000"):
        found = offsets(rows_of(reader(tmp_path, minPartitions=partitions)))
        assert found == {("mail", 0): [*range(100)], ("orders", 0): [*range(100)], ("orders", 1): [*range(200)]}


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "100%20, zwölf"
    write_store(folder, [Record()] * 3)
    assert len(rows_of(reader(folder))) == 3


def test_every_column_says_what_was_stored(tmp_path: Path) -> None:
    properties = {"TAGS": "blue", "KEYS": "k1 k2", "UNIQ_KEY": "AB12", "color": "rot"}
    packed = compress_body(b"x" * 5000, "zlib", 5)
    write_store(tmp_path, [Record(body=packed, sys_flag=1, properties=properties), Record(store_ip="::1")])
    names = [column.name for column in (*COMMON, *ON_DEMAND)]
    first, second = rows_of(reader(tmp_path, names, brokerName="broker-a"))
    assert (first["broker_name"], first["tags"], first["keys"]) == ("broker-a", "blue", ["k1", "k2"])
    assert (first["body"], first["stored_body"], first["body_bytes"]) == (b"x" * 5000, packed, len(packed))
    assert (first["message_id"], dict(first["properties"])) == ("AB12", properties)
    assert (first["flag"], first["reconsume_times"], first["lost_messages"]) == (7, 3, 0)
    assert first["store_timestamp"].timestamp() * 1000 == NOON
    assert first["born_timestamp"].timestamp() * 1000 == NOON - 5
    assert first["offset_message_id"] == "7F00000100007530" + "0" * 16
    assert (second["store_host"], second["tags"], second["keys"]) == ("::1", None, [])
    assert second["message_id"] == second["offset_message_id"]
    assert len(second["offset_message_id"]) == 56


@pytest.mark.parametrize(("name", "count"), [("clean_broker", 8), ("rolled_preblank", 919), ("ipv6_delay", 3)])
def test_a_store_of_apache_rocketmq_shows_what_consumers_see(tmp_path: Path, name: str, count: int) -> None:
    path = unpack_golden(name, tmp_path)
    rows = rows_of(reader(path))
    assert len(rows) == count
    assert not {row["topic"] for row in rows} & {"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"}
    everything = rows_of(reader(path, includeInternal="true"))
    assert len(everything) == {"clean_broker": 18, "rolled_preblank": 919, "ipv6_delay": 4}[name]


def test_a_time_begins_and_ends_a_query_at_the_message(tmp_path: Path) -> None:
    write_store(tmp_path, records(400))
    moment = str(NOON + 123 * SECOND_MS)
    assert len(rows_of(reader(tmp_path, startingTimestamp=moment))) == 400 - 123
    assert len(rows_of(reader(tmp_path, endingTimestamp=moment))) == 123
    assert len(rows_of(reader(tmp_path, startingTimestamp=str(NOON + 10_000_000)))) == 0


def test_offsets_begin_and_end_a_query(tmp_path: Path) -> None:
    write_store(tmp_path, records(40))
    found = rows_of(
        reader(
            tmp_path,
            subscribe="orders",
            startingOffsets='{"orders": {"0": 4, "1": -2}}',
            endingOffsets='{"orders": {"0": -1, "1": 3}}',
        )
    )
    assert offsets(found) == {("orders", 0): [4, 5, 6, 7, 8, 9], ("orders", 1): [0, 1, 2]}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "ordres"}, "has no topic ordres; it has mail, orders"),
        ({"subscribe": "orders", "startingOffsets": '{"orders": {"0": 4}}'}, "says nothing of topic orders, queue 1"),
        ({"subscribe": "orders", "startingOffsets": '{"orders": {"0": 4, "9": 1}}'}, "there is no such queue"),
        ({"subscribe": "mail", "endingOffsets": '{"mail": {"0": 99}}'}, "99 is not one of 0 to 10"),
        ({"startingOffsets": "latest"}, "a batch would be empty"),
    ],
)
def test_what_can_not_be_read_is_told(tmp_path: Path, options: dict[str, str], told: str) -> None:
    write_store(tmp_path, records(40))
    with pytest.raises(ConfigError, match=told):
        rows_of(reader(tmp_path, **options))


# -- what is lost -----------------------------------------------------------------------------------------------------


def first_log_file(path: Path) -> Path:
    return min((path / "commitlog").iterdir())


def damage(path: Path, *places: int) -> None:
    log = first_log_file(path)
    data = bytearray(log.read_bytes())
    for place in places:
        data[place] ^= 1
    log.write_bytes(data)


def test_what_is_deleted_between_plan_and_task_is_an_error_that_names_it(tmp_path: Path) -> None:
    write_store(tmp_path, records(400))
    planned = reader(tmp_path)
    parts = planned.partitions()
    first_log_file(tmp_path).unlink()
    with pytest.raises(MessagesLost, match=r"topic mail, queue 0: offsets 0 to \d+ \(\d+ messages\)"):
        for part in parts:
            list(planned.read(part))


def test_a_query_that_goes_on_tells_the_exact_gap(tmp_path: Path) -> None:
    places = write_store(tmp_path, records(400))
    planned = reader(tmp_path, [*PLACE, "lost_messages", "body"], failOnDataLoss="false", minPartitions="3")
    parts = planned.partitions()
    first_log_file(tmp_path).unlink()
    rows = [row for part in parts for batch in planned.read(part) for row in batch.to_pylist()]
    lost = sum(place < LOG_FILE_BYTES for place in places[:-1])
    assert lost > 50
    assert sum(row["lost_messages"] for row in rows) == lost
    assert sum(row["lost_messages"] == 0 for row in rows) == 400 - lost
    for (topic, queue_id), there in offsets([row for row in rows if not row["lost_messages"]]).items():
        gaps = [row for row in rows if row["lost_messages"] and (row["topic"], row["queue_id"]) == (topic, queue_id)]
        assert min(row["queue_offset"] for row in gaps) == 0
        assert sum(row["lost_messages"] for row in gaps) == there[0]


def test_a_queue_that_is_deleted_with_its_topic_is_lost(tmp_path: Path) -> None:
    write_store(tmp_path, records(40))
    planned = reader(tmp_path, [*PLACE, "lost_messages"], failOnDataLoss="false")
    parts = planned.partitions()
    shutil.rmtree(tmp_path / "consumequeue" / "mail")
    rows = [row for part in parts for batch in planned.read(part) for row in batch.to_pylist()]
    assert [row for row in rows if row["lost_messages"]] == [
        {"topic": "mail", "queue_id": 0, "queue_offset": 0, "lost_messages": 10}
    ]


def test_a_queue_begins_behind_its_fillers_and_one_in_the_middle_is_a_gap(tmp_path: Path) -> None:
    write_store(tmp_path, [Record()] * 30, first=20)
    assert offsets(rows_of(reader(tmp_path))) == {("orders", 0): [*range(20, 50)]}
    put_unit(tmp_path, "orders", 0, 33, FILLER)
    rows = rows_of(reader(tmp_path, [*PLACE, "lost_messages"], failOnDataLoss="false"))
    assert [(row["queue_offset"], row["lost_messages"]) for row in rows if row["lost_messages"]] == [(33, 1)]


def test_a_torn_tail_is_not_read(tmp_path: Path) -> None:
    *places, _ = write_store(tmp_path, records(20))
    damage(tmp_path, places[-1] + 90)  # in the last body
    assert len(rows_of(reader(tmp_path))) == 19


def test_a_unit_that_names_a_place_without_a_message_costs_that_message_alone(tmp_path: Path) -> None:
    write_store(tmp_path, [Record()] * 30)
    put_unit(tmp_path, "orders", 0, 11, struct.pack(">qiq", 1 << 40, 130, 0))
    put_unit(tmp_path, "orders", 0, 12, bytes(20))
    rows = rows_of(reader(tmp_path, [*PLACE, "physical_offset", "lost_messages"], failOnDataLoss="false"))
    gaps = [(row["queue_offset"], row["physical_offset"]) for row in rows if row["lost_messages"]]
    assert sorted(gaps) == [(11, 1 << 40), (12, None)]
    assert len(rows) == 30


def test_a_time_is_found_beside_damage(tmp_path: Path) -> None:
    places = write_store(tmp_path, records(400))
    damaged = sum(place < LOG_FILE_BYTES for place in places[:-1])
    damage(tmp_path, *(place + 5 for place in places[:damaged]))  # the magic: the search looks at some of these
    moment = str(NOON + 30 * SECOND_MS)
    rows = rows_of(reader(tmp_path, [*PLACE, "lost_messages"], startingTimestamp=moment, failOnDataLoss="false"))
    assert damaged > 60
    assert sum(not row["lost_messages"] for row in rows) == 400 - damaged
    later = reader(tmp_path, startingTimestamp=str(NOON + (damaged + 7) * SECOND_MS))
    assert len(rows_of(later)) == 400 - damaged - 7


def test_damage_in_the_middle_is_an_error_that_names_the_message(tmp_path: Path) -> None:
    places = write_store(tmp_path, records(20))
    damage(tmp_path, places[2] + 20)  # its queue offset
    with pytest.raises(MessagesLost, match=f"damaged .*: topic orders, queue 0: offsets 0 to 0 .*place {places[2]} of"):
        rows_of(reader(tmp_path))


def test_a_body_that_can_not_be_unpacked_is_an_error_only_where_bodies_are_wanted(tmp_path: Path) -> None:
    write_store(tmp_path, [Record(body=b"no zlib", sys_flag=1)])
    assert len(rows_of(reader(tmp_path))) == 1
    with pytest.raises(RecordError, match="can't be unpacked"):
        rows_of(reader(tmp_path, ["body"]))


# -- streams ----------------------------------------------------------------------------------------------------------


def stream(path: Path, **options: str) -> GantryStreamReader:
    return GantryStreamReader({"path": str(path)} | options, schema_of([*PLACE, "lost_messages"]))


def stream_rows(made: GantryStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for part in made.partitions(start, end) for batch in made.read(part) for row in batch.to_pylist()]


def test_a_stream_begins_with_what_comes_and_finds_new_queues(tmp_path: Path) -> None:
    write_store(tmp_path, records(40)[:20])
    made = stream(tmp_path)
    start = made.initialOffset()
    assert start == {"mail": {"0": 5}, "orders": {"0": 5, "1": 10}}
    assert made.latestOffset(start, ReadAllAvailable()) == start
    shutil.rmtree(tmp_path / "consumequeue")
    shutil.rmtree(tmp_path / "commitlog")
    write_store(tmp_path, [*records(40), Record(topic="news")])
    end = made.latestOffset(start, ReadAllAvailable())
    assert end == {"mail": {"0": 10}, "news": {"0": 1}, "orders": {"0": 10, "1": 20}}
    found = offsets(stream_rows(made, start, end))
    assert found == {
        ("mail", 0): [*range(5, 10)],
        ("news", 0): [0],
        ("orders", 0): [*range(5, 10)],
        ("orders", 1): [*range(10, 20)],
    }


def test_a_micro_batch_takes_no_more_than_it_may(tmp_path: Path) -> None:
    write_store(tmp_path, records(400))
    made = stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="150")
    assert made.getDefaultReadLimit() == ReadMaxRows(150)
    made.prepareForTriggerAvailableNow()
    at, sizes, found = made.initialOffset(), [], []
    while (end := made.latestOffset(at, ReadMaxRows(150))) != at:
        rows = stream_rows(made, at, end)
        sizes.append(len(rows))
        found += rows
        at = end
    assert sizes == [150, 150, 100]
    assert offsets(found) == {("mail", 0): [*range(100)], ("orders", 0): [*range(100)], ("orders", 1): [*range(200)]}


def test_a_stream_behind_retention_stops_or_tells_the_gap(tmp_path: Path) -> None:
    write_store(tmp_path, records(400))
    start = stream(tmp_path, startingOffsets="earliest").initialOffset()
    first_log_file(tmp_path).unlink()
    strict = stream(tmp_path)
    end = strict.latestOffset(start, ReadAllAvailable())
    with pytest.raises(MessagesLost, match="topic mail, queue 0: offsets 0 to"):
        strict.partitions(start, end)
    rows = stream_rows(stream(tmp_path, failOnDataLoss="false"), start, end)
    assert sum(row["lost_messages"] or 1 for row in rows) == 400


def test_a_topic_that_was_made_anew_stops_a_stream_or_begins_again(tmp_path: Path) -> None:
    write_store(tmp_path, [Record()] * 3)
    with pytest.raises(MessagesLost, match="read up to 50, but it ends at 3 now"):
        stream(tmp_path).latestOffset({"orders": {"0": 50}}, ReadAllAvailable())
    end = stream(tmp_path, failOnDataLoss="false").latestOffset({"orders": {"0": 50}}, ReadMaxRows(10))
    assert end == {"orders": {"0": 0}}


def test_a_topic_that_is_deleted_after_it_was_read_stops_no_stream(tmp_path: Path) -> None:
    write_store(tmp_path, records(40))
    made = stream(tmp_path)
    start = made.initialOffset()
    shutil.rmtree(tmp_path / "consumequeue" / "mail")
    assert made.latestOffset(start, ReadAllAvailable()) == start
    assert made.partitions(start, start) == []
