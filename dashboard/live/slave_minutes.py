"""How far each slave was in each minute, from what is sampled each second, for the reports' lake."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings

from appliance.reports.slave_samples import SlaveSample, append
from dashboard.live.history import HISTORY_STEP_S
from dashboard.status.board import Snapshot
from dashboard.status.slave_metrics import name_of
from gantrymq.remoting.admin_bodies import SlaveDifference

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    """One slave's seconds of the minute."""

    each: list[SlaveDifference] = field(default_factory=list)

    def sample(self, minute: int, broker: str, slave: str) -> SlaveSample:
        known = [one.behind_messages for one in self.each if one.behind_messages >= 0]
        return SlaveSample(
            at_ms=minute * 1000,
            broker=broker,
            slave=slave,
            behind_bytes=max(one.behind_bytes for one in self.each),
            behind_messages=max(known, default=None),
            behind_seconds=max(one.behind_seconds for one in self.each),
            in_sync=all(one.in_sync for one in self.each),
            bytes_per_second=round(sum(one.bytes_per_second for one in self.each) / len(self.each), 1),
            seconds=len(self.each),
        )


class SlaveMinutes:
    """The minute that runs, by broker and slave."""

    def __init__(self) -> None:
        self._minute: int | None = None
        self._seen: dict[tuple[str, str], _Seen] = {}

    def add(self, snapshot: Snapshot) -> list[SlaveSample]:
        """Take one second; return the rows of the finished minute when this second belongs to a later one."""
        minute = int(snapshot.at) // HISTORY_STEP_S * HISTORY_STEP_S
        finished: list[SlaveSample] = []
        if self._minute is not None and minute > self._minute:
            begun = self._minute
            finished = [seen.sample(begun, broker, slave) for (broker, slave), seen in sorted(self._seen.items())]
            self._seen = {}
        self._minute = max(minute, self._minute or 0)  # a clock that is set back does not begin a minute again
        for master in snapshot.masters:
            if not master.is_answering or master.facts is None:
                continue
            for slave in master.facts.services.slaves:
                name = name_of(slave.address, master, snapshot)
                is_slaves_own = name != slave.address
                key = master.broker_name, name if is_slaves_own else name.rpartition(":")[0]
                self._seen.setdefault(key, _Seen()).each.append(slave)
        return finished


async def keep_slaves(rows: Sequence[SlaveSample]) -> None:
    """Write one minute's rows; on a disk that takes none they are lost, and the log says so."""
    try:
        await asyncio.to_thread(append, settings.APPLIANCE.data, rows)
    except OSError as exc:
        logger.warning("samples of slaves not written", extra={"event": "slave_samples_lost", "why": str(exc)})
