"""What each broker took, gave and kept in each minute."""

from __future__ import annotations

from appliance.reports.samples.kinds import BROKERS, BrokerSample
from dashboard.live.minute_rows import MinuteRows, mean
from dashboard.status.board import BrokerFacts, Snapshot


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
        in_rate=mean([each.in_rate for each in seconds]),
        out_rate=mean([each.out_rate for each in seconds]),
        disk_ratio=max((each.disk_ratio for each in seconds if each.disk_ratio is not None), default=None),
        commit_log_bytes=seconds[-1].commit_log_bytes,
        seconds=len(seconds),
    )
