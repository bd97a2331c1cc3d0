"""A run that is killed, at whatever point: the lake is a prefix of the log then, and the next run makes it whole."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from appliance.reports import lake_writer
from appliance.reports.manifest import Lake
from appliance.reports.runner import ingest as ingest_module
from appliance.reports.runner.ingest import IngestLimits, ingest
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
LIMITS = IngestLimits(range_bytes=1 << 14, range_bytes_min=1 << 14)


@pytest.fixture(autouse=True)
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker of Spark would do is done here, and every second range is committed."""
    monkeypatch.setattr(ingest_module, "run_on_a_worker", lambda spark, function, value: function(value))
    monkeypatch.setattr(lake_writer, "COMMIT_BYTES", 1 << 15)


def offsets_in(lake: Lake) -> list[int]:
    return sorted(
        offset
        for file in lake.files()
        for offset in pq.read_table(lake.path / file.path, columns=["physical_offset"])["physical_offset"].to_pylist()
    )


def killed_at(point: int, log: Path, lake: Lake) -> bool:
    """Run in a process of its own, which is killed when it has changed or synced the disk that often."""
    outcome = lake.path.parent / "outcome"
    outcome.parent.mkdir()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        said = outcome.read_text() if outcome.exists() else ""
        assert said in ("", "done")
        return not said
    calls = itertools.count()

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(calls) == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    try:
        for name in ("link", "fsync", "replace", "unlink", "mkdir"):
            setattr(os, name, counted(getattr(os, name)))
        ingest(SPARK, [log], lake, limits=LIMITS)
        outcome.write_text("done")
    except BaseException as failure:
        outcome.write_text(repr(failure))
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # it must not go on as a second pytest
    raise AssertionError("a killed process runs on")


def test_killed_at_every_point_a_lake_is_a_prefix_and_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    records = [Record(body=bytes(700), stored_at=NOON + index * HOUR_MS // 3) for index in range(50)]
    *offsets, end = write_log(log, records, file_bytes=1 << 15)
    seen = set()
    for point in itertools.count():
        lake = Lake(tmp_path / str(point) / "broker-a")
        was_killed = killed_at(point, log, lake)
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
