"""Reports over a lake with a real Spark, each number recomputed by DuckDB from the same files."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES
from appliance.reports.samples.lines import MINUTE_MS, append
from tests.appliance.reports.counted import counted, counted_last_use, counted_samples
from tests.appliance.reports.lakes import lake_in, paths_of, with_delta_scan
from tests.appliance.reports.samples.rows import broker_sample, group_sample, sample
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log
from tests.appliance.reports.with_spark.inputs import day_of_records, run_ingest, small_ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
