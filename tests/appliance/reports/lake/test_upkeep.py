"""Small files become one, old ones go: at each point the lake holds the same rows, and those who read it go on."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("deltalake", reason="the report stack is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from appliance.reports.lake.lakes import Lakes
from appliance.reports.lake.range_reader import BOUNDS, PARQUET
from appliance.reports.lake.record_columns import SCHEMA
from appliance.reports.lake.table import EXPIRED
from appliance.reports.lake.upkeep import clear, compact, expire
from tests.appliance.reports.lakes import lake_in, paths_of, rows_of

if TYPE_CHECKING:
    from appliance.reports.lake.broker_lake import Lake

HOUR, DAY = 3_600_000, 86_400_000
FIRST = 1_795_219_200_000  # 2026-11-21 00:00 UTC
HOUR_BYTES = 100  # of the log
TOPICS = ("mail", "orders", "mail")
BROKERS = ("broker-a", "broker-b")


def add_hours(lake: Lake, hours: range) -> None:
    """A commit for each, of one file with three messages."""
    with lake.table.writing():
        for hour in hours:
            begin, at = hour * HOUR_BYTES, FIRST + hour * HOUR
            rows = [
                dict.fromkeys(SCHEMA.names)
                | {"broker_name": lake.broker_name, "topic": topic, "physical_offset": begin + place * 20}
                | {"store_timestamp": (at + place) * 1000}
                for place, topic in enumerate(TOPICS)
            ]
            date = f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"
            table = pa.Table.from_pylist(rows, SCHEMA).sort_by(
                [("topic", "ascending"), ("physical_offset", "ascending")]
            )
            file = lake.table.place.write(table, date, BOUNDS, PARQUET)
            lake.commit(begin, begin + HOUR_BYTES, [file], (begin + 40, at + 2, 7))


def counted(lake: Lake) -> list[tuple[int, str]]:
    """(offset, topic) of all rows, once for each time that they are there."""
    return sorted((row["physical_offset"], row["topic"]) for row in rows_of(lake.table, ["physical_offset", "topic"]))


def merge(lake: Lake, now_ms: int = FIRST + 5 * DAY) -> int:
    with lake.table.writing():
        return compact(lake.table, now_ms=now_ms)


@pytest.mark.slow
def test_the_files_of_a_day_that_is_over_become_one_with_the_same_rows(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    add_hours(lake, range(50))
    before = counted(lake)
    assert merge(lake, FIRST + 49 * HOUR - 1) == 24, "the second day is not over for an hour"
    assert merge(lake, FIRST + 49 * HOUR) == 24
    assert counted(lake) == before
    files = sorted(lake.table.files(), key=lambda file: (file.date, file.min_ms))
    assert [(file.date, file.rows) for file in files] == [
        ("2026-11-21", 72), ("2026-11-22", 72), ("2026-11-23", 3), ("2026-11-23", 3),
    ]  # fmt: skip
    assert (files[0].min_ms, files[0].max_ms) == (FIRST, FIRST + 23 * HOUR + 2)
    assert (lake.position(), lake.reading().last) == (5000, (4940, FIRST + 49 * HOUR + 2, 7))
    assert merge(lake) == 0, "two files of the third day are not worth it"
    add_hours(lake, range(50, 60))
    assert len(counted(lake)) == 180


def test_merged_files_are_no_larger(tmp_path: Path) -> None:
    lake, numbers = lake_in(tmp_path), random.Random(1)
    with lake.table.writing():
        for hour in range(4):
            offset, at_ms, rows = hour << 40, FIRST + hour * HOUR, []
            for number in range(20_000):
                offset, at_ms = offset + numbers.randrange(150, 400), at_ms + numbers.randrange(100)
                times = {"store_timestamp": at_ms * 1000, "born_timestamp": (at_ms - numbers.randrange(50)) * 1000}
                rows.append({"physical_offset": offset, "queue_offset": number, **times})
            table = pa.Table.from_pylist([dict.fromkeys(SCHEMA.names) | row for row in rows], SCHEMA)
            file = lake.table.place.write(table, "2026-11-21", ["store_timestamp"], PARQUET)
            lake.commit(hour, hour + 1, [file], None)
    before = sum(file.size_bytes for file in lake.table.files())
    assert merge(lake) == 4
    assert sum(file.size_bytes for file in lake.table.files()) < 1.1 * before


def test_brokers_share_the_files_that_are_made_and_one_is_cut_alone(tmp_path: Path) -> None:
    lake, other = lake_in(tmp_path), lake_in(tmp_path, "it's broker-b")
    add_hours(lake, range(4))
    add_hours(other, range(4))
    assert merge(lake) == 8 and len(lake.table.files()) == 1
    assert other.last_below(250) == (240, FIRST + 2 * HOUR + 2)
    with lake.table.writing():
        assert other.cut(220, (200, FIRST + 2 * HOUR, 7)) == 5
    left = {(row["broker_name"], row["physical_offset"]) for row in rows_of(lake.table)}
    every = {hour * HOUR_BYTES + 20 * place for hour in range(4) for place in range(3)}
    assert left == {(name, at) for name, end in (("broker-a", 400), ("it's broker-b", 220)) for at in every if at < end}
    assert (lake.position(), other.position()) == (400, 220)
    assert (other.reading().last, other.last_below(220)) == ((200, FIRST + 2 * HOUR, 7), (200, FIRST + 2 * HOUR))


def test_what_was_merged_stays_for_those_who_read_it_and_goes_later(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    add_hours(lake, range(24))
    held = paths_of(lake.table)
    before = counted(lake)
    merge(lake)
    with lake.table.writing():
        assert clear(lake.table) == 0
        assert sum(pq.ParquetFile(path).metadata.num_rows for path in held) == len(before)
        assert (clear(lake.table, hours=0), clear(lake.table, hours=0)) == (24, 0)
    assert not any(Path(path).exists() for path in held)
    assert counted(lake) == before


def test_a_file_that_no_commit_names_goes_when_none_can_be_about_to(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    add_hours(lake, range(1))
    lake.table.place.write(pa.Table.from_pylist(rows_of(lake.table), SCHEMA), "2026-11-21", BOUNDS, PARQUET)
    with lake.table.writing():
        assert (clear(lake.table), clear(lake.table, hours=0)) == (0, 1)
    assert len(counted(lake)) == 3


@pytest.fixture(scope="module")
def sixty_hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers' lakes of sixty hours each: every test copies it, because to write it takes seconds."""
    folder = tmp_path_factory.mktemp("lakes")
    for broker in BROKERS:
        add_hours(lake_in(folder, broker), range(60))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("days", "size_share", "kept"), [(1, 0.0, 25), (0, 0.5, 30), (0.5, 0.5, 13), (0, 0.0, 60)])
def test_what_is_too_old_or_too_much_goes_oldest_first(
    tmp_path: Path, sixty_hours: Path, days: float, size_share: float, kept: int
) -> None:
    shutil.copytree(sixty_hours, tmp_path, dirs_exist_ok=True)
    lakes = [lake_in(tmp_path, broker) for broker in BROKERS]
    table = Lakes(tmp_path).messages
    size_bytes = sum(file.size_bytes for file in table.files())
    expire([table], days=days, size_bytes=int(size_bytes * size_share), now_ms=FIRST + 60 * HOUR)
    files = table.files()
    assert abs(len(files) - 2 * kept) <= 2
    hours = -(-len(files) // 2)
    assert {file.min_ms for file in files} == {FIRST + hour * HOUR for hour in range(60 - hours, 60)}
    expired_ms = table.numbers()(EXPIRED)
    first_lost = 60 - hours - 1 + len(files) % 2
    assert expired_ms == (None if kept == 60 else FIRST + first_lost * HOUR + 3)
    assert [lake.position() for lake in lakes] == [6_000, 6_000]
    merge(lakes[0])
    assert table.numbers()(EXPIRED) == expired_ms and len(counted(lakes[0])) == 3 * len(files)
