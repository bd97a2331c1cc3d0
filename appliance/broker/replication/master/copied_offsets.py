"""Until when a master with automatic failover lets the progress of consumers move.

A slave that becomes the master lacks the commits of OFFSETS_S at most: a commit is taken only while each of them has
surely had all tables within that time. So a master that is cut off from its slaves, or that stood still, soon refuses
commits, and clients commit again at its successor. What a member has not said counts as not had.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from appliance.broker.replication.master.slave import Slave

OFFSETS_S = 1.0


def move_until(required: Collection[str], slaves: Iterable[Slave]) -> float:
    """Of awake_s; math.inf: no other member may become the master. required: where they serve."""
    told: dict[str, float] = {}
    for slave in slaves:
        told[slave.broker] = max(slave.told_at, told.get(slave.broker, 0.0))
    return min((told.get(name, 0.0) for name in required), default=math.inf) + OFFSETS_S
