"""The settings of a run that takes a moment: it measures nothing, and has all parts."""

from __future__ import annotations

from appliance.bench.warm_up import RunSettings

TINY = RunSettings(
    rounds=1,
    start_rounds=1,
    warm_s=0.05,
    measure_s=0.2,
    latency_s=0.3,
    warm_up_messages=200,
    pull_messages=2_000,
    idle_s=0.1,
)
