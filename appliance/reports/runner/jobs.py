"""The process of report runs: `python -m appliance.reports.runner.jobs WORK_FOLDER`, started by spark_process.py only.

Its input is a line with the settings of the session, then a line for each run: the run's folder. A run is: ingest of
every broker, the report over all lakes, result files. It writes its part of the status to `outcome.json` and answers a
line with its exit code; the launcher adds how it ended. A process of its own, so that its memory is free afterwards.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from appliance.process.parent_death import ask_for_signal
from appliance.reports.catalogue import FORECAST, REPORTS
from appliance.reports.errors import LakeFull, ReportError
from appliance.reports.lake.lakes import MESSAGES, Lakes
from appliance.reports.lake.reading import Gap
from appliance.reports.lake.table import EXPIRED
from appliance.reports.lake.upkeep import keep_up, make_room
from appliance.reports.results import write_results
from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.capacity import capacity
from appliance.reports.runner.giving_way import give_way, wait_while_busy
from appliance.reports.runner.ingest import IngestLimits, IngestProgress, IngestResult, ingest
from appliance.reports.runner.inputs import inputs, lakes_of, read_from_ms
from appliance.reports.runner.sample_table import copy_samples
from appliance.reports.runner.sources import sources
from appliance.reports.runner.takeover import take_over
from appliance.reports.runner.work_ahead import is_large
from appliance.reports.runs import RunFolder, RunSpec, write_json
from appliance.reports.session import create_session, death_of_java, end_session
from appliance.reports.sessions.spark_process import ENDING
from appliance.reports.transforms import TRANSFORMS, Scope
from appliance.reports.worker_jobs import reason_of
from gantrymq.byte_size import readable

logger = logging.getLogger(__name__)

ENDING_S = 280.0  # for the JVM, which may have to write its class archive; the launcher waits somewhat longer
JAVAS_DEATH_S = 2.0  # between its last word on a connection and its end
READING_SHARE = 0.75  # of a run's time; the rest is for the report itself


class Runs:
    """Runs reports in one session, which starts with the first of them."""

    def __init__(self, work_folder: Path, settings: Mapping[str, Any]) -> None:
        self._work_folder = work_folder
        self._settings = settings
        self._spark: SparkSession | None = None

    def run(self, folder: RunFolder) -> None:
        """Run the report. Raises ReportError, and Spark's errors."""
        spec = folder.spec()
        until = time.monotonic() + spec.timeout_s * READING_SHARE
        seconds: dict[str, float] = {}
        began = time.monotonic()
        if self._spark is None:
            folder.write_progress("starting", "Starting Spark")
            much = is_large(brokers_in(Path(spec.data)), lakes_of(spec))
            self._spark = create_session(self._work_folder, **self._settings, is_large=much)
            seconds["session"] = _lap(began)
        began = time.monotonic()
        ingested, failures = ingest_all(self._spark, spec, folder, until)
        seconds["ingest"] = _lap(began)
        rows = 0
        missing = [*failures, *behind(ingested)]
        if spec.report in REPORTS:
            began = time.monotonic()
            title = REPORTS[spec.report].title
            folder.write_progress("report", f"Computing: {title}", sum(item.rows for item in ingested))
            table, gaps = compute(self._spark, spec, now_ms=int(time.time() * 1000))
            missing += gaps
            facts = expired(spec)
            facts += capacity(brokers_in(Path(spec.data)), table.to_pylist()) if spec.report == FORECAST else []
            write_results(folder, table, spec, notes=missing, facts=facts)
            rows = table.num_rows
            seconds["report"] = _lap(began)
        outcome = {"rows": rows, "ingest": [asdict(item) for item in ingested], "seconds": seconds, "missing": missing}
        write_json(folder.path / "outcome.json", outcome)

    def close(self) -> None:
        if self._spark is not None:
            end_session(self._spark, ENDING_S)


def ingest_all(
    spark: SparkSession, spec: RunSpec, folder: RunFolder, until: float
) -> tuple[list[IngestResult], list[str]]:
    """Update the lake of every broker in the data folder; return what was read, and a sentence for each that was not.

    A broker whose log can't be read leaves the others' alone. Raises ReportError when there is no broker that can be.
    """
    results: list[IngestResult] = []
    failures: list[ReportError] = []
    lakes = lakes_of(spec)
    take_over(Path(spec.data), lakes)
    before_job = functools.partial(wait_while_busy, Path(spec.data), until)

    def cores() -> int:
        return spark.sparkContext.defaultParallelism

    for broker in brokers_in(Path(spec.data)):
        if not broker.has_log:
            continue
        lake = lakes.of_broker(broker.broker_name)
        progress = _Progress(folder, broker.broker_name, sum(result.rows for result in results))
        progress(IngestProgress(0, 0, 0))
        try:
            for source in sources(broker, lake):
                results.append(
                    ingest(
                        spark,
                        list(source.broker.commit_log_folders),
                        lake,
                        store_folder=source.broker.store_folder,
                        epochs=source.broker.standing.epochs,
                        limits=IngestLimits(until=until, end=source.end, cores=cores, before_job=before_job),
                        progress=progress,
                        is_anew=broker.broker_name in spec.anew,
                    )
                )
        except ReportError as failure:
            logger.exception("broker not read", extra={"event": "report_broker_failed", "broker": broker.broker_name})
            failures.append(failure)
    if failures and not results:
        if isinstance(failures[0], LakeFull):
            _make_room(lakes, spec)
        raise failures[0]
    try:
        copy_samples(Path(spec.data), lakes)
    except ReportError as failure:
        logger.exception("samples not copied", extra={"event": "report_samples_failed"})
        failures.append(failure)
    _keep_up(lakes, spec, until)
    return results, [f"not read: {failure}" for failure in failures]


def _keep_up(lakes: Lakes, spec: RunSpec, until: float) -> None:
    try:
        keep_up(lakes.every(), days=spec.lake_days, size_bytes=spec.lake_bytes, until=until)
    except ReportError:  # what is in the lake counts as before
        logger.exception("lake not compacted", extra={"event": "report_upkeep_failed"})


def _make_room(lakes: Lakes, spec: RunSpec) -> None:
    try:
        make_room(lakes.every(), days=spec.lake_days, size_bytes=spec.lake_bytes)
    except (ReportError, OSError):  # the run says that the lake is full
        logger.exception("no room made in the lake", extra={"event": "report_upkeep_failed"})


class _Progress:
    """Writes how far a run is with a broker, in words."""

    def __init__(self, folder: RunFolder, broker_name: str, rows_before: int) -> None:
        self._folder = folder
        self._what = f"Reading the commit log of {broker_name}"
        self._rows_before = rows_before
        self._began = time.monotonic()

    def __call__(self, progress: IngestProgress) -> None:
        left = progress.total_bytes - progress.done_bytes
        detail = self._what
        if left > 0 and progress.rows:
            messages = left * progress.rows // progress.done_bytes
            ends_at = time.time() + left * (time.monotonic() - self._began) / progress.done_bytes
            clock = time.strftime("%H:%M", time.gmtime(ends_at))
            detail += f", behind by about {messages:,} messages ({readable(left)}), caught up at about {clock} UTC"
        self._folder.write_progress("ingest", detail, self._rows_before + progress.rows)


def behind(ingested: list[IngestResult]) -> list[str]:
    """A sentence for each broker whose log was not read to its end in the time that a run has."""
    return [
        f"{result.broker_name}: {readable(result.behind_bytes)} of the log, about "
        f"{result.behind_bytes * result.rows // max(1, result.end - result.begin):,} messages, are not counted yet; "
        "the next run goes on there"
        for result in ingested
        if result.behind_bytes
    ]


def compute(spark: SparkSession, spec: RunSpec, now_ms: int | None = None) -> tuple[pa.Table, list[str]]:
    """A report over all lakes, and notes about missing data for its readers. now_ms: as Scope has it."""
    table = TRANSFORMS[spec.report](*inputs(spark, spec), scope_of(spec, now_ms)).toArrow()
    if MESSAGES not in REPORTS[spec.report].tables:
        return table, []
    lakes = lakes_of(spec)
    notes = [
        f"{broker}: {_what_is_missing(gap)}; they held messages stored {_when(gap)}"
        for broker in sorted({*lakes.brokers(), *(broker.broker_name for broker in brokers_in(Path(spec.data)))})
        for gap in lakes.of_broker(broker).gaps()
        if gap.touches(read_from_ms(spec), spec.end_ms)
    ]
    return table, notes


def _what_is_missing(gap: Gap) -> str:
    what = f"{readable(gap.end - gap.begin)} of the log"
    if gap.is_damage:
        return f"{what} at physical offset {gap.begin} are damaged and not counted"
    return f"{what} were deleted by the broker before a run could read them"


def _when(gap: Gap) -> str:
    if gap.from_ms is None and gap.to_ms is None:
        return "at an unknown time"
    return f"from {_minute(gap.from_ms)} to {_minute(gap.to_ms)} UTC"


def expired(spec: RunSpec) -> list[str]:
    """A sentence if the lake kept less than the report's range."""
    at_ms = lakes_of(spec).messages.numbers()(EXPIRED)
    if at_ms is None or at_ms <= spec.begin_ms:
        return []
    return [f"the lake no longer has what was stored before {_minute(at_ms)} UTC: its age or its size is limited"]


def _minute(at_ms: int | None) -> str:
    if at_ms is None:
        return "an unknown time"
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at_ms / 1000))


def scope_of(spec: RunSpec, now_ms: int | None = None) -> Scope:
    return Scope(spec.begin_ms, spec.end_ms, spec.topics, spec.zone, spec.promises, now_ms)


def main(arguments: list[str]) -> int:
    """Serve runs until the input ends, or one of them failed in a way that may have hurt the session."""
    ask_for_signal(signal.SIGKILL)  # a run whose launcher was killed must not go on unseen
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else prints, Java for one, prints to the log
        settings = json.loads(sys.stdin.readline())
        give_way(settings.pop("priority"), settings.pop("cores"))
        runs = Runs(Path(arguments[0]), settings)
        for line in sys.stdin:
            exit_code, is_whole = _run_one(runs, RunFolder(Path(line.rstrip("\n"))))
            answers.write(f"{exit_code}\n" if is_whole else f"{exit_code} {ENDING}\n")
            answers.flush()
            if not is_whole:
                return exit_code
    runs.close()
    return 0


def _run_one(runs: Runs, folder: RunFolder) -> tuple[int, bool]:
    """The exit code (1: the report can't be computed, and outcome.json says why), and whether the session is whole."""
    try:
        runs.run(folder)
    except ReportError as failure:
        logger.exception("report failed", extra={"event": "report_failed"})
        _write_failure(folder, str(failure))
        return 1, True
    except Exception as failure:  # a bug, or an error of the JVM: the report's page shows the reason
        logger.exception("report crashed", extra={"event": "report_crashed"})
        # Without its JVM, Py4J fails with one of many errors of the network, none of which says so.
        _write_failure(folder, death_of_java(JAVAS_DEATH_S) or reason_of(failure))
        return 1, False
    return 0, True


def _write_failure(folder: RunFolder, error: str) -> None:
    value: dict[str, Any] = {"error": error}
    write_json(folder.path / "outcome.json", value)


def _lap(began: float) -> float:
    return round(time.monotonic() - began, 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
