"""How far each consumer group was in each minute, from the looks at it.

A minute has at most GROUPS_A_MINUTE rows, those furthest behind first; the first minute of an hour has all groups, so
that one that rests is on record, too.
"""

from __future__ import annotations

from appliance.reports.samples.kinds import GROUPS, GroupSample
from dashboard.live.minute_rows import MinuteRows, mean
from dashboard.status.board import Snapshot, WatchedGroup

GROUPS_A_MINUTE = 200
HOUR_MS = 3_600_000


class GroupMinutes(MinuteRows[GroupSample]):
    """The minute that runs: each group's looks."""

    kind = GROUPS

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[str, list[WatchedGroup]] = {}
        self._until = 0.0  # looks up to then were taken

    def _take(self, snapshot: Snapshot) -> None:
        newest = self._until
        for group in snapshot.groups:
            if group.at > self._until and not group.is_partial:
                self._looks.setdefault(group.name, []).append(group)
                newest = max(newest, group.at)
        self._until = newest

    def _finish(self, at_ms: int) -> list[GroupSample]:
        looks, self._looks = self._looks, {}
        rows = [_row(at_ms, name, each) for name, each in sorted(looks.items())]
        if at_ms % HOUR_MS and len(rows) > GROUPS_A_MINUTE:
            rows.sort(key=lambda row: (-(row.behind_seconds or 0), -(row.lag or 0), row.group))
        return rows[:GROUPS_A_MINUTE] if at_ms % HOUR_MS else rows


def _row(at_ms: int, name: str, looks: list[WatchedGroup]) -> GroupSample:
    last = looks[-1]
    ages = [look.lag_ms for look in looks if look.lag_ms is not None]
    return GroupSample(
        at_ms=at_ms,
        group=name,
        lag=max((look.lag for look in looks if look.lag is not None), default=None),
        behind_seconds=round(max(ages) / 1000, 3) if ages else None,
        members=min((look.members for look in looks if look.members is not None), default=None),
        consumer_offset=sum(place.consumer_offset for place in last.places),
        end_offset=sum(place.end for place in last.places),
        in_rate=mean([look.in_rate for look in looks]),
        out_rate=mean([look.out_rate for look in looks]),
        last_consumed_ms=max(look.last_consumed_ms for look in looks),
        looks=len(looks),
    )
