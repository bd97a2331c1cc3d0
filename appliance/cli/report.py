"""Compute a historical report: copy new messages from the brokers' logs to the lake, count them, write the result.

  gantry report traffic --data DIR --days 7           messages and bytes per topic and hour
  gantry report days --data DIR --zone Europe/Berlin  each day compared with the day before and a week before
  gantry report ingest --data DIR                     only bring the lake up to date
  gantry report serve --data DIR                      one run for each line of standard input, in one Spark session:
                                                      {"run_id": "", "report": "traffic", "begin_ms": 0, "end_ms": 1}

Other reports: months, producers, talkers, sizes, latency, retries, delays, transactions, forecast, slaves, lag,
brokers, unused.
The result is in DATA/reports/runs/RUN as REPORT.json, REPORT.csv and REPORT.parquet. The command ends with the run.
Exit codes: 0 succeeded, 3 done but incomplete, 1 failed, 124 took too long, 130 stopped.

The lake is Delta tables, which other tools read without Spark: DuckDB, Polars, pandas, and Spark with Delta.

  duckdb -c "SELECT topic, count(*) FROM delta_scan('DATA/reports/delta/messages') GROUP BY topic"
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, Any

from appliance.cli.tables import table
from appliance.process import formats
from appliance.reports.catalogue import REPORTS, TRAFFIC, Column, Kind
from appliance.reports.errors import ReportError
from appliance.reports.install_state import install_state
from appliance.reports.runs import HOUR_MS, INGEST, RUNNABLE, RunFolder, RunSpec, RunStatus, new_run_id
from appliance.reports.sessions.launcher import Cancelled, Launcher, launch, stop_signals_raise
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.byte_size import readable
from gantrymq.errors import MessageRejected
from gantrymq.message.topics import check_group, check_topic

EXIT_CODES = {"succeeded": 0, "incomplete": 3, "failed": 1, "timeout": 124, "cancelled": 130}
TOPICS_PRINTED = 20
SERVE = "serve"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", choices=(*RUNNABLE, SERVE), help="what to compute")
    parser.add_argument("--data", metavar="DIR", help="data folder of the appliance (default: the one of `gantry up`)")
    parser.add_argument("--days", type=float, default=7, metavar="N", help="how far back, up to now (default 7)")
    parser.add_argument(
        "--from", dest="begin", type=_time, metavar="TIME", help="begin, ISO 8601, UTC without a time zone"
    )
    parser.add_argument("--to", dest="end", type=_time, metavar="TIME", help="end (exclusive)")
    parser.add_argument(
        "--topic", metavar="TOPIC", action="append", default=[], help="only this topic; may be repeated"
    )
    parser.add_argument("--zone", default="UTC", help="time zone of days and months (default UTC)")
    parser.add_argument(
        "--promise",
        metavar="GROUP=SECONDS",
        action="append",
        type=_promise,
        default=[],
        help="how far behind a group may be, for the report lag; `=60` for all others; may be repeated",
    )
    parser.add_argument(
        "--anew",
        metavar="BROKER",
        action="append",
        default=[],
        help="read this broker's log from its beginning if it was truncated or replaced; earlier counts are kept",
    )
    parser.add_argument("--run-id", metavar="NAME", help="name of the run's folder (default: a new one)")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="seconds until the run is killed (default: report_timeout_s)"
    )
    parser.add_argument("--master", metavar="URL", help="Spark master (default: the setting spark_master)")
    parser.add_argument("--driver-memory", metavar="SIZE", help="heap of the run's JVM (default: report_memory)")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a further Spark setting")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(arguments: argparse.Namespace) -> int:
    config = ApplianceConfig.load(
        {
            "data": arguments.data,
            "spark_master": arguments.master,
            "report_timeout_s": arguments.timeout,
            "report_memory": arguments.driver_memory,
        }
    )
    state = install_state(config.data)
    if not state.is_ready:
        raise ReportError(
            f"the report stack is {state.state}: {state.error or state.step or 'run: gantry install-reports'}"
        )
    config.reports_folder.mkdir(parents=True, exist_ok=True)
    formats.bring_up_to_date(config.reports_folder, formats.REPORTS)
    if arguments.report == SERVE:
        return serve(config, arguments.conf, sys.stdin, sys.stdout)
    spec = _spec(arguments, config)
    folder = RunFolder.in_data(config.data, arguments.run_id or new_run_id())
    status = launch(folder, spec)
    if not status.has_result:
        print(f"gantry report: {status.error}\n  log: {folder.log_path}", file=sys.stderr)
    elif not arguments.quiet:
        print(summary(folder, spec, status))
    if status.state == "incomplete":
        print(f"gantry report: incomplete: {status.error}", file=sys.stderr)
    return EXIT_CODES[status.state]


def serve(config: ApplianceConfig, conf: list[str], requests: IO[str], answers: IO[str]) -> int:
    """Do one run for each line, and answer with its state; end with the input, and Spark with it."""
    session = _session_settings(config, conf)
    launcher = Launcher(config.data, is_kept=True)
    try:
        with stop_signals_raise():
            for line in requests:
                run_id, spec = _asked(line, session)
                status = launcher.launch(RunFolder.in_data(config.data, run_id), spec)
                print(json.dumps({"run_id": run_id, "state": status.state}), file=answers, flush=True)
                if status.state == "cancelled":
                    raise Cancelled
    except Cancelled:
        launcher.close(at_once=True)
        return EXIT_CODES["cancelled"]
    finally:
        launcher.close()
    return 0


def _asked(line: str, session: dict[str, Any]) -> tuple[str, RunSpec]:
    """The run that a line asks for. Raises ReportError."""
    try:
        asked = json.loads(line)
        run_id = asked.pop("run_id") or new_run_id()
        return run_id, RunSpec(**asked | {"topics": tuple(asked.get("topics", ()))}, **session)
    except (ValueError, TypeError, KeyError, AttributeError) as wrong:
        raise ReportError(f"{line.strip()[:200]!r} asks for no run ({wrong}); see gantry report --help") from wrong


def _spec(arguments: argparse.Namespace, config: ApplianceConfig) -> RunSpec:
    for topic in arguments.topic:
        check_topic(topic)
    now_ms = int(time.time() * 1000)
    end_ms = arguments.end if arguments.end is not None else now_ms - now_ms % HOUR_MS + HOUR_MS
    begin_ms = arguments.begin if arguments.begin is not None else end_ms - int(arguments.days * 24 * HOUR_MS)
    return RunSpec(
        report=arguments.report,
        begin_ms=begin_ms,
        end_ms=end_ms,
        topics=tuple(arguments.topic),
        zone=arguments.zone,
        promises=dict(arguments.promise),
        anew=tuple(arguments.anew),
        **_session_settings(config, arguments.conf),
    )


def _session_settings(config: ApplianceConfig, conf: list[str]) -> dict[str, Any]:
    return {
        "data": str(config.data),
        "master": config.spark_master,
        "driver_memory": config.report_memory,
        "priority": config.report_priority,
        "cores": config.report_cores,
        "java_home": config.java_home,
        "timeout_s": config.report_timeout_s,
        "lake": config.report_lake,
        "lake_days": config.report_lake_days,
        "lake_bytes": config.report_lake_bytes,
        "conf": spark_conf(config.report_conf, conf),
    }


def spark_conf(setting: str, options: list[str]) -> dict[str, str]:
    """The settings of Spark in `report_conf` and in --conf. Values may hold commas: all of Spark's names are spark.*"""
    settings = [*filter(None, map(str.strip, re.split(r",(?=\s*spark\.)", setting))), *options]
    if wrong := [item for item in settings if not re.match(r"spark\.[^=]+=.", item)]:
        raise ReportError(f"{wrong[0]!r} is not a setting of Spark; write name=value, such as spark.executor.memory=2g")
    return {name: value for name, _, value in (item.partition("=") for item in settings)}


def rows_of(columns: Iterable[Column], rows: Iterable[dict[str, Any]]) -> list[str]:
    """A report's rows as an aligned table; shares and changes in percent, times in UTC."""
    shown = list(columns)
    return table(
        [column.title for column in shown], [[_cell(column, row[column.name]) for column in shown] for row in rows]
    )


def _cell(column: Column, value: Any) -> Any:
    if value is None or column.kind not in (Kind.CHANGE, Kind.SHARE, Kind.TIME):
        return value
    if column.kind is Kind.TIME:
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{value:+.1%}" if column.kind is Kind.CHANGE else f"{value:.1%}"


def summary(folder: RunFolder, spec: RunSpec, status: RunStatus) -> str:
    """The text for the terminal."""
    lines = [f"read {status.ingested_rows:,} new messages; took {status.duration_s:.1f} s"]
    page = folder.page() if spec.report != INGEST else None
    if page is not None and spec.report != TRAFFIC:
        lines += rows_of(REPORTS[spec.report].columns, page["rows"][:TOPICS_PRINTED])
        lines.append(f"{page['row_count']:,} rows: {folder.result('csv', spec.report)} (also .json, .parquet)")
    elif page is not None:
        lines.append(f"{page['messages']:,} messages, {readable(page['stored_bytes'])}, {page['topic_count']} topics")
        lines += [
            f"  {total['messages']:>14,}  {readable(total['stored_bytes']):>10}  {total['topic']}"
            + ("" if total["kind"] == "normal" else f"  ({total['kind']})")
            for total in page["topics"][:TOPICS_PRINTED]
        ]
        lines.append(f"result: {folder.result('csv')} (also .json, .parquet)")
    return "\n".join(lines)


def _promise(text: str) -> tuple[str, float]:
    """`billing=30` as group and seconds."""
    group, _, seconds = text.rpartition("=")
    try:
        value = float(seconds)
        if group:
            check_group(group)
    except (ValueError, MessageRejected) as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is not a promise ({wrong}); write GROUP=SECONDS") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: the seconds must be greater than 0")
    return group, value


def _time(text: str) -> int:
    """ISO 8601 to ms since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; use ISO 8601, such as 2026-11-21T08:00") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
