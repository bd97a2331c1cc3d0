"""What a broker's clients notice of reports on the same machine: latency at a steady rate, alone and beside runs."""

from __future__ import annotations

import contextlib
import itertools
import queue
import shutil
import statistics
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.load_spec import Load, LoadResult, LoadSpec
from appliance.bench.scenarios import LATENCY_TOPIC, QUEUES
from gantrymq.errors import GantryError
from tests.bench.reports.fill import BEGIN_MS, END_MS, fill
from tests.bench.reports.session import ReportFailed, ReportSession

RATE = 1000  # messages a second
MESSAGES = 1_000_000  # in the log that the runs read, another one than the broker's
REPORTS = ("traffic", "days", "latency")
ENDING_LOOK_S = 1.0
WARM_S = 2.0  # of each slice, before it counts; a run has begun to start by then


@dataclass
class Beside:
    """p99 in ms of each slice, from the send to the consumer, and until the send's answer. Slices with and without a
    run take turns, so slice n of one list is a neighbour of slice n of the other. rate: messages a second; runs: in all
    slices.
    """

    rate: int
    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    alone_ack: list[float] = field(default_factory=list)
    beside_ack: list[float] = field(default_factory=list)
    runs: int = 0

    @property
    def ratios(self) -> list[float]:
        """Of each pair of slices, beside to alone."""
        return _ratios(self.beside, self.alone)

    @property
    def ack_ratios(self) -> list[float]:
        return _ratios(self.beside_ack, self.alone_ack)

    @property
    def swing(self) -> list[float]:
        """What the machine itself does to p99: each slice alone beside the one before it, larger to smaller."""
        return [max(a, b) / min(a, b) for a, b in itertools.pairwise(self.alone) if min(a, b) > 0]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        rows = [
            ("", "alone", "beside runs", "ratio", "worst"),
            ("to the consumer", *_row(self.alone, self.beside, self.ratios)),
            ("until the answer", *_row(self.alone_ack, self.beside_ack, self.ack_ratios)),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        swing = f"{statistics.median(self.swing):.2f}, worst {max(self.swing):.2f}" if self.swing else "unknown"
        return "\n".join(
            [
                f"p99 in ms of a broker at {self.rate:,}/s, medians of {len(self.alone)} slices each, in turns; "
                f"{self.runs} runs",
                *("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows),
                f"neighbouring slices without a run differ by a factor of {swing}",
            ]
        )


def _ratios(beside: Sequence[float], alone: Sequence[float]) -> list[float]:
    return [with_runs / without for without, with_runs in zip(alone, beside, strict=True) if without]


def _row(alone: Sequence[float], beside: Sequence[float], ratios: Sequence[float]) -> tuple[str, str, str, str]:
    ratio, worst = statistics.median(ratios or [0.0]), max(ratios, default=0.0)
    return f"{statistics.median(alone):.2f}", f"{statistics.median(beside):.2f}", f"{ratio:.2f}", f"{worst:.2f}"


def measure_beside(
    home: Path, load: Load, slices: int, seconds: float, say: Callable[[str], None], rate: int = RATE
) -> Beside:
    """Slices of `seconds` with and without a run, `slices` of each, in turns. Raises GantryError, OSError."""
    data = _data(home / "data")
    say(f"{MESSAGES:,} messages written for the runs beside a broker")
    found = Beside(rate)
    with GantryPeer(home / "broker") as peer:
        rpc.create_topic(peer.broker_address, LATENCY_TOPIC, QUEUES[LATENCY_TOPIC])
        spec = LoadSpec(
            kind="latency", address=peer.broker_address, topic=LATENCY_TOPIC, queue_count=QUEUES[LATENCY_TOPIC],
            warm_s=WARM_S, measure_s=seconds, rate=rate,
        )  # fmt: skip
        for turn in range(slices):
            for with_runs in (False, True) if turn % 2 == 0 else (True, False):
                result, runs = _under_runs(load, spec, data) if with_runs else (load.run(spec), 0)
                if result.errors:
                    raise GantryError(f"the load beside reports had errors: {result.errors}")
                (found.beside if with_runs else found.alone).append(result.p99_ms)
                (found.beside_ack if with_runs else found.alone_ack).append(result.ack_p99_ms)
                found.runs += runs
                say(f"slice {turn + 1} {'beside runs' if with_runs else 'alone'}: p99 {result.p99_ms:.2f} ms")
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
    """The load while session after session starts, reads the whole log again and computes reports; and how many."""
    ended = threading.Event()
    sessions: queue.SimpleQueue[ReportSession] = queue.SimpleQueue()

    def report() -> int:
        runs = 0
        while not ended.is_set():
            with contextlib.suppress(FileNotFoundError):  # the session before may have been ended before it had one
                shutil.rmtree(data / "reports" / "lake")
            try:
                with ReportSession(data) as session:
                    sessions.put(session)
                    for name in REPORTS:
                        runs += 1
                        session.run(name, BEGIN_MS, END_MS)
            except ReportFailed:
                if not ended.is_set():
                    raise
        return runs

    with ThreadPoolExecutor(1) as pool:
        runs = pool.submit(report)
        try:
            result = load.run(spec)
        finally:
            ended.set()
            while not runs.done():  # what it does now counts for no slice
                with contextlib.suppress(queue.Empty):
                    sessions.get(timeout=ENDING_LOOK_S).end_at_once()
        return result, runs.result()
