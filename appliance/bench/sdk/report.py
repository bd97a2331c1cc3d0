"""`gantry bench sdk`: each flow of the SDK several times, in turns, against a broker of this checkout; the medians."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from appliance.bench import rpc
from appliance.bench.gantry_peer import CHECKOUT, GantryPeer
from appliance.bench.peer import PeerError
from appliance.bench.sdk.flows import FLOWS, Cost

QUEUES = 4
RUN_TIMEOUT_S = 600.0
ROUND_TRIPS = ("single await", "blocking send", "end to end")  # a message waits for the one before
PATIENT = {"waitTimeMillsInSendQueue": "20000"}  # a busy broker answers later, and refuses nothing
NOT_MEASURED = (
    "Not measured: clients of other systems (redis-py, nats-py, pika, aio-pika). This is GantryMQ's SDK alone."
)


def in_own_process(name_servers: str, topic: str, flow: str, count: int) -> Cost:
    """The flow in a process of its own, so that nothing else is in its CPU time."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "appliance.bench.sdk.flows", name_servers, topic, flow, str(count)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise PeerError(f"the flow {flow!r} failed: {done.stderr.decode(errors='replace').strip()}")
    return Cost(**orjson.loads(done.stdout))


class SdkBench:
    """count: messages of a run of a flow, a fifth of them where one waits for the other. `say` gets a line a run."""

    def __init__(
        self,
        work: Path,
        say: Callable[[str], None],
        *,
        count: int,
        rounds: int,
        measure: Callable[[str, str, str, int], Cost] = in_own_process,
    ) -> None:
        self._measure = measure
        self._work = work
        self._say = say
        self._count = count
        self._rounds = rounds

    def run(self) -> tuple[str, dict[str, Any]]:
        """The table as text, and every single run."""
        runs: dict[str, list[Cost]] = {flow: [] for flow in FLOWS}
        with GantryPeer(self._work / "broker", broker_properties=PATIENT) as peer:
            version = peer.version
            for number in range(self._rounds):
                for flow in FLOWS:
                    runs[flow].append(self._cost(peer, flow, f"sdk-{number}-{FLOWS.index(flow)}"))
                    self._say(f"round {number + 1} of {self._rounds}: {flow}: {runs[flow][-1].cpu_us:.1f} us a message")
        where = f"{version}\n{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
        figures = {flow: [cost._asdict() for cost in costs] for flow, costs in runs.items()}
        return f"{where}\n\n{render(runs)}\n\n{NOT_MEASURED}\n", {"version": version, "flows": figures}

    def _cost(self, peer: GantryPeer, flow: str, topic: str) -> Cost:
        rpc.create_topic(peer.broker_address, topic, QUEUES)
        return self._measure(
            peer.namesrv_address, topic, flow, self._count // 5 if flow in ROUND_TRIPS else self._count
        )


def render(runs: dict[str, list[Cost]]) -> str:
    """A table in Markdown: a row for each flow, with the medians of its runs."""
    lines = [
        "| flow, messages of 1 KB | client CPU, us a message | messages/s | p50, ms | p99, ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for flow, costs in runs.items():
        cpu_us = statistics.median(cost.cpu_us for cost in costs)
        rate = statistics.median(cost.rate for cost in costs)
        p50, p99 = _median([cost.p50_ms for cost in costs]), _median([cost.p99_ms for cost in costs])
        lines.append(f"| {flow} | {cpu_us:.1f} | {rate:,.0f} | {p50} | {p99} |")
    return "\n".join(lines)


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f}" if known else ""
