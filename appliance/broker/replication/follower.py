"""What makes a broker a slave: the copy of the log, the master's tables, and what both tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from appliance.broker.replication.ha_client import HaClient
from appliance.broker.replication.slave_synchronize import SlaveSynchronize
from appliance.broker.replication.state_frames import StateSink

if TYPE_CHECKING:
    from appliance.broker.failover.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Follower:
    """All run as services of the broker. candidate: with automatic failover."""

    ha_client: HaClient
    synchronize: SlaveSynchronize
    sink: StateSink
    candidate: Candidate | None = None
