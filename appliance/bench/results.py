"""The results of a benchmark: medians for each scenario and peer, and all single runs."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from appliance.bench.load_spec import LoadResult

GANTRY, APACHE = "gantry", "apache"  # labels of peers
# Above these the load itself may be what limits a figure.
CPU_SHARE_NEAR = 0.9
# Cores used by other processes than broker and load; above it a run says little, and favours brokers with threads.
OTHER_CPU_MUCH = 0.3


@dataclass
class LoadMetrics:
    """One peer under one load: medians of its runs."""

    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float  # of all runs
    ack_p50_ms: float
    ack_p99_ms: float
    load_cpu_share: float
    broker_cpu_us: float  # of the broker, each message
    slave_cpu_us: float  # of the slave, each message; 0.0 without one
    other_cpu: float  # cores that other work took meanwhile
    runs: list[dict[str, Any]]


@dataclass
class StartMetrics:
    """One peer from command to first stored message, and what it holds when nothing happens."""

    first_message_s: float
    broker_rss_bytes: float
    broker_pss_bytes: float
    namesrv_rss_bytes: float
    namesrv_pss_bytes: float
    runs: list[dict[str, float]]


@dataclass
class Compared:
    """One peer beside the base: of each round the quotient of both, their median, and the worst for the peer."""

    rate: float
    rate_worst: float
    cpu: float
    cpu_worst: float


@dataclass
class ScenarioMetrics:
    name: str
    title: str
    kind: str
    against: str = ""  # the scenario that has the same cost a message, if all is well
    fsyncs_per_s: list[float] = field(default_factory=list)  # of the disk alone, before each round
    loads: dict[str, LoadMetrics] = field(default_factory=dict)
    starts: dict[str, StartMetrics] = field(default_factory=dict)
    failure: str = ""  # what ended the row; its figures are of the rounds before

    def ratio(self) -> float | None:
        """GantryMQ's rate divided by Apache's; None unless both ran."""
        compared = self.compared(GANTRY, APACHE)
        return compared.rate if compared else None

    def compared(self, label: str, base: str) -> Compared | None:
        """A peer's rate and CPU a message, divided by those of another one; None unless both ran."""
        if label == base or not {label, base} <= self.loads.keys():
            return None
        pairs = list(zip(self.loads[label].runs, self.loads[base].runs, strict=True))
        rates = [mine["rate"] / other["rate"] for mine, other in pairs if other["rate"]]
        costs = [mine["broker_cpu_us"] / other["broker_cpu_us"] for mine, other in pairs if other["broker_cpu_us"]]
        if not rates or not costs:
            return None
        return Compared(statistics.median(rates), min(rates), statistics.median(costs), max(costs))

    @property
    def _rounds(self) -> int:
        return min((len(metrics.runs) for metrics in self.loads.values()), default=0)

    def warnings(self) -> list[str]:
        """Cases where the load may have been the limit, or where responses had errors."""
        texts = [f"{self.title}: failed after {self._rounds} rounds: {self.failure}"] if self.failure else []
        for label, metrics in self.loads.items():
            if metrics.load_cpu_share > CPU_SHARE_NEAR:
                texts.append(f"{self.title}: with {label} the load used {metrics.load_cpu_share:.0%} of its core")
            if metrics.other_cpu > OTHER_CPU_MUCH:
                texts.append(f"{self.title}: other work took {metrics.other_cpu:.1f} cores while {label} was measured")
            for run in metrics.runs:
                if run["errors"]:
                    texts.append(f"{self.title}: {label} answered with errors: {run['errors']}")
                if run["missing"]:
                    texts.append(f"{self.title}: {label} acknowledged {run['missing']} messages that no queue has")
        return texts


@dataclass
class BenchResults:
    """A whole run; `as_json` is what --json keeps."""

    peers: dict[str, str] = field(default_factory=dict)  # label to name and version
    machine: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    scenarios: list[ScenarioMetrics] = field(default_factory=list)
    memory_after_load: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def are_right(self) -> bool:
        """Whether every row was measured, without errors in answers and without messages that are missing."""
        runs = [run for metrics in self.scenarios for load in metrics.loads.values() for run in load.runs]
        return not any(run["errors"] or run["missing"] for run in runs) and not any(
            metrics.failure for metrics in self.scenarios
        )

    @property
    def base(self) -> str:
        """The peer that the others are compared with: Apache's, or else the last one."""
        return APACHE if APACHE in self.peers else next(reversed(self.peers), "")

    def as_json(self) -> dict[str, Any]:
        data = asdict(self)
        for scenario, plain in zip(self.scenarios, data["scenarios"], strict=True):
            plain["ratio"] = scenario.ratio()
            compared = {label: scenario.compared(label, self.base) for label in scenario.loads}
            plain["compared"] = {label: asdict(each) for label, each in compared.items() if each}
        data["base"] = self.base
        data["warnings"] = self.warnings()
        return data

    def warnings(self) -> list[str]:
        return [text for scenario in self.scenarios for text in scenario.warnings()]


@dataclass
class LoadRun:
    """One run of the load against one peer."""

    result: LoadResult
    broker_cpu_s: float
    other_cpu: float
    missing: int  # acknowledged messages that GET_MAX_OFFSET does not show; 0 is right
    slave_cpu_s: float = 0.0  # until it had all
    copied_after_s: float = 0.0  # the load's end

    @property
    def broker_cpu_us(self) -> float:
        """Each message."""
        return self.broker_cpu_s / max(self.result.acknowledged, 1) * 1e6

    @property
    def slave_cpu_us(self) -> float:
        """Each message."""
        return self.slave_cpu_s / max(self.result.acknowledged, 1) * 1e6

    def plain(self) -> dict[str, Any]:
        return {
            **asdict(self.result),
            "broker_cpu_s": self.broker_cpu_s,
            "broker_cpu_us": self.broker_cpu_us,
            "slave_cpu_us": self.slave_cpu_us,
            "copied_after_s": self.copied_after_s,
            "other_cpu": self.other_cpu,
            "missing": self.missing,
        }


def load_metrics(runs: list[LoadRun]) -> LoadMetrics:
    """The medians of the runs."""

    def median(name: str) -> float:
        values: list[float] = [getattr(run.result, name) for run in runs]
        return statistics.median(values)

    return LoadMetrics(
        rate=median("rate"),
        p50_ms=median("p50_ms"),
        p99_ms=median("p99_ms"),
        max_ms=max(run.result.max_ms for run in runs),
        ack_p50_ms=median("ack_p50_ms"),
        ack_p99_ms=median("ack_p99_ms"),
        load_cpu_share=median("cpu_share"),
        broker_cpu_us=statistics.median(run.broker_cpu_us for run in runs),
        slave_cpu_us=statistics.median(run.slave_cpu_us for run in runs),
        other_cpu=statistics.median(run.other_cpu for run in runs),
        runs=[run.plain() for run in runs],
    )


def start_metrics(runs: list[dict[str, float]]) -> StartMetrics:
    """The medians of the runs."""
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return StartMetrics(**medians, runs=runs)
