"""Which loads there are. Widths are connections x requests in flight on each."""

from __future__ import annotations

from dataclasses import dataclass

SEND_TOPIC = "BenchSend"
BATCH_TOPIC = "BenchBatch"
PULL_TOPIC = "BenchPull"
LATENCY_TOPIC = "BenchLatency"
QUEUES = {SEND_TOPIC: 8, BATCH_TOPIC: 8, PULL_TOPIC: 8, LATENCY_TOPIC: 1}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One row of loads. `kind` is the load's own, or "start" for start-up time and idle memory."""

    name: str
    title: str
    kind: str
    topic: str = ""
    connections: int = 1
    in_flight: int = 1


SCENARIOS = (
    Scenario(name="send-1x1", title="send 1 KB, 1 x 1", kind="send", topic=SEND_TOPIC),
    Scenario(name="send-1x64", title="send 1 KB, 1 x 64", kind="send", topic=SEND_TOPIC, in_flight=64),
    Scenario(name="send-16x1", title="send 1 KB, 16 x 1", kind="send", topic=SEND_TOPIC, connections=16),
    Scenario(name="send-16x8", title="send 1 KB, 16 x 8", kind="send", topic=SEND_TOPIC, connections=16, in_flight=8),
    Scenario(
        name="batch-4x2", title="batch of 32 x 1 KB, 4 x 2", kind="batch", topic=BATCH_TOPIC, connections=4, in_flight=2
    ),
    Scenario(name="pull-1", title="pull 32 x 1 KB, 1 x 1", kind="pull", topic=PULL_TOPIC),
    Scenario(name="pull-8", title="pull 32 x 1 KB, 8 x 1", kind="pull", topic=PULL_TOPIC, connections=8),
    Scenario(name="latency", title="latency at 1 000 msg/s", kind="latency", topic=LATENCY_TOPIC),
    Scenario(name="start", title="start-up and idle memory", kind="start"),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
