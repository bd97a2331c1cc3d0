"""The clients of other systems beside GantryMQ's SDK: which can be measured here, and the table of all."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from appliance.bench.gantry_peer import CHECKOUT
from appliance.bench.peer import PeerError
from tests.bench.sdk.flows import END_TO_END, IN_FLIGHT, Cost
from tests.bench.sdk.servers import Nats, Rabbit, Redis, Server, found

SDK = "GantryMQ"
RUN_TIMEOUT_S = 600.0
FLOWS = ("single await", f"pipelined, {IN_FLIGHT} in flight", "consume", "blocking send", *END_TO_END)
LATENCIES = ("p50_ms", "p99_ms")
HOW_TO_INSTALL = "pip install -r deploy/locks/bench.lock; Debian: redis-server, nats-server, rabbitmq-server"


class Other(NamedTuple):
    """A client of another system. flows: those it has."""

    client: str
    module: str
    server: type[Server]
    flows: Sequence[str]


ASYNC = tuple(flow for flow in FLOWS if flow != "blocking send")
OTHERS = (
    Other("redis-py", "redis", Redis, FLOWS),
    Other("nats-py", "nats", Nats, ASYNC),
    Other("aio-pika", "aio_pika", Rabbit, ASYNC),
    Other("pika", "pika", Rabbit, ("blocking send",)),
)


def missing(other: Other) -> list[str]:
    """What has to be installed before it can be measured."""
    lacks = [] if importlib.util.find_spec(other.module) else [f"{other.client} (a Python package)"]
    return lacks if found(other.server.program) else [*lacks, other.server.program]


def not_measured(others: Sequence[Other] = OTHERS) -> str:
    """One line about those that can't be measured here, empty when all can."""
    lacking = {other.client: missing(other) for other in others}
    told = [f"{client} (missing: {', '.join(lacks)})" for client, lacks in lacking.items() if lacks]
    return f"Not measured: {'; '.join(told)}. {HOW_TO_INSTALL}." if told else ""


@contextlib.contextmanager
def running(others: Sequence[Other], work: Path) -> Iterator[dict[type[Server], Server]]:
    """The servers of these clients, until the block ends."""
    with contextlib.ExitStack() as stack:
        kinds = dict.fromkeys(other.server for other in others)
        yield {kind: stack.enter_context(kind(work / kind.name)) for kind in kinds}


def measure_other(other: Other, server: Server, topic: str, flow: str, count: int) -> Cost:
    """The flow in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.sdk.other_clients"]
    done = subprocess.run(
        [*command, other.client, str(server.port), topic, flow, str(count)],
        cwd=CHECKOUT,
        capture_output=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise PeerError(f"{other.client}, {flow!r} failed: {done.stderr.decode(errors='replace').strip()}")
    return Cost(**orjson.loads(done.stdout))


def render(runs: Mapping[str, Mapping[str, Sequence[Cost]]]) -> str:
    """A table in Markdown: flow by flow the median rates of the clients, and the SDK's ratio to the best other one."""
    clients = list(dict.fromkeys(client for costs in runs.values() for client in costs))
    lines = [
        f"| messages/s (client CPU, us a message) | {' | '.join(clients)} | ratio to the best other (worst round) |",
        f"|---|{'---:|' * (len(clients) + 1)}",
    ]
    for flow, costs in runs.items():
        if END_TO_END.get(flow, math.inf) < math.inf:
            continue  # its rate was given, only the latencies say something
        cells = [_rate(costs.get(client, ())) for client in clients]
        lines.append(f"| {flow} | {' | '.join(cells)} | {_ratio(costs, 'rate')} |")
    lines += [_latency(runs[flow], clients, flow, name) for flow in END_TO_END if flow in runs for name in LATENCIES]
    return "\n".join(lines)


def _latency(costs: Mapping[str, Sequence[Cost]], clients: Sequence[str], flow: str, name: str) -> str:
    cells = [_median(costs.get(client, ()), name) for client in clients]
    return f"| {flow}, {name.removesuffix('_ms')}, ms | {' | '.join(cells)} | {_ratio(costs, name)} |"


def _rate(costs: Sequence[Cost]) -> str:
    if not costs:
        return ""
    rate = statistics.median(cost.rate for cost in costs)
    return f"{rate:,.0f} ({statistics.median(cost.cpu_us for cost in costs):.0f})"


def _median(costs: Sequence[Cost], name: str) -> str:
    return f"{statistics.median(getattr(cost, name) for cost in costs):.2f}" if costs else ""


def _ratio(costs: Mapping[str, Sequence[Cost]], name: str) -> str:
    """How many times as good as the best other, round by round: the median, and the worst."""
    own_costs, others = costs[SDK], [costs[client] for client in costs if client != SDK]
    if not others:
        return ""
    ratios = []
    for number, own in enumerate(own_costs):
        figures = [getattr(other[number], name) for other in others]
        value = getattr(own, name)
        ratios.append(value / max(figures) if name == "rate" else min(figures) / value)
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f})"
