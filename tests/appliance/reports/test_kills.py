"""A run that is killed, at whatever point: the lake is a prefix of the log then, and the next run makes it whole."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from appliance.reports.manifest import Lake
from appliance.reports.runner.ingest import IngestLimits, ingest
from tests.appliance.reports.killing import RANGE_BYTES, SPARK, have_tasks_here, killed_at
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

LIMITS = IngestLimits(range_bytes=RANGE_BYTES, range_bytes_min=RANGE_BYTES)


@pytest.fixture(autouse=True)
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    have_tasks_here(monkeypatch)


def offsets_in(lake: Lake) -> list[int]:
    return sorted(
        offset
        for file in lake.files()
        for offset in pq.read_table(lake.path / file.path, columns=["physical_offset"])["physical_offset"].to_pylist()
    )


def ingest_in_steps(log: Path, lake: Lake, step: Callable[[], None]) -> None:
    """A step is a change or a sync of the disk."""

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step()
            return real(*arguments, **options)

        return call

    for name in ("link", "fsync", "replace", "unlink", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    ingest(SPARK, [log], lake, limits=LIMITS)


def test_killed_at_every_point_a_lake_is_a_prefix_and_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    records = [Record(body=bytes(700), stored_at=NOON + index * HOUR_MS // 3) for index in range(50)]
    *offsets, end = write_log(log, records, file_bytes=1 << 15)
    seen = set()
    for point in itertools.count():
        lake = Lake(tmp_path / str(point) / "broker-a")
        was_killed = killed_at(point, lake.path.parent, functools.partial(ingest_in_steps, log, lake))
        found = offsets_in(lake)
        assert found == offsets[: len(found)]
        seen.add(len(found))
        ingest(SPARK, [log], lake, limits=LIMITS)
        assert offsets_in(lake) == offsets and lake.checkpoint() == end
        assert len(list(lake.path.glob("data/*/*"))) == len(lake.files())
        assert not list((lake.path / "_log").glob("*.tmp")) and not list((lake.path / "_staging").iterdir())
        if not was_killed:
            break
    assert point > 20 and len(seen) > 1
