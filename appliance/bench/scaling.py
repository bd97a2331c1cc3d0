"""One broker, two, four and so on at once, each under the same load: what more cores bring.

Every broker has a store, a name server and a load generator of its own; the rates are added up. Brokers and loads share
the machine: the table says how many cores each of them took, because that bounds what it can show. When pinned, brokers
have one half of the cores and loads the other: while there are enough, each broker has a core to itself.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from appliance.bench import rpc
from appliance.bench.load_spec import Load, LoadResult, LoadSpec
from appliance.bench.peer import Peer
from appliance.bench.processes import machine_busy_s
from appliance.bench.report import table
from appliance.bench.run import load_cpu_s, messages_stored, queue_length, spec_of, warm_up
from appliance.bench.scenarios import QUEUES, Scenario
from appliance.bench.setups import PLAIN
from appliance.bench.warm_up import RunSettings
from gantrymq.errors import ConfigError, GantryError

SCALED = ("send-16x8", "batch-4x2", "pull-8")


@dataclass
class ScalingRun:
    """All loads of one round."""

    rate: float  # of all brokers together
    each: list[float]
    broker_cpu_us: float  # a message
    broker_cores: float
    load_cores: float
    other_cores: float
    errors: dict[str, int]


@dataclass
class ScalingRow:
    """One scenario: the runs by the number of brokers."""

    title: str
    runs: dict[int, list[ScalingRun]] = field(default_factory=dict)

    def median(self, brokers: int, name: str) -> float:
        return statistics.median(getattr(run, name) for run in self.runs[brokers])

    def gain(self, brokers: int) -> float:
        """The rate of so many brokers beside that of one: the median of the rounds."""
        pairs = zip(self.runs[brokers], self.runs[1], strict=True)
        return statistics.median(many.rate / one.rate for many, one in pairs)


class Pinning(NamedTuple):
    """Which cores brokers and loads may use."""

    brokers: list[set[int]]  # the first broker's, the second one's and so on; begins anew behind the last
    loads: list[set[int]]


def shared() -> Pinning:
    """All of them use each core."""
    every = os.sched_getaffinity(0)
    return Pinning([every], [every])


def pinned() -> Pinning:
    """Each broker on a core of one half, each load on one of the other half. Raises ConfigError with one core."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    if not half:
        raise ConfigError("--pin needs two cores: one for the broker, one for its load")
    return Pinning([{core} for core in cores[:half]], [{core} for core in cores[half : 2 * half]])


@contextlib.contextmanager
def _on(cores: list[set[int]], number: int) -> Iterator[None]:
    """What this thread starts meanwhile runs there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores[number % len(cores)])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Scaling:
    """Alternates one broker, 2, 4 and so on, and all of them."""

    def __init__(
        self, peers: Sequence[Peer], settings: RunSettings, say: Callable[[str], None], load: Load, pinning: Pinning
    ) -> None:
        self._peers = peers
        self._settings = settings
        self._say = say
        self._load = load
        self._pinning = pinning

    def run(self, scenarios: Sequence[Scenario]) -> list[ScalingRow]:
        """Raises ConfigError for a scenario that brokers with other settings are needed for, GantryError on failure."""
        for scenario in scenarios:
            if scenario.setup != PLAIN or scenario.kind == "latency":
                raise ConfigError(f"--brokers cannot measure {scenario.name}: use such as {', '.join(SCALED)}")
        with contextlib.ExitStack() as stack:
            for number, peer in enumerate(self._peers):
                with _on(self._pinning.brokers, number):
                    stack.enter_context(peer)
                self._say(f"{peer.version} serves at {peer.broker_address}")
                for topic in {scenario.topic for scenario in scenarios}:
                    rpc.create_topic(peer.broker_address, topic, QUEUES[topic])
                warm_up(peer, scenarios, self._settings, self._load, self._say)
            return [self._row(scenario) for scenario in scenarios]

    def _row(self, scenario: Scenario) -> ScalingRow:
        row = ScalingRow(scenario.title)
        counts = counts_up_to(len(self._peers))
        for turn in range(self._settings.rounds):
            for count in counts if turn % 2 == 0 else reversed(counts):
                run = self._measure(scenario, self._peers[:count])
                row.runs.setdefault(count, []).append(run)
                self._say(f"{scenario.name} {count}: {run.rate:,.0f}/s")
        return row

    def _measure(self, scenario: Scenario, peers: Sequence[Peer]) -> ScalingRun:
        os.sync()  # what the last run left dirty must not be written during this one
        lengths = [queue_length(peer) if scenario.kind == "pull" else 0 for peer in peers]
        before = [0 if scenario.kind == "pull" else messages_stored(peer, scenario.topic) for peer in peers]
        settings = self._settings
        specs = [
            spec_of(scenario, settings, peer.broker_address, length, settings.warm_s, settings.measure_s)
            for peer, length in zip(peers, lengths, strict=True)
        ]
        start, busy_s, load_s = time.monotonic(), machine_busy_s(), load_cpu_s()
        broker_s = sum(peer.broker.cpu_s() for peer in peers)
        with ThreadPoolExecutor(len(specs)) as pool:
            results = list(pool.map(self._run_load, range(len(specs)), specs))
        wall_s = time.monotonic() - start
        broker_s = sum(peer.broker.cpu_s() for peer in peers) - broker_s
        load_s = load_cpu_s() - load_s
        busy_s = machine_busy_s() - busy_s
        if scenario.kind != "pull":
            _check_stored(scenario, peers, before, results)
        return ScalingRun(
            rate=sum(result.rate for result in results),
            each=[result.rate for result in results],
            broker_cpu_us=broker_s / max(sum(result.acknowledged for result in results), 1) * 1e6,
            broker_cores=broker_s / wall_s,
            load_cores=load_s / wall_s,
            other_cores=max(busy_s - broker_s - load_s, 0.0) / wall_s,
            errors={error: count for result in results for error, count in result.errors.items()},
        )

    def _run_load(self, number: int, spec: LoadSpec) -> LoadResult:
        with _on(self._pinning.loads, number):
            return self._load.run(spec)


def counts_up_to(brokers: int) -> list[int]:
    """1, 2, 4 and so on, and all."""
    return [*(1 << power for power in range((brokers - 1).bit_length())), brokers]


def _check_stored(scenario: Scenario, peers: Sequence[Peer], before: list[int], results: list[LoadResult]) -> None:
    for peer, count, result in zip(peers, before, results, strict=True):
        found = messages_stored(peer, scenario.topic, count + result.acknowledged) - count
        if not scenario.one_way and found < result.acknowledged:
            raise GantryError(f"{peer.label}: {result.acknowledged} acknowledged, {found} stored")


def render_scaling(rows: Sequence[ScalingRow], pinning: Pinning) -> str:
    """The table, and what it cannot show."""
    head = ("load (connections x in flight)", "brokers", "messages/s", "gain", "CPU us/msg", "cores: brokers", "loads")
    lines: list[tuple[str, ...]] = [(*head, "other")]
    for row in rows:
        for count in sorted(row.runs):
            cores = (f"{row.median(count, name):.2f}" for name in ("broker_cores", "load_cores", "other_cores"))
            gain = f"{row.gain(count):.2f}" if count > 1 else ""
            rate, cpu = f"{row.median(count, 'rate'):,.0f}", f"{row.median(count, 'broker_cpu_us'):.1f}"
            lines.append((row.title if count == 1 else "", str(count), rate, gain, cpu, *cores))
    machine = f"This machine has {os.cpu_count()} cores"
    if pinning != shared():
        machine += f"; brokers were pinned to {len(pinning.brokers)} of them, loads to {len(pinning.loads)}"
    return (
        f"{table(lines)}\nMedians. gain: rate beside that of one broker. {machine}.\n"
        "Where brokers, loads and other work together took all they may use, more brokers could not be faster.\n"
    )
