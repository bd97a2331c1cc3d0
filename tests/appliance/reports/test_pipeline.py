"""Commit log to lake to report with a real Spark, each number recomputed by DuckDB from the lake or counted by hand."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import signal
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import psutil
import pytest

from appliance.reports.errors import LakeFull, LogTruncated
from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES
from appliance.reports.samples.lines import MINUTE_MS, append
from tests.appliance.reports.counted import counted, counted_last_use, counted_samples
from tests.appliance.reports.lakes import lake_in, offsets_in, paths_of, with_delta_scan
from tests.appliance.reports.runner.promoted import log_of, promoted
from tests.appliance.reports.samples.rows import broker_sample, group_sample, sample
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, unpack_golden, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_ingest(spark: SparkSession, log: Path, lake: Any, **options: Any) -> Any:
    from appliance.reports.runner.ingest import ingest

    return ingest(spark, [log], lake, **options)


def small_ranges(range_bytes: int) -> Any:
    from appliance.reports.runner.ingest import IngestLimits

    return IngestLimits(range_bytes=range_bytes, range_bytes_min=range_bytes)


def day_of_records(count: int, body_bytes: int = 400) -> list[Record]:
    """Records of three topics over several hours and two days, tags and address families mixed."""
    topics = itertools.cycle(["orders", "mail", "%RETRY%billing", "orders"])
    return [
        Record(
            topic=next(topics),
            body=bytes(body_bytes),
            stored_at=NOON + index * 15 * HOUR_MS // count,
            properties={"TAGS": "t"} if index % 3 else {},
            born_ip="2001:db8::1" if index % 5 == 0 else "10.0.0.1",
            is_v2=index % 7 == 0,
        )
        for index in range(count)
    ]


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
            f"broker-a: {offsets[3] - offsets[2]} bytes of the log at physical offset {offsets[2]} are damaged and not "
            "counted; they held messages stored from 2026-11-21 12:00 to 2026-11-21 12:30 UTC"
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
    from appliance.reports.worker_jobs import PAUSES_S, run_on_a_worker
    from tests.appliance.reports.failing_work import die_once, refuse

    pauses: list[float] = []
    assert run_on_a_worker(spark, die_once, tmp_path / "once", sleep=pauses.append) == "done"
    assert pauses == [PAUSES_S[0]]
    with pytest.raises(WorkersFailed, match=r"5 times; the last time: ValueError: no such thing"):
        run_on_a_worker(spark, refuse, None, sleep=pauses.append)
    assert pauses == [PAUSES_S[0], *PAUSES_S]


def test_a_worker_that_does_not_connect_back_in_time_is_started_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a machine does that is too loaded to start a worker in the ten seconds that Spark gives it."""
    from appliance.reports.worker_jobs import PAUSES_S, run_on_a_worker

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
            assert run_on_a_worker(spark, str, 7, sleep=wait) == "7"
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


def damage(log: Path, begin: int, end: int, file_bytes: int = 1 << 14) -> None:
    """Zeros over a part of a file."""
    with (log / f"{begin - begin % file_bytes:020}").open("r+b") as file:
        file.seek(begin % file_bytes)
        file.write(bytes(end - begin))


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


def test_the_traffic_report_agrees_with_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    import duckdb

    from appliance.cli import report as report_command
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runs import RunSpec

    logs = {"broker-a": day_of_records(200), "broker-b": [Record(topic="SCHEDULE_TOPIC_XXXX"), *day_of_records(60)]}
    for name, records in logs.items():
        log, lake = tmp_path / name, lake_in(tmp_path, name)
        write_log(log, records, file_bytes=1 << 14)
        run_ingest(spark, log, lake)
    paths = paths_of(lake.table)
    begin, end = NOON + HOUR_MS, NOON + 14 * HOUR_MS
    spec = RunSpec(report="traffic", data=str(tmp_path), begin_ms=begin, end_ms=end)
    table, notes = compute(spark, spec)
    expected = duckdb.sql(
        f"""SELECT strftime(store_timestamp AT TIME ZONE 'UTC', '%Y-%m-%d %H') AS hour, topic,
                   count(*), sum(size_bytes)::BIGINT, sum(body_bytes)::BIGINT
            FROM read_parquet({paths}) WHERE epoch_ms(store_timestamp) >= {begin} AND epoch_ms(store_timestamp) < {end}
            GROUP BY ALL ORDER BY 1, 2"""
    ).fetchall()
    found = [
        (f"{row['hour']:%Y-%m-%d %H}", row["topic"], row["messages"], row["stored_bytes"], row["body_bytes"])
        for row in table.to_pylist()
    ]
    assert found == expected
    assert len(found) > 30
    every = [record for records in logs.values() for record in records]
    assert sum(row[2] for row in found) == sum(begin <= record.stored_at < end for record in every)
    assert notes == []

    sql = report_command.__doc__.split('duckdb -c "')[1].rpartition('"')[0]
    (tmp_path / Path(paths[0]).with_name("unlisted.parquet")).write_bytes(Path(paths[0]).read_bytes())
    by_topic = with_delta_scan(sql.replace("DATA", str(tmp_path)))
    assert dict(by_topic) == Counter(record.topic for record in every)

    only, _ = compute(
        spark, RunSpec(report="traffic", data=str(tmp_path), begin_ms=begin, end_ms=end, topics=("mail",))
    )
    assert only.num_rows and set(only["topic"].to_pylist()) == {"mail"}


def test_traffic_counts_by_topic_and_hour_and_marks_what_is_not_an_ordinary_topic(spark: SparkSession) -> None:
    """S50: names with quotes in them are bound as values."""
    from appliance.reports.transforms import traffic_per_topic_and_hour

    messages = frame(
        spark,
        [
            ("orders", NOON, 100, 10),
            ("orders", NOON + HOUR_MS - 1, 200, 20),
            ("orders", NOON + HOUR_MS, 300, 30),
            ("orders", NOON - 1, 1, 1),
            ("orders", NOON + 2 * HOUR_MS, 1, 1),
            ("%RETRY%g", NOON, 1, 0),
            ("%DLQ%g", NOON, 1, 0),
            ("RMQ_SYS_TRACE_TOPIC", NOON, 1, 0),
            ("rmq_sys_x", NOON, 1, 0),
            ('it\'s "odd"', NOON, 1, 0),
        ],
    )
    rows = traffic_per_topic_and_hour(messages, NOON, NOON + 2 * HOUR_MS).collect()
    assert [(row.hour.hour, row.topic, row.kind, row.messages, row.stored_bytes, row.body_bytes) for row in rows] == [
        (12, "%DLQ%g", "dead letter", 1, 1, 0),
        (12, "%RETRY%g", "retry", 1, 1, 0),
        (12, "RMQ_SYS_TRACE_TOPIC", "system", 1, 1, 0),
        (12, 'it\'s "odd"', "normal", 1, 1, 0),
        (12, "orders", "normal", 2, 300, 30),
        (12, "rmq_sys_x", "system", 1, 1, 0),
        (13, "orders", "normal", 1, 300, 30),
    ]
    bound = traffic_per_topic_and_hour(messages, NOON, NOON + HOUR_MS, ['it\'s "odd"', "' OR 1=1 --"]).collect()
    assert [row.topic for row in bound] == ['it\'s "odd"']


def test_a_lake_without_files_gives_an_empty_report(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runs import RunSpec

    table, _ = compute(spark, RunSpec(report="traffic", data=str(tmp_path), begin_ms=0, end_ms=1))
    assert table.num_rows == 0
    assert table.column_names == ["hour", "topic", "kind", "messages", "stored_bytes", "body_bytes"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_lake_in_a_store_is_read_by_spark_or_by_its_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    from appliance.reports.lake import reader
    from appliance.reports.lake.place import Place
    from appliance.settings.lake_place import StoreAddress

    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    lake.table.place = Place(StoreAddress(f"file://{tmp_path}/place/messages"))
    records = [*day_of_records(60), Record(topic="%DLQ%g", properties={"CONSUME_ERROR": "shop.Late at a.py:1"})]
    *offsets, _ = write_log(log, records, file_bytes=1 << 14)
    assert run_ingest(spark, log, lake, limits=small_ranges(5 << 12)).rows == len(records)
    monkeypatch.setattr(reader, "_is_known", lambda *_: is_known)
    rows = reader.read_table(spark, lake.table, 0, 1 << 42).collect()
    assert sorted(row.physical_offset for row in rows) == offsets
    assert Counter(row.store_timestamp for row in rows) == Counter(record.stored_at for record in records)
    assert {(row.topic, row.cause) for row in rows if row.cause} == {("%DLQ%g", "shop.Late at a.py:1")}
    assert {row.broker_name for row in rows} == {"broker-a"}


def samples_ddl(kind: str) -> str:
    """The columns of samples as reports get them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from appliance.reports.samples.schemas import SCHEMAS

    columns = from_arrow_schema(SCHEMAS[kind]).fields
    return ", ".join(
        "at_ms BIGINT" if column.name == "at" else f"`{column.name}` {column.dataType.simpleString()}"
        for column in columns
    )


def frame(spark: SparkSession, rows: Iterable[tuple[str, int, int, int]]) -> Any:
    from pyspark.sql import functions as F

    from appliance.reports.lake.record_columns import SCHEMA

    wanted = spark.createDataFrame(list(rows), "topic STRING, store_timestamp BIGINT, size_bytes INT, body_bytes INT")
    return wanted.select(*(F.col(name) if name in wanted.columns else F.lit(None).alias(name) for name in SCHEMA.names))


def test_every_report_agrees_with_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """Over nine days in which a clock was put back, in the zone of that clock."""
    from appliance.reports.catalogue import REPORTS
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runs import RunSpec

    begin = int(datetime(2026, 10, 17, 22, tzinfo=UTC).timestamp() * 1000)
    held = ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"]
    topics = itertools.cycle(["orders", "mail", "%RETRY%billing", "%DLQ%billing", *held, "orders"])
    records = [
        Record(
            topic=next(topics),
            body=bytes(index * index % 1009),
            stored_at=begin + index * 9 * 24 * HOUR_MS // 400,
            born_ip=f"10.0.{index % 3}.{index % 5}",
            queue_id=index % 3,
            sys_flag=8 if index % 5 == 1 else 0,
            properties=(
                {"TRANSACTION_CHECK_TIMES": "3"}
                if index % 16 == 5
                else {"CONSUME_ERROR": f"shop.Error{index % 3} at a.py:1"}
                if index % 5
                else {}
            ),
        )
        for index in range(400)
    ]
    log, lake = tmp_path / "commitlog", lake_in(tmp_path)
    write_log(log, records, file_bytes=1 << 16)
    run_ingest(spark, log, lake)
    paths = paths_of(lake.table)
    end, zone = begin + 9 * 24 * HOUR_MS, "Europe/Berlin"
    for name in sorted(
        name for name, report in REPORTS.items() if report.tables == ("messages",) and name != "traffic"
    ):
        spec = RunSpec(report=name, data=str(tmp_path), begin_ms=begin, end_ms=end, zone=zone)
        table, notes = compute(spark, spec)
        assert table.column_names == [column.name for column in REPORTS[name].columns]
        found, expected = [tuple(row.values()) for row in table.to_pylist()], counted(name, paths, begin, end, zone)
        assert [row[:3] for row in found] == [row[:3] for row in expected], name
        close = 1e-4 if name == "forecast" else 1e-6  # its quantile is a series
        assert found == [
            tuple(pytest.approx(value, rel=close) if isinstance(value, float | int) else value for value in row)
            for row in expected
        ], name
        assert len(found) > 1 and notes == []


def test_the_report_of_slaves_agrees_with_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """Over two days in which a clock was put back, in the zone of that clock, with what runs copied at two times."""
    from appliance.reports.catalogue import REPORTS
    from appliance.reports.lake.lakes import Lakes
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runner.sample_table import copy_samples
    from appliance.reports.runs import RunSpec

    begin = int(datetime(2026, 10, 24, tzinfo=UTC).timestamp() * 1000)
    end, zone = begin + 48 * HOUR_MS, "Europe/Berlin"
    spec = RunSpec(report="slaves", data=str(tmp_path), begin_ms=begin, end_ms=end, zone=zone)
    assert compute(spark, spec)[0].num_rows == 0, "nothing was ever sampled"
    for minute in range(-60, 49 * 60, 7):
        at_ms = begin + minute * MINUTE_MS
        one = sample(at_ms, behind_messages=None if minute % 5 else minute % 11, behind_bytes=minute * minute % 997)
        other = sample(at_ms, "broker-a:2", in_sync=bool(minute % 3), seconds=1 + minute % 60)
        append(tmp_path, SLAVES, [one, other])
        if minute == 24:
            copy_samples(tmp_path, Lakes(tmp_path))
    copy_samples(tmp_path, Lakes(tmp_path))
    table, notes = compute(spark, spec)
    assert table.column_names == [column.name for column in REPORTS["slaves"].columns] and notes == []
    slaves = Lakes(tmp_path).of_samples("slaves")
    expected = counted_samples("slaves", paths_of(slaves), begin, end, zone)
    assert [tuple(row.values()) for row in table.to_pylist()] == [pytest.approx(row) for row in expected]
    assert len(expected) == 2 * 48  # an hour that comes twice on the clock is two
    assert [row[0] for row in expected[::2] if row[0].startswith("2026-10-25 02")] == [
        "2026-10-25 02:00 +02:00",
        "2026-10-25 02:00 +01:00",
    ]


def test_the_report_of_slaves_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, minute = NOON, MINUTE_MS
    samples = spark.createDataFrame(
        [
            (noon - minute, "a", "a:1", 9999, 9999, 99.0, False, 9e9, 60),
            (noon, "a", "a:1", 0, 0, 0.0, True, 100.0, 60),
            (noon + minute, "a", "a:1", 700, 7, 0.4, True, 200.0, 30),
            (noon + 2 * minute, "a", "a:1", 300, None, 2.5, False, 0.0, 10),
            (noon + 59 * minute, "a", "a:1", 0, 0, 0.0, True, 0.0, 50),
            (noon, "b", "b:1", 5, None, 0.1, True, 10.0, 60),
            (noon + minute, "b", "b:1", 4, None, 0.2, True, 20.0, 60),
            (noon + 60 * minute, "a", "a:1", 1, 1, 0.1, True, 1.0, 60),
            (noon + 61 * minute, "a", "a:1", 2, 3, 0.3, False, 3.0, 60),
            (noon + 120 * minute, "a", "a:1", 9999, 9999, 99.0, False, 9e9, 60),
        ],
        samples_ddl("slaves"),
    )
    found = TRANSFORMS["slaves"](samples, Scope(noon, noon + 2 * HOUR_MS)).collect()
    assert [tuple(row) for row in found] == [
        ("2026-11-21 12:00", "a:1", 700, 7, 2.5, 4, 0.75, pytest.approx(12_000 / 150)),
        ("2026-11-21 12:00", "b:1", 5, None, 0.2, 2, 1.0, 15.0),
        ("2026-11-21 13:00", "a:1", 2, 3, 0.3, 2, 0.5, 2.0),
    ]


def test_the_reports_of_groups_and_brokers_agree_with_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """Over two days in which a clock was put forward, in the zone of that clock."""
    from appliance.reports.catalogue import REPORTS
    from appliance.reports.lake.lakes import Lakes
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runner.sample_table import copy_samples
    from appliance.reports.runs import RunSpec

    begin = int(datetime(2026, 3, 28, tzinfo=UTC).timestamp() * 1000)
    end, zone = begin + 48 * HOUR_MS, "Europe/Berlin"
    for minute in range(-60, 49 * 60, 7):
        at_ms, late = begin + minute * MINUTE_MS, float(minute * minute % 97)
        append(tmp_path, GROUPS, [
            group_sample(at_ms, behind_seconds=late, consumed=None if minute % 5 else minute % 31, counted_minutes=7),
            group_sample(at_ms, "mail", behind_seconds=late / 2, lag=minute % 13),
            group_sample(at_ms, "unsure", behind_seconds=None, lag=None),
        ])  # fmt: skip
        append(tmp_path, BROKERS, [broker_sample(at_ms, in_rate=late, disk_ratio=late / 100, seconds=1 + minute % 60)])
    copy_samples(tmp_path, Lakes(tmp_path))
    for name, rows in (("lag", 3 * 48), ("brokers", 48)):
        spec = RunSpec(
            report=name, data=str(tmp_path), begin_ms=begin, end_ms=end, zone=zone, promises={"": 20.0, "mail": 40.5}
        )
        table, notes = compute(spark, spec)
        assert table.column_names == [column.name for column in REPORTS[name].columns] and notes == []
        samples = Lakes(tmp_path).of_samples("groups" if name == "lag" else "brokers")
        expected = counted_samples(name, paths_of(samples), begin, end, zone)
        assert [tuple(row.values()) for row in table.to_pylist()] == [pytest.approx(row) for row in expected]
        assert len(expected) == rows


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


def test_the_lag_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, minute = NOON, MINUTE_MS
    rows = [
        (noon - minute, "a", 99, 99.0), (noon, "a", 5, 10.0), (noon + minute, "a", 7, 10.5),
        (noon + 2 * minute, "a", None, None), (noon + 60 * minute, "a", 1, 0.0), (noon, "b", 3, 61.0),
        (noon + minute, "b", 4, 59.0), (noon, "c", 0, 0.0), (noon + minute, "c", 2, 3000.0),
        (noon + 120 * minute, "a", 99, 99.0),
    ]  # fmt: skip
    samples = spark.createDataFrame(
        [(at, group, lag, late, 1, 10, 20, 0, 1, 120, 240, 1) for at, group, lag, late in rows], samples_ddl("groups")
    )
    scope = Scope(noon, noon + 2 * HOUR_MS, promises={"a": 10.0, "": 60.0})
    found = TRANSFORMS["lag"](samples, scope).collect()
    assert [tuple(row) for row in found] == [
        ("2026-11-21 12:00", "a", 10.5, 10.0, 1, 3, 7, 2.0, 4.0),
        ("2026-11-21 12:00", "b", 61.0, 60.0, 1, 2, 4, 2.0, 4.0),
        ("2026-11-21 12:00", "c", 3000.0, 60.0, 1, 2, 2, 2.0, 4.0),
        ("2026-11-21 13:00", "a", 0.0, 10.0, 0, 1, 1, 2.0, 4.0),
    ]
    without = TRANSFORMS["lag"](samples, Scope(noon, noon + HOUR_MS, promises={"b": 1.0})).collect()
    assert [(row.group, row.promise_seconds, row.minutes_over) for row in without] == [
        ("a", None, None), ("b", 1.0, 2), ("c", None, None),
    ]  # fmt: skip


def test_the_rates_of_a_group_are_those_that_its_offsets_tell(spark: SparkSession) -> None:
    """A recount from nothing but offsets: minutes seen in part, minutes left out, and rows of before they counted."""
    from appliance.reports.transforms import TRANSFORMS, Scope

    offsets = {"burst": [0, 20_000, 20_000, 20_000], "steady": [0, 23_990, 47_980, 71_970, 95_960, 119_950]}
    at = {"burst": [0, 1, 2, 3], "steady": [0, 1, 3, 4, 5, 9]}  # the minute of each
    rows: list[tuple[Any, ...]] = [
        (NOON + here * MINUTE_MS, name, 0, 0.0, 1, done, done, 0, 5, None, done - before, here - earlier)
        for name in offsets
        for (earlier, here), (before, done) in zip(
            itertools.pairwise(at[name]), itertools.pairwise(offsets[name]), strict=True
        )
    ]
    rows.append((NOON, "steady", 0, 0.0, 1, 0, 0, 0, 1, None, None, None))
    samples = spark.createDataFrame(rows, samples_ddl("groups"))
    found = TRANSFORMS["lag"](samples, Scope(NOON, NOON + HOUR_MS)).collect()
    assert [(row.group, row.in_rate, row.out_rate) for row in found] == [
        (name, None, pytest.approx((offsets[name][-1] - offsets[name][0]) / (at[name][-1] * 60))) for name in offsets
    ]


def test_what_is_unused_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.runner.listed_names import NAMES_DDL
    from appliance.reports.transforms import TRANSFORMS, Scope

    day = 24 * HOUR_MS
    names = [("topic", "busy"), ("topic", "never"), ("topic", "old"), ("group", "alive"), ("group", "asleep"),
             ("group", "moving"), ("group", "unseen"), ("group", "fresh")]  # fmt: skip
    stored = [("busy", NOON), ("busy", NOON - 5 * day), ("old", NOON - 3 * day), ("old", NOON + day), ("gone", NOON)]
    seen = [  # members, consumer offset, newest consumed
        ("alive", NOON, 1, 10, 0), ("asleep", NOON - 2 * day, 1, 10, NOON - 4 * day), ("asleep", NOON, 0, 10, 0),
        ("moving", NOON, 0, 10, 0), ("moving", NOON + MINUTE_MS, 0, 11, NOON - day), ("unseen", NOON - day, 0, 1, 0),
        ("fresh", NOON, 0, 0, 0), ("deleted", NOON, 0, 0, 0),
    ]  # fmt: skip
    samples = [
        (at, group, 0, 0.0, members, at_offset, 25, last, 1, 0, 0, 1) for group, at, members, at_offset, last in seen
    ]
    found = TRANSFORMS["unused"](
        spark.createDataFrame(stored, "topic STRING, store_timestamp BIGINT"),
        spark.createDataFrame(names, NAMES_DDL),
        spark.createDataFrame(samples, samples_ddl("groups")),
        Scope(NOON - HOUR_MS, NOON + HOUR_MS),
    ).collect()
    assert [tuple(row) for row in found] == [
        ("topic", "never", None, None, None),
        ("topic", "old", NOON - 3 * day, 3, None),
        ("group", "fresh", None, None, 25),
        ("group", "asleep", NOON - 2 * day, 2, 15),
    ]


def test_unused_topics_agree_with_duckdb_and_the_brokers_own_lists(spark: SparkSession, tmp_path: Path) -> None:
    from appliance.reports.runner.jobs import compute
    from appliance.reports.runs import RunSpec

    folder, lake = tmp_path / "brokers" / "broker-a", lake_in(tmp_path)
    config = folder / "store" / "config"
    config.mkdir(parents=True)
    (folder / "broker.properties").write_text("brokerName=broker-a\n")
    topics = ["orders", "mail", "attic", "broker-a", "DefaultCluster", "%RETRY%g", "SCHEDULE_TOPIC_XXXX"]
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": {topic: {} for topic in topics}}))
    (config / "subscriptionGroup.json").write_text("torn")
    stored = [("orders", 0), ("mail", 40), ("mail", 41), ("orders", 90)]
    records = [Record(topic=topic, stored_at=NOON + hours * HOUR_MS) for topic, hours in stored]
    write_log(folder / "store" / "commitlog", records)
    run_ingest(spark, folder / "store" / "commitlog", lake)
    begin, end = NOON + 80 * HOUR_MS, NOON + 100 * HOUR_MS
    table, _ = compute(spark, RunSpec(report="unused", data=str(tmp_path), begin_ms=begin, end_ms=end))
    paths = paths_of(lake.table)
    last = counted_last_use(paths, ["attic", "mail"], end)
    assert [(row["name"], row["last_ms"]) for row in table.to_pylist()] == last
    assert last == [("attic", None), ("mail", NOON + 41 * HOUR_MS)]


def test_days_are_those_of_the_zone_when_its_clocks_change(spark: SparkSession) -> None:
    """A message an hour: a day of 23 and one of 25 hours; the day before and the week before are the calendar's."""
    from appliance.reports.transforms import Scope, traffic_per_day

    for day, hours in ((datetime(2026, 3, 29), 23), (datetime(2026, 10, 25), 25)):
        zone = ZoneInfo("Europe/Berlin")
        first = int((day - timedelta(days=8)).replace(tzinfo=zone).timestamp() * 1000)
        begin, end = (int(moment.replace(tzinfo=zone).timestamp() * 1000) for moment in (day, day + timedelta(days=2)))
        messages = frame(spark, [("orders", at, 100, 10) for at in range(first, end, HOUR_MS)])
        rows = traffic_per_day(messages, Scope(begin + HOUR_MS, end, zone="Europe/Berlin")).collect()
        assert [tuple(row) for row in rows] == [
            (f"{day:%Y-%m-%d}", hours, 100 * hours, 24, hours / 24 - 1, 24, hours / 24 - 1),
            (f"{day + timedelta(days=1):%Y-%m-%d}", 24, 2400, hours, 24 / hours - 1, 24, 0.0),
        ]


def test_a_day_without_messages_is_a_row_but_one_that_has_not_come_is_none(spark: SparkSession) -> None:
    from appliance.reports.transforms import Scope, traffic_per_day

    day = 24 * HOUR_MS
    messages = frame(spark, [("orders", NOON + at * day, 100, 10) for at in (0, 0, 2)])
    begin, end, now = NOON - 3 * day, NOON + 9 * day, NOON + 3 * day + HOUR_MS
    rows = traffic_per_day(messages, Scope(begin, end, now_ms=now)).collect()
    assert [(row.day, row.messages, row.stored_bytes, row.day_change) for row in rows] == [
        ("2026-11-21", 2, 200, None),
        ("2026-11-22", 0, 0, -1.0),
        ("2026-11-23", 1, 100, None),
        ("2026-11-24", 0, 0, -1.0),
    ]
    assert traffic_per_day(messages, Scope(begin, begin + day, now_ms=now)).count() == 0


def test_a_forecast_of_a_range_that_ends_tomorrow_begins_today(spark: SparkSession) -> None:
    from pyspark.sql import functions

    from appliance.reports.transforms import TRANSFORMS, Scope

    day = 24 * HOUR_MS
    stored = [("orders", NOON + at * day, 100, 10) for at in range(5)]
    messages = frame(spark, stored).withColumn("broker_name", functions.lit("broker-a"))
    scope = Scope(NOON, NOON + 30 * day, now_ms=NOON + 4 * day)
    kinds = Counter(row.kind for row in TRANSFORMS["forecast"](messages, scope).collect())
    assert kinds == {"stored": 3, "forecast": 14}


def test_days_and_months_of_a_zone_whose_clocks_change_a_minute_after_midnight(spark: SparkSession) -> None:
    """Newfoundland's until 2011: one UTC hour holds two days of it, and here two months."""
    from appliance.reports.transforms import Scope, bytes_by_topic_and_month, traffic_per_day

    zone = ZoneInfo("America/St_Johns")
    begin, end = (
        int(day.replace(tzinfo=zone).timestamp() * 1000) for day in (datetime(2009, 10, 30), datetime(2009, 11, 3))
    )
    times = range(begin, end, 20_000)
    days = Counter(f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d}" for at in times)
    assert days["2009-11-01"] != days["2009-10-30"], "no clock changes here"
    messages = frame(spark, [("orders", at, 100, 10) for at in times])
    scope = Scope(begin, end, zone=zone.key)
    assert {row.day: row.messages for row in traffic_per_day(messages, scope).collect()} == days
    months = Counter(day[:7] for day in days.elements())
    assert {row.month: row.messages for row in bytes_by_topic_and_month(messages, scope).collect()} == months


def test_each_report_of_ten_rows_is_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import TRANSFORMS, Scope

    noon, hour = NOON, HOUR_MS
    columns = (
        "topic STRING, born_host STRING, store_timestamp BIGINT, born_timestamp BIGINT, size_bytes INT, "
        "body_bytes INT, reconsume_times INT, cause STRING"
    )
    messages = spark.createDataFrame(
        [
            ("orders", "a", noon, noon - 10, 100, 1, 0, None),
            ("orders", "a", noon + hour, noon + hour - 30, 100, 3, 0, None),
            ("orders", "b", noon + hour, noon + hour + 5, 100, 5, 0, None),
            ("mail", "b", noon + 2 * hour, noon + 2 * hour, 700, 9, 0, None),
            ("%RETRY%g", "a", noon, noon - 1, 10, 1, 2, None),
            ("%RETRY%g", "a", noon + hour, noon - 1, 10, 1, 3, "shop.OutOfStock at a.py:1"),
            ("%DLQ%g", "a", noon + hour, noon - 1, 10, 1, 16, "shop.OutOfStock at a.py:1"),
            ("SCHEDULE_TOPIC_XXXX", "a", noon, noon - 1, 10, 1, 0, None),
            ("orders", "a", noon - 1, noon - 1, 5, 1, 0, None),
            ("orders", "a", noon + 3 * hour, noon, 5, 1, 0, None),
        ],
        columns,
    )
    expected = {
        "months": [
            ("2026-11", "mail", "normal", 1, 700, 9),
            ("2026-11", "orders", "normal", 3, 300, 9),
            ("2026-11", "%RETRY%g", "retry", 2, 20, 2),
            ("2026-11", "%DLQ%g", "dead letter", 1, 10, 1),
            ("2026-11", "SCHEDULE_TOPIC_XXXX", "system", 1, 10, 1),
        ],
        "producers": [("a", 2, 200, 1, noon, noon + hour), ("b", 2, 800, 2, noon + hour, noon + 2 * hour)],
        "talkers": [("b", "mail", 1, 700, 0.7), ("a", "orders", 2, 200, 0.2), ("b", "orders", 1, 100, 0.1)],
        "sizes": [("mail", 1, 9, 9.0, 9.0, 9.0, 9), ("orders", 3, 1, 3.0, 4.6, 4.96, 5)],
        "latency": [("mail", 1, 0.0, 0.0, 0.0, 0, 0), ("orders", 3, 10.0, 26.0, 29.6, 30, 1)],
        "retries": [
            ("2026-11-21", "g", "no client told", 1, 0, 2),
            ("2026-11-21", "g", "shop.OutOfStock at a.py:1", 1, 1, 16),
        ],
    }
    for name, rows in expected.items():
        found = TRANSFORMS[name](messages, Scope(noon, noon + 3 * hour)).collect()
        assert [tuple(row) for row in found] == [pytest.approx(row) for row in rows], name
    only = TRANSFORMS["sizes"](messages, Scope(noon, noon + 3 * hour, topics=["mail"])).collect()
    assert [row.topic for row in only] == ["mail"]


def test_delays_and_transactions_of_ten_rows_are_what_a_person_counts(spark: SparkSession) -> None:
    from appliance.reports.transforms import Scope, delays, transactions

    half, op, day = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", 24 * HOUR_MS
    rows = [
        ("SCHEDULE_TOPIC_XXXX", 2, 0, 0, NOON),
        ("SCHEDULE_TOPIC_XXXX", 2, 0, 1, NOON),  # a group sent it back
        ("SCHEDULE_TOPIC_XXXX", 17, 0, 0, NOON),
        ("rmq_sys_wheel_timer", 0, 0, 0, NOON),
        (half, 0, 0, 0, NOON),
        (half, 0, 0, 0, NOON, 1),  # stored again, because its producer was asked
        (half, 0, 0, 0, NOON + day, 0),  # or before that, in the time in which nobody asks
        (half, 0, 0, 0, NOON + day),
        (op, 0, 0, 0, NOON + day),
        (op, 0, 0, 0, NOON + day),
        ("orders", 0, 8, 0, NOON + day),  # committed
        ("%RETRY%g", 0, 8, 1, NOON + day),  # and sent back
        ("TRANS_CHECK_MAX_TIME_TOPIC", 0, 0, 0, NOON + day),
    ]
    messages = spark.createDataFrame(
        [(*row[:5], row[5] if len(row) > 5 else None, 100) for row in rows],
        "topic STRING, queue_id INT, sys_flag INT, reconsume_times INT, store_timestamp BIGINT, check_times INT, "
        "size_bytes INT",
    )
    scope = Scope(NOON, NOON + 2 * day)
    assert [tuple(row) for row in delays(messages, scope).collect()] == [
        ("2026-11-21", "level 03", 1, 1, 200),
        ("2026-11-21", "level 18", 1, 0, 100),
        ("2026-11-21", "a time of its own", 1, 0, 100),
    ]
    assert [tuple(row) for row in transactions(messages, scope).collect()] == [
        ("2026-11-21", 1, 0, 0, 0),
        ("2026-11-22", 1, 1, 1, 1),
    ]


def test_a_forecast_follows_the_line_of_whole_days(spark: SparkSession) -> None:
    """The day a broker began and the one that is not over don't count; a day without messages does; two say nothing."""
    from appliance.reports.transforms import Scope, forecast

    day = 24 * HOUR_MS
    first = NOON - NOON % day
    grows = [("a", first + number * day + HOUR_MS, 1000 * number) for number in (0, 1, 2, 3, 4)]
    rests = [("b", first + day, 500), ("b", first + 2 * day, 300), ("b", first + 4 * day, 300)]
    young = [("c", first + 2 * day, 7)]
    messages = spark.createDataFrame(
        [(broker, "orders", at, size) for broker, at, size in (*grows, ("a", first + 5 * day, 9), *rests, *young)],
        "broker_name STRING, topic STRING, store_timestamp BIGINT, size_bytes INT",
    )
    reach = (60_000 * (1 + 1 / 3 + 2**2 / 2)) ** 0.5  # residuals of 100, -200, 100; the day is two from the mean
    rows = forecast(messages, Scope(first, first + 5 * day + HOUR_MS)).collect()
    found = {name: [tuple(row)[1:] for row in rows if row.broker == name] for name in "abc"}
    stored = [(f"2026-11-2{1 + number}", "stored", 1000 * number, None, None) for number in (1, 2, 3, 4)]
    ahead = [(f"2026-11-{25 + step}", "forecast", 4000 + 1000 * step) for step in range(1, 6)]
    assert found["a"][:4] == stored
    assert found["a"][4:9] == [(*row, row[2], row[2]) for row in ahead]  # a straight line has no spread
    assert len(found["a"]) == 18
    assert [row[2] for row in found["b"][:3]] == [300, 0, 300]
    day_after = found["b"][3]  # a flat line through 300, 0, 300: Student's t of one degree of freedom is 3.0777
    assert day_after[2] == 200 and day_after[3] == 0 and day_after[4] == pytest.approx(200 + 3.0777 * reach, abs=1)
    assert [row[1] for row in found["c"]] == ["stored", "stored"]
