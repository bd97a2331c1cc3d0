"""What a broker's clients notice of reports on the same machine: latency at a steady rate, alone and beside runs."""

from __future__ import annotations

import shutil
import statistics
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.load_spec import Load, LoadResult, LoadSpec
from appliance.bench.reports.fill import BEGIN_MS, END_MS, fill
from appliance.bench.reports.session import ReportSession
from appliance.bench.scenarios import LATENCY_TOPIC, QUEUES
from gantrymq.errors import GantryError

RATE = 1000  # messages a second
MESSAGES = 1_000_000  # in the log that the runs read, another one than the broker's
REPORTS = ("traffic", "days", "latency")


@dataclass
class Beside:
    """p99 in ms of each round, from the send to the consumer, and until the send's answer. runs: in all rounds."""

    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    alone_ack: list[float] = field(default_factory=list)
    beside_ack: list[float] = field(default_factory=list)
    runs: int = 0

    @property
    def ratios(self) -> list[float]:
        """Of each round, beside to alone."""
        return [with_runs / without for without, with_runs in zip(self.alone, self.beside, strict=True) if without]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        worst, median = max(self.ratios, default=0.0), statistics.median(self.ratios or [0.0])
        return (
            f"latency of a broker at {RATE}/s, p99, ms: alone {statistics.median(self.alone):.2f} (answer "
            f"{statistics.median(self.alone_ack):.2f}), beside {self.runs} runs {statistics.median(self.beside):.2f} "
            f"(answer {statistics.median(self.beside_ack):.2f}); ratio {median:.2f}, worst of {len(self.ratios)} "
            f"rounds {worst:.2f}"
        )


def measure_beside(home: Path, load: Load, rounds: int, seconds: float, say: Callable[[str], None]) -> Beside:
    """Alternate both, `seconds` each. Raises GantryError, OSError."""
    data = _data(home / "data")
    say(f"{MESSAGES:,} messages written for the runs beside a broker")
    found = Beside()
    with GantryPeer(home / "broker") as peer:
        rpc.create_topic(peer.broker_address, LATENCY_TOPIC, QUEUES[LATENCY_TOPIC])
        spec = LoadSpec(
            kind="latency", address=peer.broker_address, topic=LATENCY_TOPIC, queue_count=QUEUES[LATENCY_TOPIC],
            warm_s=2.0, measure_s=seconds, rate=RATE,
        )  # fmt: skip
        for turn in range(rounds):
            for with_runs in (False, True) if turn % 2 == 0 else (True, False):
                result, runs = _under_runs(load, spec, data) if with_runs else (load.run(spec), 0)
                if result.errors:
                    raise GantryError(f"the load beside reports had errors: {result.errors}")
                (found.beside if with_runs else found.alone).append(result.p99_ms)
                (found.beside_ack if with_runs else found.alone_ack).append(result.ack_p99_ms)
                found.runs += runs
                say(f"latency {'beside runs' if with_runs else 'alone'}: p99 {result.p99_ms:.2f} ms, {runs} runs")
    shutil.rmtree(home)
    return found


def _data(folder: Path) -> Path:
    store = folder / "brokers" / "broker-a"
    store.mkdir(parents=True)
    (store / "broker.properties").write_text("brokerName=broker-a\n")
    fill(store / "store", MESSAGES)
    with ReportSession(folder) as session:  # the very first one writes an archive of classes: none of those measured
        session.run(REPORTS[0], BEGIN_MS, END_MS)
    return folder


def _under_runs(load: Load, spec: LoadSpec, data: Path) -> tuple[LoadResult, int]:
    """The load while session after session starts, reads the whole log anew and computes reports."""
    ended = threading.Event()

    def report() -> int:
        runs = 0
        while not ended.is_set():
            shutil.rmtree(data / "reports" / "lake")
            with ReportSession(data) as session:
                for name in REPORTS:
                    if not ended.is_set() or not runs:
                        session.run(name, BEGIN_MS, END_MS)
                        runs += 1
        return runs

    with ThreadPoolExecutor(1) as pool:
        runs = pool.submit(report)
        try:
            result = load.run(spec)
        finally:
            ended.set()
        return result, runs.result()
