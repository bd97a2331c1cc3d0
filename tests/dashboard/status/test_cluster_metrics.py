"""A broker's memory: as it says it itself, else of its process on this machine, else unknown."""

from __future__ import annotations

import pytest

from dashboard.cluster import units
from dashboard.cluster.values import BrokerRef
from dashboard.live.sampler import read_facts
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.cluster_metrics import put_broker
from dashboard.status.metric import Metrics
from dashboard.status.processes import ProcessFacts

NAME, ADDRESS = "broker-a", "127.0.0.1:1"
MIB = 1 << 20
HERE = ProcessFacts(NAME, "broker", 77, "running", 0, 1.0, ADDRESS, 0.0, 80 * MIB, 100.0)
TOLD = {"memoryBytes": str(90 * MIB), "memoryMappedBytes": str(50 * MIB)}


@pytest.mark.parametrize(
    ("told", "processes", "shown"),
    [
        (TOLD, (HERE,), {"": 90 * MIB, ".own": 40 * MIB, ".mapped": 50 * MIB}),
        (TOLD, (), {"": 90 * MIB, ".own": 40 * MIB, ".mapped": 50 * MIB}),
        ({}, (HERE,), {"": 80 * MIB}),
        ({}, (), {"": None}),
    ],
    ids=["it says it", "on another machine", "Apache's on this machine", "Apache's elsewhere"],
)
def test_a_brokers_memory(
    told: dict[str, str], processes: tuple[ProcessFacts, ...], shown: dict[str, int | None]
) -> None:
    state = BrokerState(NAME, ADDRESS, read_facts(BrokerRef(NAME, ADDRESS, "c"), told, 1.0, None))
    metrics = Metrics(now=1.0)
    put_broker(metrics, state, Snapshot(1.0, "n", None, (state,), processes, None))
    found = {key: metric.text for key, metric in metrics.values.items() if ".memory" in key}
    assert found == {f"broker.{NAME}.memory{part}": units.size(size) for part, size in shown.items()}
