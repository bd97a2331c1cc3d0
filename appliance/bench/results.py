"""The results of a benchmark: medians for each scenario and peer, and all single runs."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from appliance.bench.load_spec import LoadResult

# Above these the load itself may be what limits a figure.
CEILING_NEAR = 0.7
CPU_SHARE_NEAR = 0.9
# Cores used by other processes than broker and load; above it a run says little, and favours brokers with threads.
OTHER_CPU_MUCH = 0.3


@dataclass
class LoadMetrics:
    """One peer under one load: medians of its runs."""

    rate: float
    p50_ms: float
    p99_ms: float
    ack_p50_ms: float
    ack_p99_ms: float
    load_cpu_share: float
    broker_cpu_us: float  # of the broker, each message
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
class ScenarioMetrics:
    name: str
    title: str
    kind: str
    ceiling: float = 0.0  # messages a second of the same load against the null server
    ceiling_cpu_share: float = 0.0
    loads: dict[str, LoadMetrics] = field(default_factory=dict)
    starts: dict[str, StartMetrics] = field(default_factory=dict)

    def ratio(self) -> float | None:
        """GantryMQ's rate divided by Apache's; None unless both ran."""
        if {"gantry", "apache"} <= self.loads.keys() and self.loads["apache"].rate:
            return self.loads["gantry"].rate / self.loads["apache"].rate
        return None

    def warnings(self) -> list[str]:
        """Cases where the load may have been the limit, or where responses had errors."""
        texts = []
        for label, metrics in self.loads.items():
            if self.ceiling and self.kind != "latency" and metrics.rate > CEILING_NEAR * self.ceiling:
                texts.append(f"{self.title}: {label} is at {metrics.rate / self.ceiling:.0%} of the load's ceiling")
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

    def as_json(self) -> dict[str, Any]:
        data = asdict(self)
        for scenario, plain in zip(self.scenarios, data["scenarios"], strict=True):
            plain["ratio"] = scenario.ratio()
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

    def plain(self) -> dict[str, Any]:
        return {
            **asdict(self.result),
            "broker_cpu_s": self.broker_cpu_s,
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
        ack_p50_ms=median("ack_p50_ms"),
        ack_p99_ms=median("ack_p99_ms"),
        load_cpu_share=median("cpu_share"),
        broker_cpu_us=statistics.median(run.broker_cpu_s / max(run.result.acknowledged, 1) * 1e6 for run in runs),
        other_cpu=statistics.median(run.other_cpu for run in runs),
        runs=[run.plain() for run in runs],
    )


def start_metrics(runs: list[dict[str, float]]) -> StartMetrics:
    """The medians of the runs."""
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return StartMetrics(**medians, runs=runs)
