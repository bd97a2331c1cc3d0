"""How far each slave was in each minute."""

from __future__ import annotations

from dataclasses import dataclass, field

from appliance.reports.samples.kinds import SLAVES, SlaveSample
from dashboard.live.minute_rows import MinuteRows
from dashboard.status.board import Snapshot
from dashboard.status.slave_metrics import seen_slaves
from gantrymq.remoting.admin_bodies import SlaveDifference


@dataclass(slots=True)
class _Seen:
    """One slave's seconds of the minute."""

    each: list[SlaveDifference] = field(default_factory=list)

    def sample(self, at_ms: int, broker: str, slave: str) -> SlaveSample:
        known = [one.behind_messages for one in self.each if one.behind_messages >= 0]
        return SlaveSample(
            at_ms=at_ms,
            broker=broker,
            slave=slave,
            behind_bytes=max(one.behind_bytes for one in self.each),
            behind_messages=max(known, default=None),
            behind_seconds=max(one.behind_seconds for one in self.each),
            in_sync=all(one.in_sync for one in self.each),
            bytes_per_second=round(sum(one.bytes_per_second for one in self.each) / len(self.each), 1),
            seconds=len(self.each),
        )


class SlaveMinutes(MinuteRows[SlaveSample]):
    """The minute that runs, by broker and slave."""

    kind = SLAVES

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], _Seen] = {}

    def _finish(self, at_ms: int) -> list[SlaveSample]:
        seen, self._seen = self._seen, {}
        return [each.sample(at_ms, broker, slave) for (broker, slave), each in sorted(seen.items())]

    def _take(self, snapshot: Snapshot) -> None:
        for broker, name, slave in seen_slaves(snapshot):
            self._seen.setdefault((broker, name), _Seen()).each.append(slave)
