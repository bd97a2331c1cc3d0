"""The list of consumer groups: its rows, their order, and their values for the page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext, gettext_noop

from dashboard.cluster import units
from dashboard.groups.trend import Direction, State, direction, retries, seconds_to_zero, state
from dashboard.status.board import Stored, WatchedGroup
from dashboard.status.metric import Metrics, shape_of
from dashboard.status.words import in_words

ARROWS = {Direction.GROWING: "↗", Direction.SHRINKING: "↘", Direction.STEADY: "→", Direction.UNKNOWN: ""}
ALARMING = frozenset({State.HELD_BACK, State.NO_MEMBERS, State.STUCK, State.FALLING_BEHIND})
SPARK_WIDTH, SPARK_HEIGHT = 84, 22
_EDGE = 2  # so that the line's own width is not cut off
Sort = tuple[bool, float, str]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the list. dead_letters None: not counted yet."""

    group: WatchedGroup
    dead_letters: int | None

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def state(self) -> State:
        return state(self.group)

    @property
    def state_label(self) -> str:
        """The state in the language of the page."""
        return in_words(self.state)

    @property
    def direction(self) -> Direction:
        return direction(self.group)

    @property
    def is_alarming(self) -> bool:
        return self.state in ALARMING

    @property
    def retries(self) -> int | None:
        return retries(self.group)

    @property
    def seconds_to_zero(self) -> float | None:
        return seconds_to_zero(self.group)

    @property
    def spark_points(self) -> str:
        """The points of its sparkline; empty while there are not two looks."""
        return spark_points(self.group.history)

    @property
    def spark_text(self) -> str:
        """What the sparkline shows, in words."""
        history = self.group.history
        if len(history) < 2:
            return gettext("Lag over time: known after a few samples")
        (begun_at, first), (ended_at, last) = history[0], history[-1]
        over = units.duration(round(ended_at - begun_at))
        return gettext("Lag %(direction)s: from %(first)s to %(last)s in %(time)s") % {
            "direction": in_words(self.direction),
            "first": units.count(first),
            "last": units.count(last),
            "time": over,
        }


# What the list can be sorted by, and what its columns show: key, label, the value, which None has at its end.
COLUMNS: dict[str, tuple[str, Callable[[GroupRow], float | None]]] = {
    "lag": (gettext_noop("Lag"), lambda row: row.group.lag),
    "behind": (gettext_noop("Lag, time"), lambda row: row.group.lag_ms),
    "in": (gettext_noop("In/s"), lambda row: row.group.in_rate),
    "out": (gettext_noop("Consumed/s"), lambda row: row.group.out_rate),
    "zero": (gettext_noop("Caught up in"), lambda row: row.seconds_to_zero),
    "members": (gettext_noop("Members"), lambda row: row.group.members),
    "retries": (gettext_noop("Retries"), lambda row: row.retries),
    "dead": (gettext_noop("Dead"), lambda row: row.dead_letters),
}
SORTS = ("name", "state", *COLUMNS)
_RANKS: dict[State, float] = {state: float(rank) for rank, state in enumerate(State) if state is not State.UNKNOWN}


def rows_of(groups: Iterable[WatchedGroup], stored: Stored | None) -> list[GroupRow]:
    """The groups with the dead letters that were counted."""
    dead: Mapping[str, int] = dict(stored.dead_letters) if stored is not None else {}
    return [GroupRow(group, dead.get(group.name, 0) if stored is not None else None) for group in groups]


def sorted_rows(rows: Iterable[GroupRow], sort: str, *, down: bool) -> list[GroupRow]:
    """In the order asked for; what is not known is at the end, whichever way, and names decide among equals."""
    if sort == "name":
        return sorted(rows, key=lambda row: row.name.lower(), reverse=down)
    value = COLUMNS[sort][1] if sort in COLUMNS else _rank
    sign = -1.0 if down else 1.0

    def key(row: GroupRow) -> Sort:
        found = value(row)
        return found is None, 0.0 if found is None else sign * found, row.name

    return sorted(rows, key=key)


def metrics_of(rows: Sequence[GroupRow], now: float) -> Metrics:
    """The values of the list's rows."""
    metrics = Metrics(now=now)
    for row in rows:
        _put(metrics, row)
    metrics.shape = shape_of(*(f"{row.name} {row.state} {row.group.disagrees}" for row in rows))
    return metrics


def spark_points(history: Sequence[tuple[float, int]]) -> str:
    """Looks as points of a line in a box of SPARK_WIDTH by SPARK_HEIGHT that begins at zero."""
    if len(history) < 2:
        return ""
    begun_at, ended_at = history[0][0], history[-1][0]
    top = max(lag for _, lag in history) or 1
    width, height = (SPARK_WIDTH - 2 * _EDGE) / (ended_at - begun_at), (SPARK_HEIGHT - 2 * _EDGE) / top
    return " ".join(
        f"{_EDGE + (at - begun_at) * width:.1f},{SPARK_HEIGHT - _EDGE - lag * height:.1f}" for at, lag in history
    )


def _put(metrics: Metrics, row: GroupRow) -> None:
    group, prefix = row.group, f"row.{row.name}"
    at = group.at or None
    least = units.AT_LEAST if group.is_partial else ""
    why = group.why or (None if at else gettext("not checked yet"))
    second_look = why or gettext("known at the next sample")

    def put(key: str, text: str, why: str | None) -> None:
        metrics.put(f"{prefix}.{key}", text, at, why)

    put("lag", _known(units.count(group.lag), least), why)
    time_text = "0" if group.lag_ms == 0 else units.milliseconds(group.lag_ms)
    put("behind", _known(time_text, least), why or gettext("the broker does not report it"))
    put("members", _known(units.count(group.members), least), why)
    put("in", units.rate(group.in_rate), second_look)
    put("out", units.rate(group.out_rate), second_look)
    to_zero = row.seconds_to_zero
    put("zero", "0" if to_zero == 0 else units.duration(to_zero), why or gettext("it is not catching up"))
    put("retries", units.count(row.retries), why)
    put("dead", units.count(row.dead_letters), gettext("not counted yet"))
    put("arrow", ARROWS[row.direction] or units.UNKNOWN, gettext("known after two samples"))


def _known(text: str, least: str) -> str:
    return text if text == units.UNKNOWN else least + text


def _rank(row: GroupRow) -> float | None:
    """States in the order of the enumeration: what needs a person comes first, what is not known last."""
    return _RANKS.get(row.state)
