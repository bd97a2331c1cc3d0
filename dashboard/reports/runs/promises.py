"""How far behind consumer groups may be: what was promised for each, and for all others."""

from __future__ import annotations

from appliance.reports.catalogue import REPORTS
from dashboard.models.reports import GroupPromise
from gantrymq.errors import GantryError

PROMISES_MAX = 500
OTHERS = ""  # the name of the promise for all other groups
GROUPS = "groups"  # the table that reports with promises read


class TooManyPromises(GantryError):
    """So many groups have one already."""


async def promises() -> dict[str, float]:
    """Seconds by group."""
    return {row.group: row.seconds async for row in GroupPromise.objects.all()}


async def promises_for(report: str) -> dict[str, float]:
    """What a run of the report has to know of them."""
    return await promises() if report in REPORTS and GROUPS in REPORTS[report].tables else {}


async def promise(group: str, seconds: float | None) -> None:
    """Set a group's promise; None takes it away. Raises TooManyPromises."""
    if seconds is None:
        await GroupPromise.objects.filter(group=group).adelete()
        return
    others = GroupPromise.objects.exclude(group=group)
    if await others.acount() >= PROMISES_MAX:
        raise TooManyPromises(f"{PROMISES_MAX} groups have a promise already.")
    await GroupPromise.objects.aupdate_or_create(group=group, defaults={"seconds": seconds})
