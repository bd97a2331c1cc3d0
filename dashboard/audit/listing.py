"""The entries that a reader asks for: page and REST ask the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from dashboard.models.audit import AuditEntry, Way

OWN_ACCOUNT = "gantry-appliance"  # signs the calls of the dashboard itself: what a person did stands as a page's


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
