"""One benchmark run: start the peers, warm them up, alternate the loads, check what was stored, take medians."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from appliance.bench import rpc
from appliance.bench.frames import send_ring
from appliance.bench.load_spec import LoadResult, LoadSpec
from appliance.bench.null_server import PULLED
from appliance.bench.peer import Peer, PeerError
from appliance.bench.processes import machine_busy_s
from appliance.bench.results import (
    OTHER_CPU_MUCH,
    BenchResults,
    LoadRun,
    ScenarioMetrics,
    load_metrics,
    start_metrics,
)
from appliance.bench.scenarios import BATCH_TOPIC, PULL_TOPIC, QUEUES, SEND_TOPIC, Scenario
from gantrymq.errors import GantryError

CHECKOUT = Path(__file__).parents[2]
FIRST_MESSAGE_TIMEOUT_S = 60.0
QUIET_S = 0.5  # so long the machine must have been idle before a patient run
QUIET_TIMEOUT_S = 20.0
SLACK_S = 60.0  # a load that takes so much longer than it was told hangs


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How long and how often. The defaults are the full run; `QUICK` is for a look, `TINY` for the tests."""

    rounds: int = 3
    start_rounds: int = 3
    warm_s: float = 0.5
    measure_s: float = 4.0
    ceiling_s: float = 1.0
    latency_s: float = 10.0
    warm_up_messages: int = 150_000  # a JVM runs at half speed before about 100 000
    warm_up_s: float = 30.0
    pull_messages: int = 64_000
    idle_s: float = 5.0
    body_bytes: int = 1024
    patience: int = 0  # runs that are repeated because other work disturbed them, at most so often each


FULL = RunSettings()
QUICK = RunSettings(rounds=1, start_rounds=1, measure_s=2.0, ceiling_s=0.5, latency_s=4.0, warm_up_s=10.0, idle_s=2.0)
TINY = RunSettings(
    rounds=1,
    start_rounds=1,
    warm_s=0.05,
    measure_s=0.2,
    ceiling_s=0.1,
    latency_s=0.3,
    warm_up_messages=200,
    pull_messages=2_000,
    idle_s=0.1,
)

MakePeer = Callable[[Path, bool], Peer]  # home folder, whether it is for start-up and idle memory only


class Bench:
    """Runs scenarios against peers. `say` gets a line whenever something has been done."""

    def __init__(
        self, makers: dict[str, MakePeer], home: Path, settings: RunSettings, say: Callable[[str], None]
    ) -> None:
        self._makers = makers
        self._home = home
        self._settings = settings
        self._say = say

    def run(self, scenarios: Sequence[Scenario]) -> BenchResults:
        """Run them all. Raises PeerError when a peer does not start, GantryError when a load fails."""
        results = BenchResults(machine=_machine(), settings=asdict(self._settings))
        for scenario in scenarios:
            if scenario.kind == "start":
                results.scenarios.append(self._starts(scenario, results))
        loads = [scenario for scenario in scenarios if scenario.kind != "start"]
        if loads:
            self._loads(loads, results)
        results.scenarios.sort(key=lambda metrics: [scenario.name for scenario in scenarios].index(metrics.name))
        return results

    # -- loads --------------------------------------------------------------------------------------------------------

    def _loads(self, scenarios: Sequence[Scenario], results: BenchResults) -> None:
        with contextlib.ExitStack() as stack:
            peers: list[Peer] = []
            for label, make in self._makers.items():
                peer = stack.enter_context(make(self._home / label, False))
                results.peers[label] = peer.version
                peers.append(peer)
                self._say(f"{peer.version} serves at {peer.broker_address}")
                for topic, queue_count in QUEUES.items():
                    rpc.create_topic(peer.broker_address, topic, queue_count)
            for peer in peers:
                self._warm_up(peer, scenarios)
            for scenario in scenarios:
                results.scenarios.append(self._one(scenario, peers))
            for peer in peers:
                memory = {f"{role}_{kind}": value for role, use in peer.memory().items() for kind, value in use.plain()}
                results.memory_after_load[peer.label] = memory

    def _warm_up(self, peer: Peer, scenarios: Sequence[Scenario]) -> None:
        """Run all measured code paths before measuring: a JVM needs that, and GantryMQ gets the same."""
        settings = self._settings
        kinds = {scenario.kind for scenario in scenarios}
        loads = []
        if kinds & {"send", "latency"}:
            loads.append(("send", SEND_TOPIC, 16, 8, settings.warm_up_messages))
        if "batch" in kinds:
            loads.append(("batch", BATCH_TOPIC, 4, 2, 2 * settings.warm_up_messages))
        if "pull" in kinds:
            loads.append(("batch", PULL_TOPIC, 1, 1, settings.pull_messages))
            loads.append(("pull", PULL_TOPIC, 8, 1, 4 * settings.warm_up_messages))
        for kind, topic, connections, in_flight, messages in loads:
            spec = LoadSpec(
                kind=kind,
                address=peer.broker_address,
                topic=topic,
                queue_count=QUEUES[topic],
                connections=connections,
                in_flight=in_flight,
                body_bytes=settings.body_bytes,
                warm_s=0,
                measure_s=settings.warm_up_s,
                messages_max=messages,
                queue_length=_queue_length(peer) if kind == "pull" else 0,
            )
            result = run_load(spec)
            _stored(peer, topic)
            self._say(f"warm-up {peer.label}: {kind} {result.acknowledged} messages, {result.rate:,.0f}/s")

    def _one(self, scenario: Scenario, peers: Sequence[Peer]) -> ScenarioMetrics:
        settings = self._settings
        metrics = ScenarioMetrics(name=scenario.name, title=scenario.title, kind=scenario.kind)
        runs: dict[str, list[LoadRun]] = {peer.label: [] for peer in peers}
        for turn in range(settings.rounds):
            if scenario.kind != "latency":
                self._ceiling(scenario, metrics)
            for peer in peers if turn % 2 == 0 else reversed(peers):
                run = self._measure_undisturbed(scenario, peer)
                runs[peer.label].append(run)
                self._say(f"{scenario.name} {peer.label}: {run.result.rate:,.0f}/s  p99 {run.result.p99_ms:.2f} ms")
        metrics.loads = {label: load_metrics(done) for label, done in runs.items()}
        return metrics

    def _measure_undisturbed(self, scenario: Scenario, peer: Peer) -> LoadRun:
        """Run the load, again while other work disturbs it, up to `patience` times; the least disturbed run counts."""
        patience = self._settings.patience
        runs: list[LoadRun] = []
        while len(runs) <= patience:
            if patience:
                _wait_until_idle()
            runs.append(self._measure(scenario, peer))
            if runs[-1].other_cpu <= OTHER_CPU_MUCH:
                break
            self._say(f"{scenario.name} {peer.label}: other work took {runs[-1].other_cpu:.1f} cores")
        return min(runs, key=lambda run: run.other_cpu)

    def _ceiling(self, scenario: Scenario, metrics: ScenarioMetrics) -> None:
        """Measure the load generator's own limit; the best run counts, because disturbances can only lower it."""
        settings = self._settings
        with null_server() as address:
            spec = self._spec(scenario, address, PULLED, min(settings.warm_s, 0.3), settings.ceiling_s)
            result = run_load(spec)
        if result.rate > metrics.ceiling:
            metrics.ceiling, metrics.ceiling_cpu_share = result.rate, result.cpu_share

    def _measure(self, scenario: Scenario, peer: Peer) -> LoadRun:
        settings = self._settings
        os.sync()  # what the last run left dirty must not be written during this one
        before = _stored(peer, scenario.topic)
        queue_length = _queue_length(peer) if scenario.kind == "pull" else 0
        measure_s = settings.latency_s if scenario.kind == "latency" else settings.measure_s
        spec = self._spec(scenario, peer.broker_address, queue_length, settings.warm_s, measure_s)
        busy_before, start, cpu_before = machine_busy_s(), time.monotonic(), peer.broker.cpu_s()
        load_before = _load_cpu_s()
        result = run_load(spec)
        cpu_s = peer.broker.cpu_s() - cpu_before
        other_s = machine_busy_s() - busy_before - cpu_s - (_load_cpu_s() - load_before)
        other_cpu = max(other_s, 0.0) / (time.monotonic() - start)
        stored = _stored(peer, scenario.topic, before + result.acknowledged) - before
        missing = 0 if scenario.kind == "pull" else max(result.acknowledged - stored, 0)
        if not result.errors and scenario.kind != "pull" and stored != result.acknowledged:
            raise GantryError(f"{peer.label}: {result.acknowledged} acknowledged, {stored} stored, and no error told")
        return LoadRun(result, cpu_s, other_cpu, missing)

    def _spec(self, scenario: Scenario, address: str, queue_length: int, warm_s: float, measure_s: float) -> LoadSpec:
        return LoadSpec(
            kind=scenario.kind,
            address=address,
            topic=scenario.topic,
            queue_count=QUEUES[scenario.topic],
            connections=scenario.connections,
            in_flight=scenario.in_flight,
            body_bytes=self._settings.body_bytes,
            warm_s=warm_s,
            measure_s=measure_s,
            queue_length=queue_length,
        )

    # -- start-up and idle memory -------------------------------------------------------------------------------------

    def _starts(self, scenario: Scenario, results: BenchResults) -> ScenarioMetrics:
        metrics = ScenarioMetrics(name=scenario.name, title=scenario.title, kind=scenario.kind)
        runs: dict[str, list[dict[str, float]]] = {label: [] for label in self._makers}
        for turn in range(self._settings.start_rounds):
            for label, make in self._makers.items():
                peer = make(self._home / f"{label}-start-{turn}", True)
                results.peers[label] = peer.version
                run = self._start(peer)
                runs[label].append(run)
                self._say(f"start {label}: first message after {run['first_message_s']:.2f} s")
        metrics.starts = {label: start_metrics(done) for label, done in runs.items()}
        return metrics

    def _start(self, peer: Peer) -> dict[str, float]:
        start = time.monotonic()
        try:
            peer.launch()
            _store_first_message(peer, start + FIRST_MESSAGE_TIMEOUT_S)
            first_message_s = time.monotonic() - start
            time.sleep(self._settings.idle_s)
            memory = peer.memory()
        finally:
            peer.stop()
        return {
            "first_message_s": first_message_s,
            "broker_rss_bytes": memory["broker"].rss_bytes,
            "broker_pss_bytes": memory["broker"].pss_bytes,
            "namesrv_rss_bytes": memory["namesrv"].rss_bytes,
            "namesrv_pss_bytes": memory["namesrv"].pss_bytes,
        }


def run_load(spec: LoadSpec) -> LoadResult:
    """Run one load in a process of its own. Raises GantryError with its output when it fails or hangs."""
    command = [sys.executable, "-m", "appliance.bench.load", orjson.dumps(asdict(spec)).decode()]
    try:
        done = subprocess.run(
            command, cwd=CHECKOUT, capture_output=True, timeout=spec.warm_s + spec.measure_s + SLACK_S, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise GantryError(f"load {spec.kind} against {spec.address} hangs") from exc
    if done.returncode != 0:
        raise GantryError(f"load {spec.kind} against {spec.address} failed: {done.stderr.decode()[-2000:]}")
    return LoadResult(**orjson.loads(done.stdout))


@contextlib.contextmanager
def null_server() -> Iterator[str]:
    """A null server; the value is its address."""
    command = [sys.executable, "-m", "appliance.bench.null_server"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def _wait_until_idle() -> None:
    """Return when other work leaves the machine alone, or after a while anyway."""
    deadline = time.monotonic() + QUIET_TIMEOUT_S
    while time.monotonic() < deadline:
        before = machine_busy_s()
        time.sleep(QUIET_S)
        if machine_busy_s() - before < OTHER_CPU_MUCH * QUIET_S:
            return


def _load_cpu_s() -> float:
    """CPU seconds of this process and of the loads that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _stored(peer: Peer, topic: str, expected: int = 0) -> int:
    """Messages in the queues of a topic, once that stands still: Java's queues follow its commit log at a distance.

    It stands still after 0.3 s, and while it is less than expected only after 10 s.
    """
    counted, still = -1, 0
    while still < (3 if counted >= expected else 100):
        now = sum(rpc.max_offsets(peer.broker_address, topic, QUEUES[topic]))
        counted, still = now, still + 1 if now == counted else 0
        time.sleep(0.1)
    return counted


def _queue_length(peer: Peer) -> int:
    """The length of the shortest queue of the pull topic: where every reader turns back."""
    return min(rpc.max_offsets(peer.broker_address, PULL_TOPIC, QUEUES[PULL_TOPIC]))


def _store_first_message(peer: Peer, deadline: float) -> None:
    """Try to send to a topic that the broker creates by itself, until it is stored."""
    while True:
        if peer.broker.exit_code is not None:
            raise PeerError(f"{peer.label}: broker ended: {peer.broker.last_output()}")
        try:
            with rpc.connect(peer.broker_address, timeout_s=2.0) as connection:
                ring = send_ring("FirstMessage", [0], 1024, 1)
                if rpc.call_frame(connection, ring.take(1)[0]).code == 0:
                    return
        except GantryError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.005)


def _machine() -> dict[str, object]:
    return {
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
