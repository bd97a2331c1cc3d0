"""What each broker took, gave and kept, and how far each slave was, in each minute."""

from __future__ import annotations

from dataclasses import dataclass, field

from appliance.reports.samples.kinds import BROKERS, SLAVES, BrokerSample, SlaveSample
from dashboard.live.minute_rows import MinuteRows, mean
from dashboard.status.board import BrokerFacts, Snapshot
from dashboard.status.slave_metrics import seen_slaves
from gantrymq.remoting.admin_bodies import SlaveDifference


class BrokerMinutes(MinuteRows[BrokerSample]):
    """The minute that runs: each broker's seconds."""

    kind = BROKERS

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, list[BrokerFacts]] = {}

    def _take(self, snapshot: Snapshot) -> None:
        for broker in snapshot.brokers:
            if broker.is_answering and broker.facts is not None:
                self._seen.setdefault(broker.name, []).append(broker.facts)

    def _finish(self, at_ms: int) -> list[BrokerSample]:
        seen, self._seen = self._seen, {}
        return [_row(at_ms, name, seconds) for name, seconds in sorted(seen.items())]


def _row(at_ms: int, name: str, seconds: list[BrokerFacts]) -> BrokerSample:
    return BrokerSample(
        at_ms=at_ms,
        broker=name,
        in_rate=mean([each.in_now for each in seconds]),
        out_rate=mean([each.out_now for each in seconds]),
        disk_ratio=max((each.disk_ratio for each in seconds if each.disk_ratio is not None), default=None),
        commit_log_bytes=seconds[-1].commit_log_bytes,
        seconds=len(seconds),
    )


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
