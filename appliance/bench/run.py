"""One benchmark run: start the peers, warm them up, alternate the loads, check what was stored, take medians."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from appliance.bench import rpc
from appliance.bench.frames import DIGITS, key_prefix, message_properties, send_frame
from appliance.bench.fsync_rate import fsyncs_per_s
from appliance.bench.load_spec import Load, LoadSpec
from appliance.bench.maven import ToolError
from appliance.bench.pair import start_slave, stopped, wait_until_copied
from appliance.bench.peer import Peer, PeerError
from appliance.bench.processes import machine_busy_s
from appliance.bench.results import (
    APACHE,
    OTHER_CPU_MUCH,
    BenchResults,
    LoadRun,
    ScenarioMetrics,
    load_metrics,
    start_metrics,
)
from appliance.bench.scenarios import PULL_TOPIC, QUEUES, Scenario
from appliance.bench.setups import PLAIN, SYNC, Setup
from appliance.bench.warm_up import RunSettings, warm_up_loads
from gantrymq.errors import ConfigError, GantryError
from gantrymq.remoting.codes import RequestCode

FIRST_MESSAGE_TIMEOUT_S = 60.0
QUIET_S = 0.5  # so long the machine must have been idle before a patient run
QUIET_TIMEOUT_S = 20.0
FSYNC_S = 0.5  # of the disk alone, beside each round that waits for it


MakePeer = Callable[[Path, Mapping[str, str], bool], Peer]  # home folder, properties, whether for the idle memory


class Bench:
    """Runs scenarios against peers. `say` gets a line whenever something has been done."""

    def __init__(
        self,
        makers: dict[str, MakePeer],
        home: Path,
        settings: RunSettings,
        say: Callable[[str], None],
        load: Load,
    ) -> None:
        self._makers = makers
        self._home = home
        self._settings = settings
        self._say = say
        self._load = load
        self._slaves: dict[str, Peer] = {}  # by label, of the peers that run

    def run(self, scenarios: Sequence[Scenario]) -> BenchResults:
        """Run them all. What fails is told in the row that it concerns, and the others go on.

        Raises ConfigError, ToolError when a peer cannot run on this machine.
        """
        results = BenchResults(machine=_machine(), settings=asdict(self._settings))
        for scenario in scenarios:
            if not scenario.is_load:
                with self._told([scenario], results):
                    results.scenarios.append(self._starts(scenario, results))
        for setup in dict.fromkeys(scenario.setup.name for scenario in scenarios if scenario.is_load):
            of_setup = [each for each in scenarios if each.is_load and each.setup.name == setup]
            with self._told(of_setup, results):
                self._loads(of_setup, results)
        results.scenarios.sort(key=lambda metrics: [scenario.name for scenario in scenarios].index(metrics.name))
        return results

    @contextlib.contextmanager
    def _told(self, scenarios: Sequence[Scenario], results: BenchResults) -> Iterator[None]:
        """A failure inside is told in the rows that are not there yet: what was measured before must not be lost."""
        try:
            yield
        except (ConfigError, ToolError):  # nothing is wrong with a row: the command asks for what cannot run here
            raise
        except (GantryError, OSError) as exc:
            there = {metrics.name for metrics in results.scenarios}
            for scenario in scenarios:
                if scenario.name not in there:
                    results.scenarios.append(replace(_empty(scenario), failure=str(exc)))
                    self._say(f"{scenario.name} failed: {exc}")

    # -- loads --------------------------------------------------------------------------------------------------------

    def _loads(self, scenarios: Sequence[Scenario], results: BenchResults) -> None:
        """All loads of one setup."""
        setup = scenarios[0].setup
        with contextlib.ExitStack() as stack:
            peers = [stack.enter_context(peer) for peer in self._peers(setup)]
            for peer in peers:
                results.peers[peer.label] = peer.version
                self._say(f"{peer.version} serves at {peer.broker_address}")
                if setup.slave:
                    stack.callback(self._slaves.pop, peer.label)
                    stack.enter_context(self._slave_of(peer, setup))
                for topic in {scenario.topic for scenario in scenarios if not setup.topics}:
                    rpc.create_topic(peer.broker_address, topic, QUEUES[topic], peer.credentials)
            for peer in peers:
                warm_up(peer, scenarios, self._settings, self._load, self._say)
            for scenario in scenarios:
                results.scenarios.append(self._one(scenario, peers))
            if setup == PLAIN and all(peer.broker.exit_code is None for peer in peers):
                for peer in peers:
                    uses = peer.memory().items()
                    memory = {f"{role}_{kind}": value for role, use in uses for kind, value in use.plain()}
                    results.memory_after_load[peer.label] = memory

    def _peers(self, setup: Setup) -> Iterator[Peer]:
        for label, make in self._makers.items():
            if label == APACHE and not setup.apache:
                self._say(f"{label} is left out: its broker cannot do the setup {setup.name!r}")
                continue
            home = self._home / f"{label}-{setup.name}"
            home.mkdir(parents=True)
            peer = make(home, setup.prepare(home), setup.idle)
            peer.credentials = setup.credentials
            yield peer

    @contextlib.contextmanager
    def _slave_of(self, peer: Peer, setup: Setup) -> Iterator[None]:
        """Run a slave beside a peer; both have a first message then."""
        home = self._home / f"{peer.label}-{setup.name}-slave"
        home.mkdir(parents=True)
        slave = self._slaves[peer.label] = self._makers[peer.label](home, setup.prepare(home), setup.idle)
        try:
            start_slave(slave, peer)
            _store_first_message(peer, time.monotonic() + FIRST_MESSAGE_TIMEOUT_S)
            self._say(f"{peer.label}: a slave has its log after {wait_until_copied(slave, peer):.1f} s")
            yield
        finally:
            slave.stop()

    def _one(self, scenario: Scenario, peers: Sequence[Peer]) -> ScenarioMetrics:
        """All rounds of a row; when one fails, those before it and the reason."""
        metrics = _empty(scenario)
        rounds: list[dict[str, LoadRun]] = []
        try:
            for turn in range(self._settings.rounds):
                rounds.append(self._round(scenario, peers if turn % 2 == 0 else peers[::-1], metrics))
        except (GantryError, OSError) as exc:
            metrics.failure = str(exc)
            self._say(f"{scenario.name} failed: {exc}")
        if rounds:
            metrics.loads = {peer.label: load_metrics([done[peer.label] for done in rounds]) for peer in peers}
        return metrics

    def _round(self, scenario: Scenario, peers: Sequence[Peer], metrics: ScenarioMetrics) -> dict[str, LoadRun]:
        if scenario.setup == SYNC:
            metrics.fsyncs_per_s.append(fsyncs_per_s(self._home, FSYNC_S))
        runs: dict[str, LoadRun] = {}
        for peer in peers:
            run = runs[peer.label] = self._measure_undisturbed(scenario, peer)
            self._say(f"{scenario.name} {peer.label}: {run.result.rate:,.0f}/s  p99 {run.result.p99_ms:.2f} ms")
        return runs

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

    def _measure(self, scenario: Scenario, peer: Peer) -> LoadRun:
        settings = self._settings
        os.sync()  # what the last run left dirty must not be written during this one
        counts = scenario.kind != "pull" and not scenario.setup.topics  # 80 000 queues take too long
        before = messages_stored(peer, scenario.topic) if counts else 0
        length = queue_length(peer) if scenario.kind == "pull" else 0
        measure_s = settings.latency_s if scenario.kind == "latency" else settings.measure_s
        spec = spec_of(scenario, settings, peer.broker_address, length, settings.warm_s, measure_s)
        busy_before, start, cpu_before = machine_busy_s(), time.monotonic(), peer.broker.cpu_s()
        load_before, slave = load_cpu_s(), self._slaves.get(peer.label)
        slave_before = slave.broker.cpu_s() if slave is not None else 0.0
        with stopped(slave if scenario.slave_stopped else None):
            result = self._load.run(spec)
        cpu_s = peer.broker.cpu_s() - cpu_before
        slave_s = slave.broker.cpu_s() - slave_before if slave is not None else 0.0
        other_s = machine_busy_s() - busy_before - cpu_s - slave_s - (load_cpu_s() - load_before)
        other_cpu = max(other_s, 0.0) / (time.monotonic() - start)
        stored = (
            messages_stored(peer, scenario.topic, before + result.acknowledged) - before
            if counts
            else result.acknowledged
        )
        copied_after_s = 0.0
        if slave is not None:
            copied_after_s = wait_until_copied(slave, peer)
            slave_s = slave.broker.cpu_s() - slave_before
        missing = max(result.acknowledged - stored, 0)
        if not result.errors and stored != result.acknowledged and not scenario.one_way:
            raise GantryError(
                f"{peer.label}: {result.acknowledged} acknowledged, {stored} stored, and no error reported"
            )
        return LoadRun(result, cpu_s, other_cpu, missing, slave_s, copied_after_s)

    # -- start-up and idle memory -------------------------------------------------------------------------------------

    def _starts(self, scenario: Scenario, results: BenchResults) -> ScenarioMetrics:
        metrics = _empty(scenario)
        runs: dict[str, list[dict[str, float]]] = {label: [] for label in self._makers}
        for turn in range(self._settings.start_rounds):
            for label, make in self._makers.items():
                peer = make(self._home / f"{label}-start-{turn}", {}, scenario.setup.idle)
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


def _empty(scenario: Scenario) -> ScenarioMetrics:
    return ScenarioMetrics(name=scenario.name, title=scenario.title, kind=scenario.kind, against=scenario.against)


def warm_up(
    peer: Peer, scenarios: Sequence[Scenario], settings: RunSettings, load: Load, say: Callable[[str], None]
) -> None:
    """Run all measured code paths before measuring: a JVM needs that, and GantryMQ gets the same."""
    for each in warm_up_loads(scenarios, settings):
        scenario = each.scenario
        length = queue_length(peer) if scenario.kind == "pull" else 0
        spec = spec_of(scenario, settings, peer.broker_address, length, 0, each.seconds)
        spec = replace(spec, connections=each.connections, in_flight=each.in_flight, messages_max=each.messages)
        result = load.run(spec)
        if not scenario.setup.topics:
            messages_stored(peer, scenario.topic)
        say(f"warm-up {peer.label}: {scenario.kind} {result.acknowledged} messages, {result.rate:,.0f}/s")


def spec_of(
    scenario: Scenario, settings: RunSettings, address: str, length: int, warm_s: float, measure_s: float
) -> LoadSpec:
    """The load of a scenario. length: of the queues that pulls read, before they turn back."""
    account = scenario.setup.credentials
    return LoadSpec(
        kind=scenario.kind,
        address=address,
        topic=scenario.topic,
        queue_count=QUEUES[scenario.topic],
        topic_count=scenario.setup.topics or 1,
        connections=scenario.connections,
        in_flight=scenario.in_flight,
        body_bytes=scenario.body_bytes or settings.body_bytes,
        warm_s=warm_s,
        measure_s=measure_s,
        queue_length=length,
        binary_headers=scenario.binary_headers,
        one_way=scenario.one_way,
        access_key=account.access_key if account else "",
        secret_key=account.secret_key if account else "",
    )


def _wait_until_idle() -> None:
    """Return when other work leaves the machine alone, or after a while anyway."""
    deadline = time.monotonic() + QUIET_TIMEOUT_S
    while time.monotonic() < deadline:
        before = machine_busy_s()
        time.sleep(QUIET_S)
        if machine_busy_s() - before < OTHER_CPU_MUCH * QUIET_S:
            return


def load_cpu_s() -> float:
    """CPU seconds of this process and of the loads that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def messages_stored(peer: Peer, topic: str, expected: int = 0) -> int:
    """Messages in the queues of a topic, once that stands still: Java's queues follow its commit log at a distance.

    It stands still after 0.3 s, and while it is less than expected only after 10 s.
    """
    counted, still = -1, 0
    while still < (3 if counted >= expected else 100):
        now = sum(rpc.max_offsets(peer.broker_address, topic, QUEUES[topic], peer.credentials))
        counted, still = now, still + 1 if now == counted else 0
        time.sleep(0.1)
    return counted


def queue_length(peer: Peer) -> int:
    """The length of the shortest queue of the pull topic: where every reader turns back."""
    return min(rpc.max_offsets(peer.broker_address, PULL_TOPIC, QUEUES[PULL_TOPIC]))


def _store_first_message(peer: Peer, deadline: float) -> None:
    """Try to send to a topic that the broker creates by itself, until it is stored."""
    message = message_properties(key_prefix(), "0" * DIGITS)
    frame = send_frame(RequestCode.SEND_MESSAGE_V2, "FirstMessage", 0, message, bytes(1024))
    while True:
        if peer.broker.exit_code is not None:
            raise PeerError(f"{peer.label}: broker ended: {peer.broker.last_output()}")
        try:
            with rpc.connect(peer.broker_address, timeout_s=2.0) as connection:
                if rpc.call_frame(connection, frame).code == 0:
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
