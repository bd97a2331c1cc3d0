"""Measures each flow of the SDK several times, in turns, against a broker of this checkout, and takes the medians.

Where clients and servers of other systems are installed, each flow goes through them as well, in the same rounds.
"""

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
from tests.bench.sdk import peers
from tests.bench.sdk.flows import END_TO_END, FLOWS, Cost
from tests.bench.sdk.peers import FLOWS as COMPARED
from tests.bench.sdk.peers import OTHERS, SDK, Other, measure_other, missing, not_measured, running

QUEUES = 4
RUN_TIMEOUT_S = 600.0
ROUND_TRIPS = ("single await", "blocking send", *END_TO_END)  # a message waits for the one before
PATIENT = {"waitTimeMillsInSendQueue": "20000"}  # a busy broker answers later, and refuses nothing


def in_own_process(name_servers: str, topic: str, flow: str, count: int) -> Cost:
    """The flow in a process of its own, so that nothing else is in its CPU time."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.bench.sdk.flows", name_servers, topic, flow, str(count)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise PeerError(f"the flow {flow!r} failed: {done.stderr.decode(errors='replace').strip()}")
    return Cost(**orjson.loads(done.stdout))


class SdkBench:
    """count: messages of a run of a flow, a fifth of them where one waits for the other. `say` gets a line a run.
    others: clients of other systems, each flow in turn with the SDK; those that are not installed are left out."""

    def __init__(
        self,
        work: Path,
        say: Callable[[str], None],
        *,
        count: int,
        rounds: int,
        measure: Callable[[str, str, str, int], Cost] = in_own_process,
        others: Sequence[Other] = OTHERS,
    ) -> None:
        self._others = [other for other in others if not missing(other)]
        self._not_measured = not_measured(others)
        self._measure = measure
        self._work = work
        self._say = say
        self._count = count
        self._rounds = rounds

    def run(self) -> tuple[str, dict[str, Any]]:
        """The tables as text, and every single run."""
        runs: dict[str, list[Cost]] = {flow: [] for flow in FLOWS}
        beside: dict[str, dict[str, list[Cost]]] = {flow: {SDK: runs[flow]} for flow in COMPARED}
        with (
            GantryPeer(self._work / "broker", broker_properties=PATIENT) as peer,
            running(self._others, self._work) as servers,
        ):
            versions = [peer.version, *(server.version() for server in servers.values())]
            for number in range(self._rounds):
                for flow in FLOWS:
                    topic = f"sdk-{number}-{FLOWS.index(flow)}"
                    runs[flow].append(self._cost(peer, flow, topic))
                    self._told(number, flow, runs[flow][-1])
                    for other in self._others:
                        if flow in other.flows:
                            cost = measure_other(other, servers[other.server], topic, flow, self._count_of(flow))
                            beside[flow].setdefault(other.client, []).append(cost)
                            self._told(number, f"{flow}, {other.client}", cost)
        where = f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
        figures = {
            flow: {client: [cost._asdict() for cost in costs] for client, costs in found.items()}
            for flow, found in ({flow: {SDK: costs} for flow, costs in runs.items()} | beside).items()
        }
        tables = [render(runs), peers.render(beside) if self._others else "", self._not_measured]
        text = "\n\n".join(part for part in ("\n".join([*versions, where]), *tables) if part)
        return f"{text}\n", {"versions": versions, "flows": figures}

    def _told(self, number: int, what: str, cost: Cost) -> None:
        self._say(f"round {number + 1} of {self._rounds}: {what}: {cost.cpu_us:.1f} us a message")

    def _count_of(self, flow: str) -> int:
        return self._count // 5 if flow in ROUND_TRIPS else self._count

    def _cost(self, peer: GantryPeer, flow: str, topic: str) -> Cost:
        rpc.create_topic(peer.broker_address, topic, QUEUES)
        return self._measure(peer.namesrv_address, topic, flow, self._count_of(flow))


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
