"""What a run that fails has done all the same."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake", reason="the report stack is not installed")

from appliance.reports.errors import LakeFull, WorkersFailed
from appliance.reports.runner import ingest, jobs
from appliance.reports.runs import RunFolder, RunSpec, new_run_id
from tests.appliance.reports.killing import LIMITS, NO_SPARK, RANGE_BYTES, RECORDS, have_tasks_here
from tests.appliance.reports.lakes import lake_in, offsets_in
from tests.appliance.reports.runner.promoted import EPOCH_1, log_of, put_standing
from tests.appliance.reports.stores import write_log


def test_what_precedes_a_range_that_always_fails_is_in_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, _ = write_log(log, RECORDS, file_bytes=1 << 14)

    def fail_at_the_second(spark: object, function: Any, values: Sequence[Any], **_: object) -> Iterator[Any]:
        yield function(values[0])
        raise WorkersFailed("no such thing")

    monkeypatch.setattr(ingest, "run_on_workers", fail_at_the_second)
    with pytest.raises(WorkersFailed):
        ingest.ingest(NO_SPARK, [log], lake, limits=LIMITS)
    there = offsets_in(lake)
    assert there and there == offsets[: len(there)]


def test_a_run_that_finds_the_lake_full_lets_old_days_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_in(tmp_path)
    have_tasks_here(monkeypatch)
    write_log(log_of(tmp_path, "broker-a"), RECORDS, file_bytes=1 << 14)
    put_standing(tmp_path, "broker-a", "", [EPOCH_1])
    ingest.ingest(NO_SPARK, [log_of(tmp_path, "broker-a")], lake, limits=LIMITS)
    assert offsets_in(lake)

    def be_full(*_: object, **__: object) -> None:
        raise LakeFull("/lake")

    monkeypatch.setattr(jobs, "ingest", be_full)
    folder = RunFolder.in_data(tmp_path, new_run_id())
    spec = RunSpec(report="ingest", data=str(tmp_path), begin_ms=0, end_ms=1, lake_days=1 / 24)
    folder.write_spec(spec)
    with pytest.raises(LakeFull):
        jobs.ingest_all(NO_SPARK, spec, folder, float("inf"))
    assert not offsets_in(lake)


def test_executors_that_come_later_get_their_share_of_the_same_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, lake, jobs_of = tmp_path / "commitlog", lake_in(tmp_path), []
    *offsets, _ = write_log(log, RECORDS, file_bytes=1 << 14)
    cores = itertools.chain([1, 1], itertools.repeat(2))

    def note(spark: object, function: Any, values: Sequence[Any], **_: object) -> Iterator[Any]:
        jobs_of.append(len(values))
        return map(function, values)

    monkeypatch.setattr(ingest, "run_on_workers", note)
    monkeypatch.setattr(ingest, "JOB_BYTES", RANGE_BYTES)
    limits = dataclasses.replace(LIMITS, cores=cores.__next__)
    ingest.ingest(NO_SPARK, [log], lake, limits=limits)
    assert jobs_of[:2] == [1, 2] and offsets_in(lake) == offsets


def test_a_run_whose_time_ends_while_its_tasks_are_repeated_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, _ = write_log(log, RECORDS, file_bytes=1 << 14)
    clock = [0.0]

    def be_slow(spark: object, function: Any, values: Sequence[Any], *, may_begin: Callable[[], bool]) -> Iterator[Any]:
        for value in itertools.takewhile(lambda _: may_begin(), values):
            yield function(value)
            clock[0] = 2.0

    monkeypatch.setattr(ingest, "run_on_workers", be_slow)
    monkeypatch.setattr(ingest, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    limits = dataclasses.replace(LIMITS, cores=lambda: 2, until=1.0)
    result = ingest.ingest(NO_SPARK, [log], lake, limits=limits)
    there = offsets_in(lake)
    assert there and there == offsets[: len(there)] and result.behind_bytes
