"""The total lag; and a broker's memory: as it says it itself, else of its process on this machine, else unknown."""

from __future__ import annotations

import pytest

from dashboard.brokers.schemas import BrokerOut
from dashboard.cluster import units
from dashboard.cluster.values import BrokerRef
from dashboard.live.sampler import read_facts
from dashboard.status.board import BrokerState, Snapshot, Stored, WatchedGroup
from dashboard.status.cluster_metrics import put_broker, total_lag
from dashboard.status.metric import Metrics
from dashboard.status.processes import ProcessFacts

NAME, ADDRESS = "broker-a", "127.0.0.1:1"
MIB = 1 << 20
OWN = {"request": 5 * MIB, "subscription": 1 * MIB, "timer": 2 * MIB, "pool": 0, "free": 12 * MIB, "other": 20 * MIB}
HERE = ProcessFacts(NAME, "broker", 77, "running", 0, 1.0, ADDRESS, 0.0, 80 * MIB, 100.0)
TOLD = {"memoryBytes": str(90 * MIB), "memoryMappedBytes": str(50 * MIB), "memorySwappedBytes": str(3 * MIB)}
TOLD_MORE = TOLD | {f"memory{part.title()}Bytes": str(size) for part, size in OWN.items()}
PARTS = {"": 90 * MIB, ".own": 40 * MIB, ".mapped": 50 * MIB, ".swapped": 3 * MIB}


@pytest.mark.parametrize(
    ("told", "processes", "shown"),
    [
        (TOLD_MORE, (HERE,), PARTS | {f".{part}": size for part, size in OWN.items()}),
        (TOLD, (HERE,), PARTS),
        (TOLD, (), PARTS),
        ({}, (HERE,), {"": 80 * MIB}),
        ({}, (), {"": None}),
    ],
    ids=["it says all", "it says less", "on another machine", "Apache's on this machine", "Apache's elsewhere"],
)
def test_a_brokers_memory(
    told: dict[str, str], processes: tuple[ProcessFacts, ...], shown: dict[str, int | None]
) -> None:
    state = BrokerState(NAME, ADDRESS, read_facts(BrokerRef(NAME, ADDRESS, "c"), told, 1.0, None))
    metrics = Metrics(now=1.0)
    put_broker(metrics, state, Snapshot(1.0, "n", None, (state,), processes, None))
    found = {key: metric.text for key, metric in metrics.values.items() if ".memory" in key}
    assert found == {f"broker.{NAME}.memory{part}": units.size(size) for part, size in shown.items()}
    out = BrokerOut.of_state(state)
    told_by_rest = (out.memory_bytes, out.memory_mapped_bytes, out.memory_swapped_bytes)
    assert told_by_rest == ((90 * MIB, 50 * MIB, 3 * MIB) if told else (None, None, None))
    own = {part: getattr(out, f"memory_{part}_bytes") for part in OWN}
    assert own == (OWN if told == TOLD_MORE else dict.fromkeys(OWN))


def test_a_group_that_broadcasts_has_no_part_in_the_total_lag() -> None:
    casting = WatchedGroup("c", None, None, 1, 1.0, is_partial=True, is_broadcasting=True)
    sharing, unseen = WatchedGroup("s", 7, 10, 1, 1.0), WatchedGroup("u", None, None, None, 0.0)
    for groups, total in (((casting,), 0), ((casting, sharing), 7), ((casting, unseen), None), ((), 0)):
        snapshot = Snapshot(1.0, "n", None, (), (), Stored(0, 0, 1.0), groups=groups)
        assert total_lag(snapshot) == (total, True), groups
