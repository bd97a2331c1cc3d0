"""What is measured for one size of the log, in the order in which an appliance meets it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.reports.fill import BEGIN_MS, END_MS, fill
from tests.bench.reports.session import ReportSession, Run

REPORTS = ("traffic", "days", "months", "producers", "talkers", "sizes", "latency", "retries")
CHUNK_BYTES = 1 << 20
# The traffic report once more, from the files that the lake lists.
DUCKDB = """
import json, sys, time
import deltalake, duckdb
paths = deltalake.DeltaTable(sys.argv[1]).file_uris()
began, cpu = time.monotonic(), time.process_time()
with duckdb.connect() as connection:
    connection.execute("SET threads = 2")
    rows = connection.sql(f'''SELECT topic, epoch_ms(store_timestamp) // 3600000 AS hour, count(*), sum(size_bytes),
        sum(body_bytes) FROM read_parquet({paths}) GROUP BY ALL ORDER BY ALL''').fetchall()
print(json.dumps([time.monotonic() - began, time.process_time() - cpu, sum(row[2] for row in rows), len(rows)]))
"""


class Taken(NamedTuple):
    """Seconds by the clock and of CPU."""

    wall_s: float
    cpu_s: float


class Measured(NamedTuple):
    messages: int
    log_bytes: int
    lake_bytes: int
    plain_read: Taken
    start: Run | None  # the very first, which has no archive of classes, and nothing to read; None: not the first size
    first: Run  # cold, and all is new
    warm: dict[str, Run]  # nothing is new; by report
    cold: Run  # another session, nothing is new
    duckdb: Taken | None  # None: it is not installed

    @property
    def rows_per_s(self) -> float:
        return self.messages / self.first.seconds["ingest"]

    @property
    def cpu_us_a_row(self) -> float:
        """Of reading alone: what the first run took more than one that had nothing to read."""
        return (self.first.cpu_s - self.cold.cpu_s) / self.messages * 1e6

    def as_json(self) -> dict[str, Any]:
        plain = {"messages": self.messages, "log_bytes": self.log_bytes, "lake_bytes": self.lake_bytes}
        runs = {"start": self.start, "first": self.first, "cold": self.cold}
        runs |= {f"warm {name}": run for name, run in self.warm.items()}
        taken = {"plain_read": self.plain_read, "duckdb": self.duckdb}
        return (
            plain
            | {name: run._asdict() if run is not None else None for name, run in runs.items()}
            | {name: each._asdict() if each is not None else None for name, each in taken.items()}
        )


def measure(data: Path, count: int, sizes: tuple[int, ...], say: Callable[[str], None]) -> Measured:
    """Everything for a log of `count` messages of these sizes. Raises ReportFailed, OSError.

    The folder may be that of the size before: of it only the archive of classes is left, which an appliance makes once.
    """
    home = data / "brokers" / "broker-a"
    home.mkdir(parents=True)
    (home / "broker.properties").write_text("brokerName=broker-a\n")
    start = None
    if not (data / "reports").exists():
        with ReportSession(data) as session:
            start = session.run(REPORTS[0], BEGIN_MS, END_MS)
        say(f"first start: {start.wall_s:.1f} s")
    log_bytes = fill(home / "store", count, sizes)
    say(f"{count:,} messages written")
    plain_read = _plain_read(home / "store" / "commitlog", log_bytes)
    with ReportSession(data) as session:
        first = session.run(REPORTS[0], BEGIN_MS, END_MS)
        say(f"read in {first.seconds['ingest']:.1f} s")
        warm = {name: session.run(name, BEGIN_MS, END_MS) for name in REPORTS}
    say("; ".join(f"{name} {run.wall_s:.2f} s" for name, run in warm.items()))
    with ReportSession(data) as session:
        cold = session.run(REPORTS[0], BEGIN_MS, END_MS)
    lake = data / "reports" / "delta" / "messages"
    lake_bytes = sum(path.stat().st_size for path in lake.rglob("*.parquet"))
    found = Measured(
        messages=first.ingested_rows,
        log_bytes=log_bytes,
        lake_bytes=lake_bytes,
        plain_read=plain_read,
        start=start,
        first=first,
        warm=warm,
        cold=cold,
        duckdb=_duckdb(lake, first.ingested_rows),
    )
    shutil.rmtree(data / "brokers")
    shutil.rmtree(data / "reports" / "delta")
    return found


def _plain_read(folder: Path, log_bytes: int) -> Taken:
    """What it costs to read the log's bytes and do nothing with them; they are in memory, as they were just written."""
    began, cpu_s = time.monotonic(), time.process_time()
    for path in sorted(folder.iterdir()):
        with path.open("rb", buffering=0) as file:
            while int(path.name) + file.tell() < log_bytes and file.read(CHUNK_BYTES):
                pass
    return Taken(time.monotonic() - began, time.process_time() - cpu_s)


def _duckdb(lake: Path, messages: int) -> Taken | None:
    """The traffic report by DuckDB over the same files. Raises OSError when it counts something else."""
    done = subprocess.run([sys.executable, "-c", DUCKDB, lake], capture_output=True, text=True, check=False)
    if "No module named 'duckdb'" in done.stderr:
        return None
    if done.returncode:
        raise OSError(f"DuckDB could not read the lake: {done.stderr.strip()[-500:]}")
    wall_s, cpu_s, counted, _rows = json.loads(done.stdout)
    if counted != messages:
        raise OSError(f"DuckDB counts {counted:,} messages in the lake, and the run has read {messages:,}")
    return Taken(wall_s, cpu_s)
