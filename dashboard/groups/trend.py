"""Where a consumer group is heading, from the looks at it: rates, direction, time to zero. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

from dashboard.cluster.group_values import GroupPlace, GroupSummary
from dashboard.cluster.values import mean_rate, rated_since
from dashboard.status.board import WatchedGroup
from gantrymq.message.topics import is_retry_topic

HISTORY_MAX = 24  # looks that a sparkline has
HISTORY_EACH_S = 5.0
TREND_S = 60.0  # a direction is that of the last minute, or of the last two looks where they lie further apart
STEADY_RATIO = 0.02  # of what was stored meanwhile: a lag that changes by less is steady, however large it is
LASTING_RATIO = 0.002  # the same in each of LASTING_STEPS minutes: what is lost each minute adds up
LASTING_STEPS = 8  # noise that lasts longer than a minute rises in as many one after the other hardly ever
LASTING_EACH_S = 60.0
STEADY_MESSAGES = 2
BEHIND_MIN_MS = 10_000  # what members are so little behind with is in flight, and does not grow
SURE_LOOKS = 4  # so many looks show how much a lag jumps about; fewer are taken as they are
SURE_TIMES = 3.0  # a slope counts that is so many times its own standard error
STUCK_S = 20.0  # so long without one message consumed, while members are there and messages wait


class State(StrEnum):
    """What a group is doing, in the words of the list."""

    UNKNOWN = "unknown"
    HELD_BACK = "suspended"
    NO_MEMBERS = "no members"
    OFFLINE = "offline"
    STUCK = "stuck"
    FALLING_BEHIND = "falling behind"
    CATCHING_UP = "catching up"
    STEADY = "steady"
    UP_TO_DATE = "up to date"
    BROADCASTING = "broadcasting"


class Direction(StrEnum):
    """Of the lag."""

    UNKNOWN = "unknown"
    GROWING = "growing"
    SHRINKING = "shrinking"
    STEADY = "steady"


_HEADING = {Direction.GROWING: State.FALLING_BEHIND, Direction.SHRINKING: State.CATCHING_UP}


def watched(row: GroupSummary, before: WatchedGroup | None, now: float) -> WatchedGroup:
    """What is remembered of a look at a group.

    One that broadcast stays so while it has no members: what brokers have is of a time before it did.
    """
    if row.members == 0 and before is not None and before.is_broadcasting:
        why = row.why if row.is_partial else before.why
        row = replace(row, lag=None, lag_ms=None, places=(), is_broadcasting=True, why=why)
    is_alone = row.members == 0 and bool(row.lag)
    alone_since = (before.alone_since if before is not None else None) or now if is_alone else None
    places = with_rates(row.places, before, now)
    in_rate = _sum(place.produce_rate for place in places if not is_retry_topic(place.topic))
    out_rate = _sum(place.consume_rate for place in places)
    group = WatchedGroup(
        row.name, row.lag, row.lag_ms, row.members, now, alone_since, row.is_partial, places,
        in_rate=in_rate, out_rate=out_rate, disagrees=row.disagrees, is_suspended=row.is_suspended,
        last_consumed_ms=row.last_consumed_ms, why=row.why, history=_history(row, before, now),
        minutes=_minutes(row, before, now),
        idle_since=_idle_since(row, before),
        seen_since=before.seen_since if before is not None else now, oldest_lease_ms=row.oldest_lease_ms,
        is_broadcasting=row.is_broadcasting,
    )  # fmt: skip
    return replace(group, rising_since=_rising_since(group, before))


def with_rates(places: Iterable[GroupPlace], before: WatchedGroup | None, now: float) -> tuple[GroupPlace, ...]:
    """The places with what was consumed and stored a second, of `mean_rate`; None: not known."""
    if before is None or now <= before.at:
        return tuple(places)
    since_s = now - before.at
    old = {(place.topic, place.broker_name): place for place in before.places}

    def rated(place: GroupPlace, consumed: int | None, stored: int | None) -> GroupPlace:
        was = old.get((place.topic, place.broker_name))
        if was is None:
            return place
        since = rated_since(was.consume_rate, rated_since(was.produce_rate, was.rated_since, before.at), before.at)
        return replace(
            place,
            consume_rate=mean_rate(consumed, since_s, was.consume_rate, before.at - since),
            produce_rate=mean_rate(stored, since_s, was.produce_rate, before.at - since),
            rated_since=since,
        )

    return tuple(rated(*each) for each in differences(places, before.places))


def differences(
    places: Iterable[GroupPlace], before: Iterable[GroupPlace]
) -> Iterator[tuple[GroupPlace, int | None, int | None]]:
    """Each place with what was consumed and stored between two looks; None: it is new, or an offset was moved back."""
    old = {(place.topic, place.broker_name): place for place in before}
    for place in places:
        was = old.get((place.topic, place.broker_name))
        if was is None:
            yield place, None, None
            continue
        consumed, stored = place.consumer_offset - was.consumer_offset, place.end - was.end
        yield place, consumed if consumed >= 0 else None, stored if stored >= 0 else None


def direction(group: WatchedGroup) -> Direction:
    """How its lag changed over the last minute."""
    begin = _begin(group)
    if begin is None or group.lag is None:
        return Direction.UNKNOWN
    change = group.lag - begin[1]
    stored = (group.in_rate or 0.0) * (group.at - begin[0])
    if abs(change) <= max(STEADY_MESSAGES, STEADY_RATIO * stored) or not _is_clear(group, begin[0]):
        change = int(_is_lasting(group))
    if change <= 0:
        return Direction.SHRINKING if change else Direction.STEADY
    is_in_flight = group.members != 0 and group.lag_ms is not None and group.lag_ms < BEHIND_MIN_MS
    return Direction.STEADY if is_in_flight else Direction.GROWING


def seconds_to_zero(group: WatchedGroup) -> float | None:
    """When it will have caught up, if it goes on as in the last minute; None when it does not come nearer."""
    begin = _begin(group)
    if group.lag == 0:
        return 0.0
    if begin is None or group.lag is None or direction(group) is not Direction.SHRINKING:
        return None
    return group.lag * (group.at - begin[0]) / (begin[1] - group.lag)


def state(group: WatchedGroup) -> State:
    """What the group is doing. What keeps it from consuming at all comes first."""
    if group.is_suspended:
        return State.HELD_BACK
    if group.is_broadcasting:
        return State.BROADCASTING
    if group.members is None or group.lag is None:
        return State.UNKNOWN if group.members is None else _idle(group)
    if group.members == 0 or group.lag == 0:
        return _idle(group)
    if group.idle_since is not None and group.at - group.idle_since >= STUCK_S:
        return State.STUCK
    return _HEADING.get(direction(group), State.STEADY)


def retries(group: WatchedGroup) -> int | None:
    """Messages that wait to be tried again; None when nothing is known of the group."""
    if group.lag is None:
        return None
    return sum(place.lag for place in group.places if is_retry_topic(place.topic))


def _idle(group: WatchedGroup) -> State:
    """The state of a group to which nothing is to be handed out."""
    if group.members == 0:
        return State.NO_MEMBERS if group.lag else State.OFFLINE
    return State.UP_TO_DATE


def _begin(group: WatchedGroup) -> tuple[float, int] | None:
    """The look with which the present lag is compared."""
    begin = None
    for look in reversed(group.history):  # lists sort thousands by it: no more steps than the last minute has
        if look[0] >= group.at:
            continue
        if begin is not None and group.at - look[0] > TREND_S:
            break
        begin = look
    return begin


def _is_clear(group: WatchedGroup, since: float) -> bool:
    """Whether the looks since then lie along a slope, and not anyhow: least squares, against its standard error."""
    looks = [look for look in group.history if look[0] >= since]
    if len(looks) < SURE_LOOKS:
        return True
    mean_at, mean_lag = (sum(look[side] for look in looks) / len(looks) for side in (0, 1))
    spread = sum((at - mean_at) ** 2 for at, _ in looks)
    slope = sum((at - mean_at) * (lag - mean_lag) for at, lag in looks) / spread
    rest = sum((lag - mean_lag - slope * (at - mean_at)) ** 2 for at, lag in looks)
    return abs(slope) > SURE_TIMES * math.sqrt(rest / (len(looks) - 2) / spread)


def _is_lasting(group: WatchedGroup) -> bool:
    """Whether it has grown in each of the last minutes, be it by less than shows in one."""
    steps = list(itertools.pairwise(group.minutes))
    rate = LASTING_RATIO * (group.in_rate or 0.0)
    return len(steps) == LASTING_STEPS and all(
        lag - was > max(STEADY_MESSAGES, rate * (at - since)) for (since, was), (at, lag) in steps
    )


def _minutes(row: GroupSummary, before: WatchedGroup | None, now: float) -> tuple[tuple[float, int], ...]:
    """One look a minute, over as long as a small growth has to last."""
    minutes = before.minutes if before is not None else ()
    if row.lag is None or row.is_partial or (minutes and now - minutes[-1][0] < LASTING_EACH_S):
        return minutes
    return (*minutes, (now, row.lag))[-LASTING_STEPS - 1 :]


def _history(row: GroupSummary, before: WatchedGroup | None, now: float) -> tuple[tuple[float, int], ...]:
    """The looks so far and this one, unless the last one was just now. A lag that is not whole is no part of it."""
    history = before.history if before is not None else ()
    if row.lag is None or row.is_partial or (history and now - history[-1][0] < HISTORY_EACH_S):
        return history
    return (*history, (now, row.lag))[-HISTORY_MAX:]


def _idle_since(row: GroupSummary, before: WatchedGroup | None) -> float | None:
    """Since when nothing was consumed; None when something was, or nothing is known."""
    if before is None:
        return None
    consumed = [number for _, number, _ in differences(row.places, before.places)]
    return before.idle_since or before.at if consumed and all(number == 0 for number in consumed) else None


def _rising_since(group: WatchedGroup, before: WatchedGroup | None) -> float | None:
    """Since when its lag has grown; while that can't be told, what was true before."""
    known = before.rising_since if before is not None else None
    heading = Direction.UNKNOWN if group.is_partial else direction(group)
    if heading is Direction.GROWING:
        return known or group.at
    return known if heading is Direction.UNKNOWN else None


def _sum(rates: Iterable[float | None]) -> float | None:
    """The sum of what is known, None when one of them, or all, are unknown."""
    known = list(rates)
    return sum(rate for rate in known if rate is not None) if known and None not in known else None
