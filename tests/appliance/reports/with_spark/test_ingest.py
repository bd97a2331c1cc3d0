"""Commit log to lake with a real Spark: each record once, whatever is killed, damaged, gone or full."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from appliance.reports.errors import LakeFull, LogTruncated
from gantrymq.byte_size import readable
from tests.appliance.reports.lakes import lake_in, offsets_in
from tests.appliance.reports.runner.promoted import log_of, promoted
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, unpack_golden, write_log
from tests.appliance.reports.with_spark.inputs import day_of_records, run_ingest, small_ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def damage(log: Path, begin: int, end: int, file_bytes: int = 1 << 14) -> None:
    """Zeros over a part of a file."""
    with (log / f"{begin - begin % file_bytes:020}").open("r+b") as file:
        file.seek(begin % file_bytes)
        file.write(bytes(end - begin))


def test_each_record_is_taken_exactly_once_over_several_runs_and_batches(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *first, end = write_log(log, day_of_records(300), file_bytes=1 << 14)
    seen: list[Any] = []
    result = run_ingest(spark, log, lake, limits=small_ranges(5 << 12), progress=seen.append)
    assert (result.rows, result.end, result.gap_bytes, result.behind_bytes) == (300, end, 0, 0)
    assert result.files > 10
    assert [item.rows for item in seen] == sorted(item.rows for item in seen)
    assert len(seen) > 5 and (seen[-1].rows, seen[-1].done_bytes, seen[-1].total_bytes) == (300, end, end)
    assert offsets_in(lake) == first

    again = run_ingest(spark, log, lake)
    assert (again.rows, again.batches) == (0, 0)

    *second, end = write_log(log, day_of_records(50), file_bytes=1 << 14, start=end)
    assert run_ingest(spark, log, lake).rows == 50
    assert offsets_in(lake) == first + second
    assert lake.position() == end


def test_a_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "100% of it, zwölf #1?"
    *offsets, _ = write_log(folder / "commitlog", [Record()] * 3)
    lake = lake_in(folder)
    assert run_ingest(spark, folder / "commitlog", lake).rows == 3
    assert offsets_in(lake) == offsets
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_folder_that_deltas_library_would_not_find_is_told(tmp_path: Path) -> None:
    from appliance.reports.errors import ReportError

    with pytest.raises(ReportError, match="report_lake"):
        lake_in(tmp_path / "100%20").position()


def test_sparks_ports_are_this_machines_alone_and_there_is_no_page_and_no_event_log(spark: SparkSession) -> None:
    """S51."""
    from pyspark import SparkContext

    context = spark.sparkContext
    assert context.uiWebUrl is None
    assert context.getConf().get("spark.eventLog.enabled", "false") == "false"
    gateway = SparkContext._gateway
    assert gateway is not None
    machine = psutil.Process(gateway.proc.pid)
    processes = [machine, *machine.children(recursive=True)]
    listening = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a helper that the JVM had started has ended
            found = process.net_connections("tcp")
            listening += [item.laddr.ip for item in found if item.status == psutil.CONN_LISTEN]
    assert listening, "nothing listens: this looks at the wrong process"
    assert {address.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("name", ["clean_broker", "rolled_preblank", "ipv6_delay"])
def test_a_store_of_apache_rocketmq_is_taken_whole(spark: SparkSession, tmp_path: Path, name: str) -> None:
    lake = lake_in(tmp_path, name)
    result = run_ingest(spark, unpack_golden(name, tmp_path) / "commitlog", lake)
    assert result.rows == {"clean_broker": 18, "rolled_preblank": 919, "ipv6_delay": 4}[name]


def test_a_run_that_dies_before_its_commit_leaves_nothing_that_counts_and_is_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from appliance.reports.lake.broker_lake import Lake
    from appliance.reports.lake.upkeep import clear

    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, _ = write_log(log, day_of_records(40), file_bytes=1 << 14)

    def die(*_: object, **__: object) -> None:
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "commit", die)
        with pytest.raises(OSError, match="no answer"):
            run_ingest(spark, log, lake)
    left = len(list(lake.table.place.folder.glob("date=*/*.parquet")))
    assert left and offsets_in(lake) == [] and lake.position() is None
    run_ingest(spark, log, lake)
    assert offsets_in(lake) == offsets
    with lake.table.writing():
        assert clear(lake.table) == 0, "another program might be about to commit them"
        assert clear(lake.table, hours=0) == left
    assert offsets_in(lake) == offsets


def test_a_full_disk_of_the_lake_names_its_folder_at_once_and_keeps_what_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    from tests.appliance.reports.failing_work import FullFolder

    log, full, lake = tmp_path / "commitlog", lake_in(tmp_path), lake_in(tmp_path)
    folder = full.table.place.folder
    full.table.place = FullFolder(folder)
    *offsets, _ = write_log(log, day_of_records(300), file_bytes=1 << 14)
    with pytest.raises(LakeFull, match=rf"{folder}: the disk of this folder.* full"):
        run_ingest(spark, log, full, limits=small_ranges(5 << 12))
    there = offsets_in(lake)
    assert there == offsets[: len(there)] and there
    assert run_ingest(spark, log, lake).rows == 300 - len(there) and offsets_in(lake) == offsets


def test_what_expired_unread_is_noted_as_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *first, end = write_log(log, day_of_records(20), file_bytes=1 << 14)
    run_ingest(spark, log, lake)
    *second, _ = write_log(log, day_of_records(100), file_bytes=1 << 14, start=end)
    files = sorted(log.iterdir())
    for file in files[:2]:
        file.unlink()
    begin = int(files[2].name)
    result = run_ingest(spark, log, lake)
    assert [gap[:2] for gap in lake.gaps()] == [(end, begin)]
    assert result.gap_bytes == begin - end
    assert offsets_in(lake) == first + [offset for offset in second if offset >= begin]


def test_what_is_deleted_while_it_is_read_becomes_a_gap_and_the_run_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, end = write_log(log, day_of_records(200), file_bytes=1 << 14)
    files = sorted(log.iterdir())
    assert len(files) > 6

    def clean(progress: Any) -> None:
        if progress.rows:  # the first file has been read, and perhaps some of those behind it
            for file in files[:5]:
                file.unlink(missing_ok=True)

    result = run_ingest(spark, log, lake, limits=small_ranges(1 << 14), progress=clean)
    gaps = lake.gaps()  # of two tasks the later one may have been quick enough: then there are two
    gap = gaps[-1]
    assert gap.end == int(files[5].name) and result.gap_bytes == sum(lost.end - lost.begin for lost in gaps) > 0
    kept = [offset for offset in offsets if not any(lost.begin <= offset < lost.end for lost in gaps)]
    assert offsets_in(lake) == kept
    assert (result.end, lake.position()) == (end, end)
    assert gap.from_ms is not None and gap.to_ms is not None
    assert gap.from_ms < gap.to_ms and gap.touches(gap.to_ms, gap.to_ms + 1) and not gap.touches(0, gap.from_ms)


def test_a_body_that_looks_like_a_record_is_found_out(spark: SparkSession, tmp_path: Path) -> None:
    """The file is cut inside a body, where a producer has put a whole chain; then it is read in one piece."""
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    body_at = Record(body=bytes(1 << 15)).encode(0).index(bytes(1 << 15))
    forged, at = b"", body_at
    while len(forged) < 1 << 15:
        forged += Record(topic="forged", body=bytes(400)).encode(at + len(forged))
    *offsets, _ = write_log(log, [Record(body=forged), *day_of_records(100)], file_bytes=1 << 17)
    result = run_ingest(spark, log, lake, limits=small_ranges(1 << 14))
    assert result.rows == 101
    assert offsets_in(lake) == offsets


def test_a_run_whose_time_is_up_commits_what_it_has_and_says_what_is_left(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.ingest import IngestLimits

    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *_, end = write_log(log, day_of_records(20), file_bytes=1 << 14)
    result = run_ingest(spark, log, lake, limits=IngestLimits(until=0.0))
    assert (result.rows, result.end, result.behind_bytes) == (0, 0, end)
    assert run_ingest(spark, log, lake).rows == 20


def test_a_broker_that_cannot_be_read_does_not_stop_the_others(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import ingest_all
    from appliance.reports.runs import RunFolder, RunSpec, new_run_id

    for name in ("broker-a", "broker-b"):
        home = tmp_path / "brokers" / name
        write_log(home / "store" / "commitlog", day_of_records(100), file_bytes=1 << 14)
        (home / "broker.properties").write_text(f"brokerName={name}\n")
    (tmp_path / "brokers" / "broker-a" / "store" / "commitlog" / f"{1 << 14:020}").unlink()
    folder = RunFolder.in_data(tmp_path, new_run_id())
    spec = RunSpec(report="ingest", data=str(tmp_path), begin_ms=0, end_ms=1)
    folder.write_spec(spec)
    results, failures = ingest_all(spark, spec, folder, float("inf"))
    assert [(result.broker_name, result.rows) for result in results] == [("broker-b", 100)]
    assert len(failures) == 1 and f"not {1 << 14:020}" in failures[0]
    assert not list((tmp_path / "brokers" / "broker-b" / "store" / "readers").iterdir())


def test_a_report_names_damage_and_a_gap_in_which_the_clock_was_put_back(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runs import RunSpec

    lake, half = lake_in(tmp_path), HOUR_MS // 2
    log, records = tmp_path / "commitlog", [Record(stored_at=NOON + half)] * 3 + [Record(stored_at=NOON)] * 30
    *offsets, _ = write_log(log, records, file_bytes=1 << 14)
    damage(log, offsets[2], offsets[3])
    run_ingest(spark, log, lake)
    for begin, is_touched in ((NOON - HOUR_MS, False), (NOON, True), (NOON + HOUR_MS, False)):
        spec = RunSpec(report="months", data=str(tmp_path), begin_ms=begin, end_ms=begin + half)
        assert compute(spark, spec)[1] == is_touched * [
            f"broker-a: {readable(offsets[3] - offsets[2])} of the log at physical offset {offsets[2]} are damaged and "
            "not counted; they held messages stored from 2026-11-21 12:00 to 2026-11-21 12:30 UTC"
        ]


def test_after_a_promotion_all_that_is_there_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import ingest_all
    from appliance.reports.runs import RunFolder, RunSpec, new_run_id

    lake = lake_in(tmp_path)
    case = promoted(tmp_path)
    assert run_ingest(spark, log_of(tmp_path, "broker-a"), lake).rows == len(case.old)
    spec = RunSpec(report="ingest", data=str(tmp_path), begin_ms=0, end_ms=1)
    for rows in (20, 0):
        folder = RunFolder.in_data(tmp_path, new_run_id())
        folder.write_spec(spec)
        results, failures = ingest_all(spark, spec, folder, float("inf"))
        assert ([result.rows for result in results], failures) == ([rows], [])
        assert offsets_in(lake) == case.all
    assert not lake.gaps()


def test_a_worker_that_dies_is_replaced_and_one_that_always_fails_is_told_in_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    from appliance.reports.errors import WorkersFailed
    from appliance.reports.worker_jobs import PAUSES_S, run_on_workers
    from tests.appliance.reports.failing_work import die_once, refuse_bad

    pauses: list[float] = []
    marks = [tmp_path / str(number) for number in range(3)]
    marks[0].touch()
    done = list(run_on_workers(spark, die_once, marks, sleep=pauses.append))
    assert done == [str(mark) for mark in marks]
    assert 1 <= len(pauses) <= 3 and pauses[0] == PAUSES_S[0]
    pauses.clear()
    before = []
    with pytest.raises(WorkersFailed, match=r"5 times; the last time: ValueError: no such thing"):
        for result in run_on_workers(spark, refuse_bad, ["fine", "bad", "fine"], sleep=pauses.append):
            before.append(result)
    assert (before, pauses) == (["fine"], [*PAUSES_S])


def test_a_worker_that_does_not_connect_back_in_time_is_started_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a machine does that is too loaded to start a worker in the ten seconds that Spark gives it."""
    from appliance.reports.worker_jobs import PAUSES_S, run_on_workers

    context = spark.sparkContext
    late, numbers = tmp_path / "python", tmp_path / "numbers"
    late.write_text(f"#!/bin/sh\necho $$ >> {numbers}\nexec sleep 600\n")
    late.chmod(0o700)
    conf = context._jvm.org.apache.spark.SparkEnv.get().conf()  # type: ignore[union-attr]
    daemon = "spark.python.use.daemon"  # without it each worker is a process of its own, which Spark waits for

    def wait(pause_s: float) -> None:
        assert pause_s == PAUSES_S[0]
        monkeypatch.undo()
        conf.remove(daemon)  # ten seconds may be too few for a real one, too; a daemon has all the time it needs

    monkeypatch.setattr(context, "pythonExec", str(late))
    conf.set(daemon, "false")
    try:
        with caplog.at_level(logging.WARNING):
            assert list(run_on_workers(spark, str, [7], sleep=wait)) == ["7"]
    finally:
        conf.remove(daemon)
        for pid in numbers.read_text().split() if numbers.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    reasons = [record.__dict__["reason"] for record in caplog.records if record.message == "task failed"]
    assert len(reasons) == 1 and "connect back" in reasons[0]


@pytest.mark.parametrize("what", ["rewritten", "shorter", "empty"])
def test_a_log_that_was_truncated_stops_the_run_and_leaves_the_lake_alone(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, _ = write_log(log, [Record()] * 20, file_bytes=1 << 14)
    run_ingest(spark, log, lake)
    for file in log.iterdir():
        file.unlink()
    if what != "empty":
        records = [Record()] * 10 + [Record(body=b"other", stored_at=NOON + 1)] * (20 if what == "rewritten" else 0)
        write_log(log, records, file_bytes=1 << 14)
    with pytest.raises(LogTruncated, match=r"broker-a: .*truncated or replaced"):
        run_ingest(spark, log, lake)
    assert offsets_in(lake) == offsets


@pytest.mark.parametrize("range_bytes", [1 << 12, 1 << 20])
def test_what_lies_around_damage_is_counted_and_the_damage_is_a_gap_that_is_named(
    spark: SparkSession, tmp_path: Path, range_bytes: int
) -> None:
    """A record's head, a head and bodies in two places of a file, the end of a file, and the file that is written."""
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    *offsets, end = write_log(log, day_of_records(120), file_bytes=1 << 14)
    second = [offset for offset in offsets if 1 << 14 <= offset < 2 << 14]
    last = [offset for offset in offsets if offset >= offsets[-1] - offsets[-1] % (1 << 14)]
    assert len(second) > 20 and len(last) > 3 and last[0] >= 3 << 14, "the log is too small for this"
    holes = [(offsets[5], offsets[5] + 8), (second[4], second[6] + 100), (second[15], 2 << 14), (last[1], last[1] + 40)]
    for begin, stop in holes:
        damage(log, begin, stop)
    result = run_ingest(spark, log, lake, limits=small_ranges(range_bytes))
    gaps = [(offsets[5], offsets[6]), (second[4], second[7]), (second[15], 2 << 14), (last[1], last[2])]
    assert [gap[:2] for gap in lake.gaps()] == gaps and all(gap.is_damage for gap in lake.gaps())
    kept = [offset for offset in offsets if not any(begin <= offset < stop for begin, stop in gaps)]
    assert offsets_in(lake) == kept and result.rows == len(kept)
    assert (result.end, result.behind_bytes, result.gap_bytes) == (end, 0, sum(b - a for a, b in gaps))
    *more, _ = write_log(log, day_of_records(3), file_bytes=1 << 14, start=end)
    assert run_ingest(spark, log, lake).rows == 3 and offsets_in(lake) == kept + more


def test_runs_merge_the_files_of_days_that_are_over_and_let_old_ones_go(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import compute, expired, ingest_all
    from appliance.reports.runs import RunFolder, RunSpec, new_run_id

    broker, day, runs = tmp_path / "brokers" / "broker-a", 24 * HOUR_MS, 6
    broker.mkdir(parents=True)
    (broker / "broker.properties").write_text("brokerName=broker-a\n")
    lake = lake_in(tmp_path)
    begin, end, offset = NOON - 1000 * day, NOON - 998 * day, 0
    spec = RunSpec(report="traffic", data=str(tmp_path), begin_ms=begin, end_ms=end)
    folder = RunFolder.in_data(tmp_path, new_run_id())
    folder.write_spec(spec)
    for number in range(runs):
        records = [Record(topic=f"t{at % 3}", stored_at=begin + number * HOUR_MS + at) for at in range(20)]
        offset = write_log(broker / "store" / "commitlog", records, start=offset)[-1]
        assert ingest_all(spark, spec, folder, float("inf"))[1] == []
    assert len(lake.table.files()) < runs and sum(file.rows for file in lake.table.files()) == 20 * runs
    table, notes = compute(spark, spec)
    counts: Counter[str] = Counter()
    for row in table.to_pylist():
        counts[row["topic"]] += row["messages"]
    assert (counts, notes, expired(spec)) == ({"t0": 7 * runs, "t1": 7 * runs, "t2": 6 * runs}, [], [])
    ingest_all(spark, dataclasses.replace(spec, lake_days=30), folder, float("inf"))
    assert lake.table.files() == [] and lake.position() == offset
    assert compute(spark, spec)[0].num_rows == 0 and "is limited" in expired(spec)[0]
