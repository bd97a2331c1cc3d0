"""The process of one report run: `python -m appliance.reports.jobs RUN_FOLDER`, started by the launcher only.

Session, ingest of every broker, the report over all lakes, result files. A process of its own, so that its memory is
free afterwards. It writes its part of the status to `outcome.json`; the launcher adds how the process ended.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from appliance.process.parent_death import ask_for_signal
from appliance.reports.broker_folders import brokers_in
from appliance.reports.errors import ReportError
from appliance.reports.ingest import IngestResult, ingest
from appliance.reports.manifest import Lake, lakes_in
from appliance.reports.record_columns import SCHEMA_DDL
from appliance.reports.results import write_results
from appliance.reports.runs import RunFolder, RunSpec, write_json
from appliance.reports.session import create_session
from appliance.reports.transforms import traffic_per_topic_and_hour

logger = logging.getLogger(__name__)

NICE = 10  # brokers have priority over reports


def run(folder: RunFolder) -> None:
    """Run the report. Raises ReportError, and Spark's errors."""
    spec = folder.spec()
    seconds: dict[str, float] = {}
    folder.write_progress("starting", "Starting Spark")
    began = time.monotonic()
    spark = create_session(folder.work_path, master=spec.master, driver_memory=spec.driver_memory, conf=spec.conf)
    seconds["session"] = _lap(began)
    try:
        began = time.monotonic()
        ingested = ingest_all(spark, spec, folder)
        seconds["ingest"] = _lap(began)
        rows = 0
        if spec.report == "traffic":
            began = time.monotonic()
            folder.write_progress("report", "Counting messages by topic and hour", sum(item.rows for item in ingested))
            table, notes = traffic(spark, spec)
            write_results(folder, table, begin_ms=spec.begin_ms, end_ms=spec.end_ms, notes=notes)
            rows = table.num_rows
            seconds["report"] = _lap(began)
    finally:
        spark.stop()
    outcome = {"rows": rows, "ingest": [asdict(item) for item in ingested], "seconds": seconds}
    write_json(folder.path / "outcome.json", outcome)


def ingest_all(spark: SparkSession, spec: RunSpec, folder: RunFolder) -> list[IngestResult]:
    """Update the lake of every broker in the data folder."""
    results: list[IngestResult] = []
    for broker in brokers_in(Path(spec.data)):
        if not broker.has_log:
            continue
        lake = Lake(lake_folder(spec) / broker.broker_name)
        before = sum(result.rows for result in results)

        def progress(rows: int, name: str = broker.broker_name, before: int = before) -> None:
            folder.write_progress("ingest", f"Reading the commit log of {name}", before + rows)

        progress(0)
        results.append(ingest(spark, list(broker.commit_log_folders), lake, folder.work_path, progress=progress))
    return results


def traffic(spark: SparkSession, spec: RunSpec) -> tuple[pa.Table, list[str]]:
    """The traffic report over all lakes, and notes about missing data for its readers."""
    lakes = lakes_in(lake_folder(spec))
    messages = lake_messages(spark, lakes, spec.begin_ms, spec.end_ms)
    table = traffic_per_topic_and_hour(messages, spec.begin_ms, spec.end_ms, spec.topics).toArrow()
    notes = [
        f"{lake.broker_name}: {end - begin} bytes of the log were deleted by the broker before a run could read them"
        for lake in lakes
        for begin, end in lake.gaps()
    ]
    return table, notes


def lake_messages(spark: SparkSession, lakes: list[Lake], begin_ms: int, end_ms: int) -> DataFrame:
    """All rows that may be in the range, with their broker. Only files listed in the manifest are read."""
    frames = []
    for lake in lakes:
        paths = [str(lake.path / file.path) for file in lake.files(begin_ms, end_ms)]
        if paths:
            read = spark.read.schema(SCHEMA_DDL).option("basePath", str(lake.path / "data")).parquet(*paths)
            frames.append(read.withColumn("broker_name", F.lit(lake.broker_name)))
    if not frames:
        return spark.createDataFrame([], SCHEMA_DDL + ", broker_name STRING")
    return reduce(DataFrame.unionByName, frames)


def lake_folder(spec: RunSpec) -> Path:
    return Path(spec.data) / "reports" / "lake"


def main(arguments: list[str]) -> int:
    """Exit codes: 0 done, 1 the report can't be computed (the last line of stderr says why)."""
    ask_for_signal(signal.SIGKILL)  # a run whose launcher was killed must not go on unseen
    os.nice(NICE)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    folder = RunFolder(Path(arguments[0]))
    try:
        run(folder)
    except ReportError as failure:
        logger.exception("report failed", extra={"event": "report_failed"})
        _write_failure(folder, str(failure))
        return 1
    except Exception as failure:  # a bug, or an error of the JVM: the report's page shows the reason
        logger.exception("report crashed", extra={"event": "report_crashed"})
        _write_failure(folder, reason_of(failure))
        return 1
    return 0


def reason_of(failure: Exception) -> str:
    """One line with the cause. py4j's first line only names the call; the JVM's reason follows after a colon."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    from_java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return f"{type(failure).__name__}: {(from_java or lines or ['no reason given'])[0]}"


def _write_failure(folder: RunFolder, error: str) -> None:
    value: dict[str, Any] = {"error": error}
    write_json(folder.path / "outcome.json", value)


def _lap(began: float) -> float:
    return round(time.monotonic() - began, 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
