"""One broker, and several at once, each under the same load: what more cores bring.

Every broker has a store, a name server and a load generator of its own; the rates are added up. Brokers and loads share
the machine: the table says how many cores each of them took, because that bounds what it can show.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from appliance.bench import rpc
from appliance.bench.load_spec import Load, LoadResult
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


class Scaling:
    """Alternates one broker and all of them."""

    def __init__(self, peers: Sequence[Peer], settings: RunSettings, say: Callable[[str], None], load: Load) -> None:
        self._peers = peers
        self._settings = settings
        self._say = say
        self._load = load

    def run(self, scenarios: Sequence[Scenario]) -> list[ScalingRow]:
        """Raises ConfigError for a scenario that brokers with other settings are needed for, GantryError on failure."""
        for scenario in scenarios:
            if scenario.setup != PLAIN or scenario.kind == "latency":
                raise ConfigError(f"--brokers cannot measure {scenario.name}: use such as {', '.join(SCALED)}")
        with contextlib.ExitStack() as stack:
            for peer in self._peers:
                stack.enter_context(peer)
                self._say(f"{peer.version} serves at {peer.broker_address}")
                for topic in {scenario.topic for scenario in scenarios}:
                    rpc.create_topic(peer.broker_address, topic, QUEUES[topic])
                warm_up(peer, scenarios, self._settings, self._load, self._say)
            return [self._row(scenario) for scenario in scenarios]

    def _row(self, scenario: Scenario) -> ScalingRow:
        row = ScalingRow(scenario.title)
        counts = [1, len(self._peers)]
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
            results = list(pool.map(self._load.run, specs))
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


def _check_stored(scenario: Scenario, peers: Sequence[Peer], before: list[int], results: list[LoadResult]) -> None:
    for peer, count, result in zip(peers, before, results, strict=True):
        found = messages_stored(peer, scenario.topic, count + result.acknowledged) - count
        if not scenario.one_way and found < result.acknowledged:
            raise GantryError(f"{peer.label}: {result.acknowledged} acknowledged, {found} stored")


def render_scaling(rows: Sequence[ScalingRow], brokers: int) -> str:
    """The table, and what it cannot show."""
    head = ("load (connections x in flight)", "brokers", "messages/s", "gain", "CPU us/msg", "cores: brokers", "loads")
    lines: list[tuple[str, ...]] = [(*head, "other")]
    for row in rows:
        for count in (1, brokers):
            cores = (f"{row.median(count, name):.2f}" for name in ("broker_cores", "load_cores", "other_cores"))
            gain = f"{row.gain(count):.2f}" if count > 1 else ""
            rate, cpu = f"{row.median(count, 'rate'):,.0f}", f"{row.median(count, 'broker_cpu_us'):.1f}"
            lines.append((row.title if count == 1 else "", str(count), rate, gain, cpu, *cores))
    return (
        f"{table(lines)}\nMedians. gain: rate beside that of one broker. This machine has {os.cpu_count()} cores: where"
        "\nbrokers, loads and other work together took them all, more brokers could not be faster.\n"
    )
