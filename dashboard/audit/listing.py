"""The entries that a reader asks for: page and REST ask the same way; the page shows a change of all brokers once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from dashboard.models.audit import AuditEntry, Way

OWN_ACCOUNT = "gantry-appliance"  # signs the calls of the dashboard itself: what a person did stands as a page's
SAME_CHANGE_S = 10  # brokers write their lines within this time of each other, and of the dashboard's


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which entries. text: part of action, target, who or details, or a request's id; since inclusive, until not."""

    text: str = ""
    who: str = ""
    way: str = ""
    result: str = ""
    since: datetime | None = None
    until: datetime | None = None
    with_own: bool = False

    @property
    def is_narrowed(self) -> bool:
        return any((self.text, self.who, self.way, self.result, self.since, self.until))


def found(asked: Asked) -> QuerySet[AuditEntry]:
    """The newest first."""
    rows = AuditEntry.objects.order_by("-number")
    since, until = _utc(asked.since), _utc(asked.until)
    exact: dict[str, Any] = {"way": asked.way, "result": asked.result, "at__gte": since, "at__lt": until}
    rows = rows.filter(**{key: value for key, value in exact.items() if value})
    if asked.who:
        rows = rows.filter(Q(who__iexact=asked.who) | Q(who__istartswith=f"{asked.who} (token "))
    if asked.text:
        part = asked.text
        rows = rows.filter(
            Q(action__icontains=part) | Q(target__icontains=part) | Q(who__icontains=part) | Q(details__icontains=part)
            | Q(request_id=part)
        )  # fmt: skip
    return rows if asked.with_own else rows.exclude(way=Way.REMOTING, who=OWN_ACCOUNT)


def _utc(moment: datetime | None) -> datetime | None:
    """PostgreSQL takes no time zone of more than 16 hours, which ISO 8601 has."""
    if moment is None or moment.tzinfo is None:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # within a day of the first year's begin or the last one's end
        return moment.replace(tzinfo=UTC)


class Line:
    """A line of the page: an entry, with those that other brokers wrote of the same request of one client."""

    def __init__(self, entry: AuditEntry) -> None:
        self.entry = entry
        self.numbers = [entry.number]
        self._details: dict[str, Any] = json.loads(entry.details) if entry.details else {}
        self.brokers = [str(self._details.pop("broker", ""))]

    def may_take(self, other: Line) -> bool:
        """Whether the other, of a smaller number, can be a part of this one. Its time may be later: a trail follows
        another as a whole.
        """
        if not self.brokers[0] or other.brokers[0] in self.brokers or self._same != other._same:
            return False
        return self.apart(other) <= timedelta(seconds=SAME_CHANGE_S)

    def apart(self, other: Line) -> timedelta:
        return abs(self.entry.at - other.entry.at)

    def take(self, other: Line) -> None:
        self.brokers += other.brokers
        self.numbers += other.numbers

    @property
    def target(self) -> str:
        """ "" where each broker's entry names itself: those are said beside it."""
        return "" if len(self.brokers) > 1 and self.entry.target == self.brokers[0] else self.entry.target

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The details for reading, with all brokers."""
        brokers = ", ".join(sorted(self.brokers))
        return [(key, brokers if key == "broker" else value) for key, value in self.entry.facts()]

    @property
    def _same(self) -> tuple[object, ...]:
        entry = self.entry
        target = entry.target if entry.target != self.brokers[0] else ""  # a request about the broker itself
        return entry.way, entry.who, entry.address, entry.action, target, entry.result, entry.told, self._details


def lines_of(entries: Sequence[AuditEntry], start: int, most: int) -> list[Line]:
    """Those that begin on the page of `most` entries from `start`, the newest first, as the entries are. One request to
    each of many brokers is one line.

    A line takes entries of its own page and of the next one, so what a page leaves out stands on the one before. Whole
    pages are around `start`: two before, one behind.
    """
    lines: list[tuple[int, Line]] = []  # by the page that it begins on, from the asked one
    for index, line in enumerate(map(Line, entries)):
        page = (index - start) // most
        if known := [one for begun, one in lines if page - begun <= 1 and one.may_take(line)]:
            min(known, key=line.apart).take(line)
        else:
            lines.append((page, line))
    return [line for page, line in lines if page == 0]
