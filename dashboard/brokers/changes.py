"""What was changed of one broker's settings, and by whom, as the audit log has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q

from dashboard.audit.listing import OWN_ACCOUNT
from dashboard.models.audit import AuditEntry, Result, Way

SETTINGS_CHANGED = "broker settings changed"
LOOKED_AT_MAX = 200  # entries, the newest


@dataclass(frozen=True, slots=True)
class SettingChanged:
    """One setting, changed once. before: None when the entry does not say."""

    key: str
    at: datetime
    who: str
    way: str
    before: str | None
    after: str


async def changes_of(broker: str) -> list[SettingChanged]:
    """The newest first. Changes by page and REST, and by other tools, which tell no value of before."""
    rows = AuditEntry.objects.filter(action=SETTINGS_CHANGED, target=broker, result=Result.DONE)
    rows = rows.exclude(way=Way.REMOTING, who=OWN_ACCOUNT).order_by("-number")[:LOOKED_AT_MAX]
    return [change async for entry in rows for change in _read(entry)]


async def entries_of(broker: str, most: int) -> list[AuditEntry]:
    """All that was done to the broker, the newest first, also by requests to the process of one of its slaves."""
    members = settings.APPLIANCE.broker_processes
    names = {broker, *(member.name for member in members if member.broker_name == broker)}
    rows = AuditEntry.objects.filter(Q(target__in=names) | Q(target__startswith=f"{broker}:"))
    return [one async for one in rows.exclude(way=Way.REMOTING, who=OWN_ACCOUNT).order_by("-number")[:most]]


def newest_by_key(changes: list[SettingChanged]) -> dict[str, SettingChanged]:
    """Who changed each setting last."""
    return {change.key: change for change in reversed(changes)}


def _read(entry: AuditEntry) -> list[SettingChanged]:
    details: Any = json.loads(entry.details) if entry.details else {}
    body = details.get("body") if isinstance(details, Mapping) else None
    table = body if entry.way == Way.REMOTING and isinstance(body, Mapping) else details
    found = []
    for key, value in table.items() if isinstance(table, Mapping) else ():
        if isinstance(value, Mapping) and "after" in value:
            before, after = str(value.get("before", "")), str(value["after"])
        elif isinstance(value, str) and entry.way == Way.REMOTING:
            before, after = None, value
        else:
            continue
        found.append(SettingChanged(str(key), entry.at, entry.who, entry.get_way_display(), before, after))
    return found
