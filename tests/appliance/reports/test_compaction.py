"""Small files become one, old ones go, entries become a checkpoint: at each point the lake holds the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from appliance.reports import manifest
from appliance.reports.errors import ReportError
from appliance.reports.lake_state import LakeFile
from appliance.reports.manifest import GARBAGE_S, Lake

pq = pytest.importorskip("pyarrow.parquet", reason="the report stack is not installed")

HOUR, DAY = 3_600_000, 86_400_000
FIRST = 1_795_219_200_000  # 2026-11-21 00:00 UTC
HOUR_BYTES = 100  # of the log
TOPICS = ("mail", "orders", "mail")


def here(function: Callable[[Sequence[str]], Any], value: Sequence[str]) -> Any:
    """Instead of a Spark task."""
    return function(value)


def add_hours(lake: Lake, hours: range) -> None:
    """A commit for each, of one file with three messages; each second one is older than the newest column."""
    import pyarrow as pa

    from appliance.reports.record_columns import SCHEMA

    for hour in hours:
        begin, at = hour * HOUR_BYTES, FIRST + hour * HOUR
        rows = [
            dict.fromkeys(SCHEMA.names)
            | {"topic": topic, "physical_offset": begin + place * 20, "store_timestamp": at + place}
            for place, topic in enumerate(TOPICS)
        ]
        date = f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"
        path = lake.path / f"data/date={date}/{begin:020}-{begin + HOUR_BYTES:020}-00000.parquet"
        with lake.writing():
            path.parent.mkdir(exist_ok=True)
            schema = SCHEMA if hour % 2 else SCHEMA.remove(len(SCHEMA) - 1)
            pq.write_table(pa.Table.from_pylist(rows, schema), path)
            file = LakeFile(str(path.relative_to(lake.path)), date, 3, path.stat().st_size, at, at + 2)
            lake.commit(begin, begin + HOUR_BYTES, [file], (begin + 40, at + 2, 7))


def rows_of(lake: Lake, paths: Sequence[Path] | None = None) -> list[tuple[int, str]]:
    """(offset, topic) of all rows, once for each time that they are there."""
    paths = [lake.path / file.path for file in lake.files()] if paths is None else paths
    tables = [pq.ParquetFile(path).read(columns=["physical_offset", "topic"]).to_pylist() for path in paths]
    return sorted((row["physical_offset"], row["topic"]) for table in tables for row in table)


def listed(lake: Lake) -> list[Path]:
    """What others that read the manifest's entries take for its files: all added without all removed."""
    said = [json.loads(path.read_bytes()) for path in (lake.path / "_log").glob("*.json")]
    removed = {path for entry in said for path in entry.get("remove", ())}
    return [lake.path / path for path in {file["path"] for entry in said for file in entry["add"]} - removed]


def upkeep(lake: Lake, now_ms: int = FIRST + 5 * DAY) -> int:
    from appliance.reports.runner.lake_upkeep import compact

    with lake.writing():
        lake.remove_leftovers()
        merged = compact(lake, here, now_ms=now_ms)
        lake.remove_leftovers()
        lake.tidy()
    return merged


def test_the_files_of_a_day_that_is_over_become_one_with_the_same_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    add_hours(lake, range(50))
    before = rows_of(lake)
    assert upkeep(lake, FIRST + 49 * HOUR - 1) == 24, "the second day is not over for an hour"
    assert upkeep(lake, FIRST + 49 * HOUR) == 24
    assert rows_of(lake) == before == rows_of(lake, listed(lake))
    assert [(file.date, file.rows) for file in sorted(lake.files(), key=lambda file: file.date)] == [
        ("2026-11-21", 72), ("2026-11-22", 72), ("2026-11-23", 3), ("2026-11-23", 3),
    ]  # fmt: skip
    merged = next(file for file in lake.files() if file.rows == 72)
    table = pq.ParquetFile(lake.path / merged.path).read().to_pylist()
    assert [(row["topic"], row["physical_offset"]) for row in table] == sorted(
        (row["topic"], row["physical_offset"]) for row in table
    )
    assert (merged.min_store_timestamp, merged.max_store_timestamp) == (FIRST, FIRST + 23 * HOUR + 2)
    assert merged.span == (0, 24 * HOUR_BYTES)
    assert (lake.checkpoint(), lake.last_mark()) == (5000, (4940, FIRST + 49 * HOUR + 2, 7))
    assert upkeep(lake) == 0, "two files of the third day are not worth it"
    add_hours(lake, range(50, 60))
    assert rows_of(lake) == rows_of(lake, listed(lake)) and len(rows_of(lake)) == 180


def test_what_was_merged_stays_for_those_who_read_it_and_goes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    add_hours(lake, range(24))
    held = [lake.path / file.path for file in lake.files()]
    before = rows_of(lake)
    upkeep(lake)
    assert rows_of(lake, held) == before
    now = manifest.time.time()
    monkeypatch.setattr(manifest.time, "time", lambda: now + GARBAGE_S + 1)
    upkeep(lake)
    assert not any(path.exists() for path in held)
    assert rows_of(lake) == before == rows_of(lake, listed(lake))


def test_a_kill_at_any_point_of_a_merge_changes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from appliance.reports.runner import lake_upkeep

    lake = Lake(tmp_path)
    add_hours(lake, range(24))
    before = rows_of(lake)
    for step in ("_put", "replace"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(lake_upkeep if step == "_put" else Lake, step, killed)
            upkeep(lake)
        assert rows_of(lake) == before == rows_of(lake, listed(lake))
    assert upkeep(lake) == 24
    assert rows_of(lake) == before
    data = {path.relative_to(lake.path).as_posix() for path in lake.path.glob("data/*/*.parquet")}
    assert data == set(lake.state().files) | set(lake.state().removed), "nothing is left over"


def killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_checkpoint_says_what_all_entries_said_at_each_point_of_its_making(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    add_hours(lake, range(24))
    with lake.writing():
        lake.commit_gap(2400, 2500)
    add_hours(lake, range(25, 60))
    with lake.writing():
        lake.commit_gap(6000, 6100)
    upkeep(lake)
    before, rows, gaps = lake.files(), rows_of(lake), lake.gaps()
    monkeypatch.setattr(manifest, "ENTRIES_MAX", 1)
    unlink = Path.unlink
    for deletions in range(70):  # each time it is killed after so many of the old entries
        left = deletions

        def sometimes(path: Path, missing_ok: bool = False) -> None:
            nonlocal left
            if path.suffix == ".json":
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            unlink(path, missing_ok)

        with monkeypatch.context() as patch, lake.writing():
            patch.setattr(Path, "unlink", sometimes)
            try:
                lake.tidy()
                break
            except KeyboardInterrupt:
                pass
        assert sorted(lake.files(), key=str) == sorted(before, key=str) and lake.gaps() == gaps
        assert rows_of(lake, listed(lake)) == rows
    assert len(list((lake.path / "_log").glob("*.json"))) == 1
    assert sorted(lake.files(), key=str) == sorted(before, key=str) and lake.gaps() == gaps
    assert (lake.checkpoint(), rows_of(lake)) == (6100, rows)
    with lake.writing():
        lake.commit(6100, 6200, [], None)
    assert lake.checkpoint() == 6200, "and it goes on from there"
    with lake.writing(), pytest.raises(ReportError, match="does not follow"):
        lake.commit(6100, 6200, [], None)


def test_a_gap_before_a_checkpoint_ends_with_what_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, other = Lake(tmp_path / "a"), Lake(tmp_path / "b")
    monkeypatch.setattr(manifest, "ENTRIES_MAX", 1)
    for each in (lake, other):
        add_hours(each, range(2))
        with each.writing():
            each.commit_gap(200, 300)
            if each is lake:
                each.tidy()
        add_hours(each, range(3, 4))
    assert lake.gaps() == other.gaps() and lake.gaps()[0].to_ms == FIRST + 3 * HOUR


def test_a_reader_that_a_checkpoint_overtakes_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    add_hours(lake, range(5))
    names = lake._names
    stale = [names()]
    monkeypatch.setattr(manifest, "ENTRIES_MAX", 1)
    with lake.writing():
        lake.tidy()
    monkeypatch.setattr(lake, "_names", lambda: stale.pop() if stale else names())
    assert len(lake.files()) == 5


@pytest.mark.parametrize(("days", "size_share", "kept"), [(1, 0.0, 25), (0, 0.5, 30), (0.5, 0.5, 13), (0, 0.0, 60)])
def test_what_is_too_old_or_too_much_goes_oldest_first(
    tmp_path: Path, days: float, size_share: float, kept: int
) -> None:
    from appliance.reports.runner.lake_upkeep import expire

    lakes = [Lake(tmp_path / "a"), Lake(tmp_path / "b")]
    for lake in lakes:
        add_hours(lake, range(60))
    size_bytes = sum(file.size_bytes for lake in lakes for file in lake.files())
    expire(lakes, days=days, size_bytes=int(size_bytes * size_share), now_ms=FIRST + 60 * HOUR)
    for lake in lakes:
        files = lake.files()
        assert abs(len(files) - kept) <= 1
        assert {file.min_store_timestamp for file in files} == {
            FIRST + hour * HOUR for hour in range(60 - len(files), 60)
        }
        expired_ms = lake.state().expired_ms
        assert expired_ms == (None if kept == 60 else FIRST + (59 - len(files)) * HOUR + 3)
        assert (lake.checkpoint(), len(rows_of(lake, listed(lake)))) == (6_000, 3 * len(files))
        upkeep(lake)
        assert lake.state().expired_ms == expired_ms and len(rows_of(lake)) == 3 * len(files)


def test_a_lake_of_a_year_of_hours_is_read_from_one_entry(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.writing():
        for hour in range(200):
            file = LakeFile(
                f"data/date=d/{hour}-{hour + 1}-0.parquet", "d", 1, 1, FIRST + hour * HOUR, FIRST + hour * HOUR
            )
            lake.commit(hour, hour + 1, [file], None)
            lake.tidy()
    assert len(list((tmp_path / "_log").glob("*.json"))) <= manifest.ENTRIES_MAX
    assert len(lake.files()) == 200 and len(lake.files(FIRST + 150 * HOUR, FIRST + 160 * HOUR)) == 10
