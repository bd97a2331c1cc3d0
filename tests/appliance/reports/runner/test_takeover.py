"""A lake from before Delta was its log comes along once, with its position, its gaps and what went from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake", reason="the report stack is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from appliance.reports.errors import ReportError
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.lake.lakes import Lakes
from appliance.reports.lake.reading import Gap
from appliance.reports.lake.table import EXPIRED
from appliance.reports.runner.ingest import ingest
from appliance.reports.runner.sample_table import copy_samples
from appliance.reports.runner.takeover import take_over
from appliance.reports.samples.kinds import SLAVES
from appliance.reports.samples.lines import MINUTE_MS, append
from tests.appliance.reports.killing import LIMITS, NO_SPARK, have_tasks_here
from tests.appliance.reports.lakes import offsets_in, rows_of
from tests.appliance.reports.samples.rows import sample
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

RECORDS = [Record(body=bytes(700), stored_at=NOON + at * HOUR_MS) for at in range(30)]


def put_old(lake: Path, rows: list[dict[str, Any]], time: str, name: str) -> dict[str, Any]:
    """A Parquet file as the older program wrote it, and how its manifest lists it."""
    date = f"{datetime.fromtimestamp(rows[0][time] / 1000, UTC):%Y-%m-%d}"
    path = lake / "data" / f"date={date}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    times = [row[time] for row in rows]
    bounds = {"min_store_timestamp": min(times), "max_store_timestamp": max(times)}
    size_bytes = path.stat().st_size
    return {"path": f"data/date={date}/{name}", "date": date, "rows": len(rows), "size_bytes": size_bytes, **bounds}


def put_entries(lake: Path, *entries: dict[str, Any], first: int = 0) -> None:
    (lake / "_log").mkdir(parents=True, exist_ok=True)
    for number, entry in enumerate(entries, first):
        said = {"last": None, "add": [], **entry}
        (lake / "_log" / f"{number:020}.json").write_text(json.dumps(said, indent=1))


def message(offset: int, at_ms: int, topic: str = "orders") -> dict[str, Any]:
    return {
        "physical_offset": offset,
        "size_bytes": 100,
        "topic": topic,
        "born_timestamp": at_ms,
        "store_timestamp": at_ms,
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log, and the lake that an older program made of its first half; files are merged, taken out, and left over."""
    *offsets, _end = write_log(tmp_path / "commitlog", RECORDS, file_bytes=1 << 15)
    lake = tmp_path / "reports" / "lake" / "broker-a"
    rows = [message(offset, record.stored_at) for offset, record in zip(offsets[:15], RECORDS, strict=False)]
    files = [put_old(lake, rows[at : at + 5], "store_timestamp", f"{at}.parquet") for at in (0, 5)]
    merged = put_old(lake, rows[:10], "store_timestamp", "merged.parquet")
    gone = [file["path"] for file in files]
    last = put_old(lake, [row | {"cause": "late"} for row in rows[10:]], "store_timestamp", "last.parquet")
    put_old(lake, rows, "store_timestamp", "unlisted.parquet")
    old = put_old(lake, [message(0, NOON - 99 * 24 * HOUR_MS)], "store_timestamp", "old.parquet")
    mark = _mark(tmp_path, offsets[14])
    put_entries(
        lake,
        {"op": "gap", "from": 0, "to": 0, "damage": False},
        {"op": "append", "from": 0, "to": offsets[5], "add": [files[0], old], "last": None},
        {"op": "append", "from": offsets[5], "to": offsets[10], "add": [files[1]], "last": None},
        {
            "op": "compact",
            "from": offsets[10],
            "to": offsets[10],
            "add": [merged],
            "remove": gone,
        },
        {"op": "expire", "from": offsets[10], "to": offsets[10], "remove": [old["path"]]},
        {"op": "append", "from": offsets[10], "to": offsets[15], "add": [last], "last": mark},
    )
    return tmp_path


def _mark(data: Path, offset: int) -> list[int]:
    from appliance.reports.commit_log_files import CommitLogFiles

    found = CommitLogFiles([data / "commitlog"]).mark_at(offset)
    assert found is not None
    return list(found)


def offsets_of(data: Path) -> list[int]:
    from appliance.reports.commit_log_files import CommitLogFiles, read_range

    log = CommitLogFiles([data / "commitlog"])
    end = log.valid_end()
    blocks = [block for file in log.files() for block in read_range(file, file.start, min(file.end, end))]
    return [offset for block in blocks for offset in block.physical_offset.tolist()]


def test_the_rows_the_position_and_what_went_come_along_and_the_next_run_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_tasks_here(monkeypatch)
    lakes, offsets = Lakes(data), offsets_of(data)
    take_over(data, lakes)
    lake = lakes.of_broker("broker-a")
    assert offsets_in(lake) == offsets[:15] and lake.position() == offsets[15]
    rows = {row["physical_offset"]: row for row in rows_of(lake.table)}
    assert [rows[offset]["store_timestamp"].timestamp() * 1000 for offset in offsets[:15]] == [
        record.stored_at for record in RECORDS[:15]
    ]
    assert [rows[offset]["cause"] for offset in offsets[8:12]] == [None, None, "late", "late"]
    assert lake.table.numbers()(EXPIRED) == NOON - 99 * 24 * HOUR_MS + 1
    ingest(NO_SPARK, [data / "commitlog"], lake, limits=LIMITS)
    assert offsets_in(lake) == offsets
    reports = data / "reports"
    assert (reports / "lake-before-delta" / "broker-a" / "_log").is_dir() and not (reports / "lake").exists()
    take_over(data, lakes)
    assert offsets_in(lake) == offsets


def test_a_run_that_ends_before_the_old_folder_has_its_new_name_counts_nothing_twice(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", _die)
        with pytest.raises(KeyboardInterrupt):
            take_over(data, Lakes(data))
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "set_reading", _die)
        take_over(data, lakes := Lakes(data))
    assert offsets_in(lakes.of_broker("broker-a")) == offsets_of(data)[:15]


def test_one_that_ends_before_the_commit_leaves_nothing_that_counts(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "set_reading", _die)
        with pytest.raises(KeyboardInterrupt):
            take_over(data, Lakes(data))
    lakes = Lakes(data)
    assert offsets_in(lakes.of_broker("broker-a")) == []
    take_over(data, lakes)
    assert offsets_in(lakes.of_broker("broker-a")) == offsets_of(data)[:15]


def _die(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_checkpoint_and_its_gaps_come_along(tmp_path: Path) -> None:
    lake = tmp_path / "reports" / "lake" / "broker-b"
    file = put_old(lake, [message(70, NOON)], "store_timestamp", "a.parquet")
    gaps = [[0, 50, None, NOON, False], [80, 90, NOON, None, True]]
    said = {"from": 90, "to": 90, "add": [file], "remove": [], "removed": {}, "last": [70, NOON, 7], "gaps": gaps}
    checkpoint = {"op": "checkpoint", **said, "stored": NOON, "is_gap_open": True, "expired_ms": None}
    before = {"op": "compact", "from": 90, "to": 90, "remove": ["data/of-a-deleted-entry.parquet"]}
    put_entries(lake, before, checkpoint, {"op": "gap", "from": 90, "to": 95, "damage": True}, first=41)
    lakes = Lakes(tmp_path)
    take_over(tmp_path, lakes)
    reading = lakes.of_broker("broker-b").reading()
    assert (reading.end, reading.last) == (95, (70, NOON, 7))
    assert reading.gaps == [Gap(0, 50, None, NOON), Gap(80, 95, NOON, None, is_damage=True)]


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_manifest_or_a_file_that_is_not_whole_stops_it(data: Path, is_gone: bool) -> None:
    lake = data / "reports" / "lake" / "broker-a"
    if is_gone:
        (lake / "_log" / f"{2:020}.json").unlink()
    else:
        pq.write_table(pa.table({"physical_offset": [1]}), next(lake.glob("data/*/last.parquet")))
    with pytest.raises(ReportError, match="restore it"):
        take_over(data, Lakes(data))
    assert lake.is_dir() and Lakes(data).of_broker("broker-a").position() is None


def test_samples_come_along_and_no_minute_twice(tmp_path: Path) -> None:
    old, new = sample(), sample(NOON + MINUTE_MS)
    append(tmp_path, SLAVES, [old])
    append(tmp_path, SLAVES, [new])
    lake = tmp_path / "reports" / "tables" / "slaves"
    values = {name: getattr(old, name) for name in old.__dataclass_fields__}
    file = put_old(lake, [values], "at_ms", "a.parquet")
    put_entries(lake, {"op": "append", "from": NOON, "to": NOON + MINUTE_MS, "add": [file]})
    lakes = Lakes(tmp_path)
    take_over(tmp_path, lakes)
    copy_samples(tmp_path, lakes)
    found = sorted(row["at"].timestamp() * 1000 for row in rows_of(lakes.of_samples("slaves")))
    assert found == [NOON, NOON + MINUTE_MS]


def test_a_folder_of_others_that_has_the_same_name_stays(tmp_path: Path) -> None:
    other = tmp_path / "reports" / "tables" / "prices" / "a.csv"
    other.parent.mkdir(parents=True)
    other.touch()
    take_over(tmp_path, Lakes(tmp_path))
    assert other.exists()
