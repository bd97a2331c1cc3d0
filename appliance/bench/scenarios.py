"""Which loads there are. Widths are connections x requests in flight on each."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.bench.setups import ACCOUNTS, IDLE, MANY, MANY_QUEUES, MANY_TOPIC, PAIR, PLAIN, SYNC, SYNC_PAIR, Setup

SEND_TOPIC = "BenchSend"
BATCH_TOPIC = "BenchBatch"
PULL_TOPIC = "BenchPull"
LATENCY_TOPIC = "BenchLatency"
QUEUES = {SEND_TOPIC: 8, BATCH_TOPIC: 8, PULL_TOPIC: 8, LATENCY_TOPIC: 1, MANY_TOPIC: MANY_QUEUES}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One row of loads. `kind` is the load's own, or "start" for start-up time and idle memory."""

    name: str
    title: str
    kind: str = "send"
    topic: str = SEND_TOPIC
    connections: int = 1
    in_flight: int = 1
    body_bytes: int = 0  # 0: as the run says
    binary_headers: bool = False
    one_way: bool = False
    setup: Setup = PLAIN
    slave_stopped: bool = False  # while the load runs: what it misses it copies afterwards
    against: str = ""  # the scenario whose cost a message this one's should not exceed by much

    @property
    def is_load(self) -> bool:
        return self.kind != "start"


SCENARIOS = (
    Scenario(name="send-1x1", title="send 1 KB, 1 x 1", against="send-16x1"),
    Scenario(name="send-1x64", title="send 1 KB, 1 x 64", in_flight=64),
    Scenario(name="send-16x1", title="send 1 KB, 16 x 1", connections=16),
    Scenario(name="send-16x8", title="send 1 KB, 16 x 8", connections=16, in_flight=8),
    Scenario(name="send-16x8-128", title="send 128 B, 16 x 8", connections=16, in_flight=8, body_bytes=128),
    Scenario(
        name="batch-4x2", title="batch of 32 x 1 KB, 4 x 2", kind="batch", topic=BATCH_TOPIC, connections=4, in_flight=2
    ),
    Scenario(name="pull-1", title="pull 32 x 1 KB, 1 x 1", kind="pull", topic=PULL_TOPIC),
    Scenario(name="pull-8", title="pull 32 x 1 KB, 8 x 1", kind="pull", topic=PULL_TOPIC, connections=8),
    Scenario(
        name="binary-16x8",
        title="send 1 KB, ROCKETMQ headers, 16 x 8",
        connections=16,
        in_flight=8,
        binary_headers=True,
        against="send-16x8",
    ),
    Scenario(name="one-way-16", title="send 1 KB one-way, 16", connections=16, one_way=True, against="send-16x8"),
    Scenario(name="send-128x1", title="send 1 KB, 128 x 1", connections=128, against="send-16x1"),
    Scenario(name="send-1000x1", title="send 1 KB, 1000 x 1", connections=1000, against="send-16x1"),
    Scenario(name="latency", title="latency at 1 000 msg/s", kind="latency", topic=LATENCY_TOPIC),
    Scenario(
        name="signed-16x8",
        title="send 1 KB, accounts on, 16 x 8",
        connections=16,
        in_flight=8,
        setup=ACCOUNTS,
        against="send-16x8",
    ),
    Scenario(name="sync-1x64", title="send 1 KB, SYNC_FLUSH, 1 x 64", in_flight=64, setup=SYNC),
    Scenario(
        name="many-queues",
        title="send 1 KB, 80 000 queues, 16 x 8",
        topic=MANY_TOPIC,
        connections=16,
        in_flight=8,
        setup=MANY,
        against="send-16x8",
    ),
    Scenario(
        name="pair-16x8",
        title="send 1 KB, with a slave, 16 x 8",
        connections=16,
        in_flight=8,
        setup=PAIR,
        against="send-16x8",
    ),
    Scenario(
        name="stopped-pair-16x8",
        title="send 1 KB, its slave stopped, 16 x 8",
        connections=16,
        in_flight=8,
        setup=PAIR,
        slave_stopped=True,
        against="send-16x8",
    ),
    Scenario(
        name="sync-pair-16x8",
        title="send 1 KB, SYNC_MASTER, 16 x 8",
        connections=16,
        in_flight=8,
        setup=SYNC_PAIR,
        against="send-16x8",
    ),
    Scenario(name="start", title="start-up and idle memory", kind="start", setup=IDLE),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
