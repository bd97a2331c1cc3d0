"""The list of incidents, as the page and REST show it."""

from __future__ import annotations

from dashboard.models.incidents import IncidentQuery, IncidentRow


async def count_incidents(*, text: str = "", only_open: bool = False) -> int:
    """How many there are."""
    return await _found(text, only_open).acount()


async def list_incidents(start: int, stop: int, *, text: str = "", only_open: bool = False) -> list[IncidentRow]:
    """A part of them, the open ones first, then the newest."""
    return [row async for row in _found(text, only_open)[start:stop]]


def _found(text: str, only_open: bool) -> IncidentQuery:
    rows = IncidentRow.objects.newest_first()
    if only_open:
        rows = rows.filter(ended_at=None)
    return rows.filter(title__icontains=text) if text else rows
