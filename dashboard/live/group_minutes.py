"""How far each consumer group was in each minute, and what it consumed, from the looks at it.

Messages are counted by differences of offsets between a minute's last look and the last one of the minute before that
had any, so that the sum over minutes is what the offsets say, however the looks lie.

A minute has at most GROUPS_A_MINUTE rows, those furthest behind first; the first minute of an hour has all groups, so
that one that rests is on record, too.
"""

from __future__ import annotations

import itertools

from appliance.reports.runs import HOUR_MS
from appliance.reports.samples.kinds import GROUPS, GroupSample
from appliance.reports.samples.lines import MINUTE_MS
from dashboard.groups.trend import differences
from dashboard.live.minute_rows import MinuteRows
from dashboard.status.board import Snapshot, WatchedGroup
from gantrymq.message.topics import is_retry_topic

GROUPS_A_MINUTE = 200


class GroupMinutes(MinuteRows[GroupSample]):
    """The minute that runs: each group's looks."""

    kind = GROUPS

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[str, list[WatchedGroup]] = {}
        self._before: dict[str, tuple[int, WatchedGroup]] = {}  # the last minute with looks, and its last one
        self._there: tuple[WatchedGroup, ...] = ()
        self._until = 0.0  # looks up to then were taken

    def _take(self, snapshot: Snapshot) -> None:
        newest = self._until
        self._there = snapshot.groups
        for group in snapshot.groups:
            if group.at > self._until and not group.is_partial:
                self._looks.setdefault(group.name, []).append(group)
                newest = max(newest, group.at)
        self._until = newest

    def _finish(self, at_ms: int) -> list[GroupSample]:
        looks, self._looks = self._looks, {}
        rows = [_row(at_ms, name, each, self._before.get(name)) for name, each in sorted(looks.items())]
        there = {group.name for group in self._there}
        self._before = {name: last for name, last in self._before.items() if name in there}
        self._before |= {name: (at_ms, each[-1]) for name, each in looks.items()}
        if at_ms % HOUR_MS and len(rows) > GROUPS_A_MINUTE:
            rows.sort(key=lambda row: (-(row.behind_seconds or 0), -(row.lag or 0), row.group))
        return rows[:GROUPS_A_MINUTE] if at_ms % HOUR_MS else rows


def _row(at_ms: int, name: str, looks: list[WatchedGroup], before: tuple[int, WatchedGroup] | None) -> GroupSample:
    last = looks[-1]
    stored, consumed = _counts([before[1], *looks] if before is not None else looks)
    ages = [look.lag_ms for look in looks if look.lag_ms is not None]
    return GroupSample(
        at_ms=at_ms,
        group=name,
        lag=max((look.lag for look in looks if look.lag is not None), default=None),
        behind_seconds=round(max(ages) / 1000, 3) if ages else None,
        members=min((look.members for look in looks if look.members is not None), default=None),
        consumer_offset=sum(place.consumer_offset for place in last.places),
        end_offset=sum(place.end for place in last.places),
        stored=stored,
        consumed=consumed,
        counted_minutes=max(1, (at_ms - before[0]) // MINUTE_MS) if before is not None else 1,
        last_consumed_ms=max(look.last_consumed_ms for look in looks),
        looks=len(looks),
    )


def _counts(looks: list[WatchedGroup]) -> tuple[int | None, int | None]:
    """Messages stored and consumed from the first of these looks to the last; None without two that can be compared."""
    stored = consumed = None
    for before, look in itertools.pairwise(looks):
        if look.seen_since != before.seen_since:
            continue  # its offsets were moved by hand in between
        for place, taken, added in differences(look.places, before.places):
            if taken is not None:
                consumed = (consumed or 0) + taken
            if added is not None and not is_retry_topic(place.topic):
                stored = (stored or 0) + added
    return stored, consumed
