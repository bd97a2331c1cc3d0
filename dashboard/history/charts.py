"""A chart of the history: which series, over which range, with marks that explain it. Pages and REST show the same."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext_noop

from dashboard.access.permissions import Permission, Principal
from dashboard.audit.broker_trails import ACTIONS
from dashboard.audit.listing import OWN_ACCOUNT, SAME_CHANGE_S
from dashboard.audit.words import action_in_words
from dashboard.history.block_builder import HOUR, LENGTHS, MINUTE, SECOND, block_start
from dashboard.history.series import EACH_SECOND, Several, kind_of
from dashboard.language.sentences import gettext
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.history import HistoryBlock, HistoryMark
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

MARKS_MAX = 100
CHANGES_READ_MAX = 1000  # of which marks are made
TABLE_ROWS_MAX = 12  # each 5 minutes of an hour, each 2 hours of a day; a page has up to eight charts with a table


@dataclass(frozen=True, slots=True)
class Range:
    """How far back a chart goes, and how far its points lie apart, seconds."""

    key: str
    label: str
    seconds: int
    step_s: int

    @property
    def words(self) -> str:
        """The label in the language of the page."""
        return gettext(self.label)


RANGES = {
    one.key: one
    for one in (
        Range("15m", gettext_noop("15 min"), 900, 5),
        Range("1h", gettext_noop("1 h"), HOUR, 15),
        Range("6h", gettext_noop("6 h"), 6 * HOUR, MINUTE),
        Range("24h", gettext_noop("24 h"), 24 * HOUR, 5 * MINUTE),
        Range("7d", gettext_noop("7 d"), 7 * 24 * HOUR, HOUR),
        Range("30d", gettext_noop("30 d"), 30 * 24 * HOUR, 3 * HOUR),
    )
}
DEFAULT = "1h"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name, series, and class of the style sheet. scale: what its values are drawn times."""

    label: str
    series: str
    style: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: a restart, or a change that a person made."""

    at: float
    text: str
    is_change: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """points: (epoch seconds, a value for each line or None), the oldest first, without a hole in the times."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    span: Range
    step_s: int
    points: tuple[tuple[float | None, ...], ...]
    marks: tuple[Mark, ...]

    @property
    def is_empty(self) -> bool:
        return all(value is None for point in self.points for value in point[1:])

    @property
    def has_any(self) -> bool:
        """Whether some value is above zero."""
        return any(value for point in self.points for value in point[1:])

    @property
    def names_units(self) -> bool:
        """Whether each value is said with a unit of its own: KiB or GiB, ms or min."""
        return self.unit in ("B", "B/s", "ms")

    @property
    def ranges(self) -> list[Range]:
        return list(RANGES.values())

    @property
    def data(self) -> dict[str, object]:
        """What the script draws. points: without their times, which are a step apart."""
        return {
            "begin": self.points[0][0] if self.points else None,
            "step": self.step_s,
            "unit": self.unit,
            "lines": [[line.label, line.style] for line in self.lines],
            "points": [[None if value is None else _drawn(value) for value in point[1:]] for point in self.points],
            "marks": [[round(mark.at), mark.text] for mark in self.marks],
        }

    @property
    def rows(self) -> list[tuple[float | None, ...]]:
        """The table beside the chart: what is known, the newest first, thinned to a readable number."""
        known = [point for point in reversed(self.points) if any(value is not None for value in point[1:])]
        return known[:: max(1, math.ceil(len(known) / TABLE_ROWS_MAX))]


def _drawn(value: float) -> float:
    """No more digits than a line shows: a page has thousands of them."""
    return round(value, 3) if abs(value) < 100 else round(value)


def range_of(text: str, default: str = DEFAULT) -> Range:
    """What an address asks for; an unknown one is the default."""
    return RANGES.get(text) or RANGES[default]


async def chart_of(
    title: str, unit: str, lines: Sequence[Line], span: Range, principal: Principal | None, now: float | None = None
) -> Chart:
    """Read it. What is kept by the second is drawn by seconds, anything else by minutes at least."""
    until = int(time.time() if now is None else now)
    has_seconds = all(kind_of(line.series) in EACH_SECOND for line in lines)
    step = span.step_s if has_seconds else max(span.step_s, MINUTE)
    stored = SECOND if step < MINUTE else MINUTE if step < HOUR else HOUR
    begin = (until - span.seconds) // step * step
    columns = [await values_of(line.series, stored, step, begin, until) for line in lines]
    columns = [
        {at: value * line.scale for at, value in column.items()} for line, column in zip(lines, columns, strict=True)
    ]
    points = tuple((float(at), *(column.get(at) for column in columns)) for at in range(begin, until - step + 1, step))
    return Chart(title, unit, tuple(lines), span, step, points, await marks_of(begin, until, step, principal))


async def values_of(series: str, stored: int, step: int, begin: int, until: int) -> dict[int, float]:
    """By the begin of each step; what is not known is not there."""
    rows = HistoryBlock.objects.filter(
        series=series[: HistoryBlock.SERIES_MAX], step_s=stored, start__gte=block_start(stored, begin), start__lt=until
    )
    found: dict[int, Several] = {}
    async for start, values in rows.order_by("start").values_list("start", "values"):
        if len(values) != LENGTHS[stored] * array("f").itemsize:
            continue
        for index, value in enumerate(array("f", bytes(values))):
            at = start + index * stored
            if not math.isnan(value) and begin <= at < until:
                found.setdefault(at // step * step, Several()).add(value)
    return {at: several.kept(kind_of(series)) for at, several in found.items()}


def _told_once(changes: Sequence[AuditEntry]) -> list[AuditEntry]:
    """Without topics that brokers and clients make for themselves, and without a broker's own line of a change that
    the dashboard has already named, with its account.
    """
    named = {(one.target, int(one.at.timestamp()) // SAME_CHANGE_S) for one in changes if one.way != Way.REMOTING}
    return [
        one for one in changes
        if one.way != Way.REMOTING
        or not (is_system_topic(one.target) or one.target.startswith((RETRY_PREFIX, DLQ_PREFIX))
                or any((one.target, int(one.at.timestamp()) // SAME_CHANGE_S + near) in named for near in (-1, 0, 1)))
    ]  # fmt: skip


def _folded(changes: Sequence[AuditEntry], step: int) -> list[Mark]:
    """One mark for what an account did again and again within one step of the chart; the newest comes first."""
    alike: dict[tuple[int, str, str], list[AuditEntry]] = {}
    for one in changes:
        alike.setdefault((int(one.at.timestamp()) // step, one.action, one.who), []).append(one)
    marks = []
    for (_, action, who), together in alike.items():
        targets = [one.target for one in (together[-1], together[0]) if one.target]
        text = " … ".join(dict.fromkeys(targets)) + (f" × {len(together)}" if len(together) > 1 else "")
        marks.append(Mark(together[-1].at.timestamp(), _change(action, text, who), is_change=True))
    return marks


async def marks_of(begin: int, until: int, step: int, principal: Principal | None) -> tuple[Mark, ...]:
    """Restarts and new masters; changes too, for who may see the audit log. The newest, if there are many."""
    since, end = datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(until, UTC) + timedelta(seconds=1)
    restarts = HistoryMark.objects.filter(at__gte=since, at__lt=end).order_by("-at")[:MARKS_MAX]
    kept = [one async for one in restarts]
    promoted = {one.at for one in kept if " master " in one.text}  # began anew while it had its old name
    found = [Mark(one.at.timestamp(), _event(one.text)) for one in kept
             if " master " in one.text or one.at not in promoted]  # fmt: skip
    if principal is not None and principal.may(Permission.AUDIT_READ):
        rows = AuditEntry.objects.filter(at__gte=since, at__lt=end, result=Result.DONE)
        rows = rows.exclude(way=Way.REMOTING, who=OWN_ACCOUNT).exclude(action__startswith="log")
        rows = rows.exclude(action=ACTIONS["TELL_EPOCH"])  # the new master has a mark
        changes = [one async for one in rows.order_by("-at")[:CHANGES_READ_MAX]]
        found += _folded(_told_once(changes), step)
    return tuple(sorted(found, key=lambda mark: mark.at)[-MARKS_MAX:])


def _event(text: str) -> str:
    name, _, address = text.partition(" master ")
    if address:
        return gettext("%(address)s became the master of %(name)s") % {"name": name, "address": address}
    name = text.removesuffix(" started")
    return gettext("dashboard started") if name == "dashboard" else gettext("%(name)s started") % {"name": name}


def _change(action: str, target: str, who: str) -> str:
    text = f"{action_in_words(action)} {target}".strip()
    return gettext("%(change)s (%(who)s)") % {"change": text, "who": who} if who and who != target else text
