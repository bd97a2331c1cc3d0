"""The lake's columns: equal to what the record codec says, field by field, text by text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.appliance.reports.stores import Record, unpack_golden, write_log

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa

from appliance.reports.commit_log_files import CommitLogFiles, read_range
from appliance.reports.lake.record_columns import SCHEMA, record_batches
from gantrymq.contrib.arrow.columns import times
from gantrymq.message.record import decode_record


def read_table(folder: Path, block_bytes: int = 1 << 20) -> pa.Table:
    log = CommitLogFiles([folder])
    end = log.valid_end()
    return pa.Table.from_batches(
        [
            batch
            for file in log.begun_files()
            for block in read_range(file, file.start, min(end, file.end), block_bytes=block_bytes)
            for batch in record_batches(block, "broker-a")
        ],
        SCHEMA,
    )


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC) + timedelta(milliseconds=ms % 1000)


@pytest.mark.parametrize("block_bytes", [500, 1 << 20])
@pytest.mark.parametrize("name", ["clean_broker", "crash_abort", "rolled_preblank", "ipv6_delay"])
def test_a_store_of_apache_rocketmq_becomes_equal_rows(tmp_path: Path, name: str, block_bytes: int) -> None:
    folder = unpack_golden(name, tmp_path) / "commitlog"
    rows = read_table(folder, block_bytes).to_pylist()
    files = {file.start: file.path.read_bytes() for file in CommitLogFiles([folder]).begun_files()}
    assert len(rows) == {"clean_broker": 18, "crash_abort": 701, "rolled_preblank": 919, "ipv6_delay": 4}[name]
    for row in rows:
        start = max(begin for begin in files if begin <= row["physical_offset"])
        message = decode_record(files[start], row["physical_offset"] - start)
        asked = message.properties.get("TRANSACTION_CHECK_TIMES") if "_TRANS_HALF_" in message.topic else None
        assert row == {
            "broker_name": "broker-a",
            "physical_offset": message.physical_offset,
            "size_bytes": message.store_size,
            "topic": message.topic,
            "queue_id": message.queue_id,
            "queue_offset": message.queue_offset,
            "sys_flag": message.sys_flag,
            "born_timestamp": at(message.born_timestamp),
            "born_host": message.born_host[0],
            "store_timestamp": at(message.store_timestamp),
            "reconsume_times": message.reconsume_times,
            "body_bytes": len(message.body),
            "tags": message.tags,
            "cause": None,
            "check_times": int(asked) if asked else None,
        }


@pytest.mark.parametrize(
    ("properties", "tags"),
    [
        ({}, None),
        ({"TAGS": "a"}, "a"),
        ({"TAGS": ""}, None),
        ({"KEYS": "TAGS", "TAGS": "größer"}, "größer"),
        ({"XTAGS": "no"}, None),
        ({"KEYS": "k", "XTAGS": "no", "TAGS": "a||b", "WAIT": "true"}, "a||b"),
        ({"TAGSX": "no", "TAG": "no"}, None),
    ],
)
def test_the_tag_is_found_among_other_properties(tmp_path: Path, properties: dict[str, str], tags: str | None) -> None:
    neighbours = [Record(properties={"TAGS": "before"}), Record(properties={"KEYS": "after"})]
    write_log(tmp_path, [neighbours[0], Record(properties=properties), neighbours[1]])
    assert read_table(tmp_path)["tags"].to_pylist() == ["before", tags, None]


def test_the_cause_is_read_of_what_groups_sent_back_and_gave_up(tmp_path: Path) -> None:
    told = {"CONSUME_ERROR_TEXT": "OutOfStock: none left", "CONSUME_ERROR": "shop.OutOfStock at orders.py:42"}
    records = [
        Record(topic=topic, properties=properties)
        for topic, properties in (
            ("%DLQ%billing", told),
            ("orders", told),
            ("%RETRY%billing", {"TAGS": "a"}),
            ("%RETRY%billing", told | {"TAGS": "b"}),
        )
    ]
    write_log(tmp_path, records)
    table = read_table(tmp_path)
    cause = told["CONSUME_ERROR"]
    assert table["cause"].to_pylist() == [cause, None, None, cause]
    assert table["tags"].to_pylist() == [None, None, "a", "b"]


def test_half_messages_that_were_stored_again_are_told_from_the_first(tmp_path: Path) -> None:
    asked, half = {"TRANSACTION_CHECK_TIMES": "2"}, "RMQ_SYS_TRANS_HALF_TOPIC"
    records = [
        Record(topic=topic, properties=properties)
        for topic, properties in (
            (half, {"REAL_TOPIC": "orders"}),
            (half, {"REAL_TOPIC": "orders"} | asked),
            ("orders", asked),
            ("RMQ_SYS_TRANS_HALF_TOPIK", asked),
            (half, {"TRAN_PREPARED_QUEUE_OFFSET": "17"}),
            (half, {"TRANSACTION_CHECK_TIMES": "many"}),
        )
    ]
    write_log(tmp_path, records)
    assert read_table(tmp_path)["check_times"].to_pylist() == [None, 2, None, None, 0, 0]
    assert read_table(tmp_path, 300)["check_times"].to_pylist() == [None, 2, None, None, 0, 0]


def test_a_time_that_no_calendar_has_is_its_first_or_last_moment() -> None:
    born = times(np.array([-(1 << 63), 0, 1, (1 << 63) - 1])).to_pylist()
    assert born[1:3] == [at(0), at(1)] and (born[0].year, born[3].year) == (1, 9999)


def test_addresses_of_both_families_stand_in_one_column(tmp_path: Path) -> None:
    addresses = ["10.0.0.0", "2001:db8::", "0.0.0.0", "::1", "10.0.0.0", "255.1.2.3"]
    write_log(tmp_path, [Record(born_ip=address) for address in addresses])
    assert read_table(tmp_path)["born_host"].to_pylist() == addresses


def test_bytes_that_are_not_text_are_shown_with_replacement_characters(tmp_path: Path) -> None:
    offsets = write_log(tmp_path, [Record(topic="good"), Record(topic="torn"), Record(topic="good")])
    with (tmp_path / f"{0:020}").open("r+b") as file:
        file.seek(offsets[1] + 88 + 5 + 1)
        file.write(b"\xff")
    assert read_table(tmp_path)["topic"].to_pylist() == ["good", "\ufffdorn", "good"]
