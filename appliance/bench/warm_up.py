"""How long a run takes, and what it does before it measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from appliance.bench.scenarios import BY_NAME, Scenario
from appliance.bench.setups import MANY_QUEUES, PLAIN

MANY_S = 600.0  # the first message of each of many queues makes a file


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


class WarmUp(NamedTuple):
    """A load like a scenario's, of so many messages or so many seconds."""

    scenario: Scenario
    connections: int
    in_flight: int
    messages: int
    seconds: float


def warm_up_loads(scenarios: Sequence[Scenario], settings: RunSettings) -> Iterator[WarmUp]:
    """All kinds of requests of these scenarios, which have one setup: a JVM compiles what has run often."""
    messages, seconds = settings.warm_up_messages, settings.warm_up_s
    setup = scenarios[0].setup
    if setup.topics:
        yield WarmUp(scenarios[0], 16, 8, max(messages, 2 * setup.topics * MANY_QUEUES), MANY_S)
        return
    if setup != PLAIN:
        yield WarmUp(scenarios[0], scenarios[0].connections, scenarios[0].in_flight, messages, seconds)
        return
    kinds = {scenario.kind for scenario in scenarios}
    if kinds & {"send", "latency"}:
        yield WarmUp(BY_NAME["send-16x8"], 16, 8, messages, seconds)
    if "batch" in kinds:
        yield WarmUp(BY_NAME["batch-4x2"], 4, 2, 2 * messages, seconds)
    for scenario in [each for each in scenarios if each.kind == "pull"][:1]:
        yield WarmUp(replace(BY_NAME["batch-4x2"], topic=scenario.topic), 1, 1, settings.pull_messages, seconds)
        yield WarmUp(scenario, 8, 1, 4 * messages, seconds)
    for scenario in scenarios:
        if scenario.binary_headers:
            yield WarmUp(scenario, 16, 8, messages // 4, seconds)
