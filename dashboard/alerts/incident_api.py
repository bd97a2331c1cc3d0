"""/api/v1/incidents: what was wrong, from when until when."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema

from dashboard.access.permissions import Permission
from dashboard.alerts.incident_listing import count_incidents, list_incidents
from dashboard.models.incidents import IncidentRow
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS

router = Router()
LIST_MAX = 200
READ = Token(Permission.CLUSTER_READ)


class IncidentOut(Schema):
    """One incident. level, title and worst are of its worst moment; ended_at null: it goes on."""

    level: Literal["attention", "problem"]
    title: str
    evidence: str
    worst: str
    begun_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    duration_s: float

    @classmethod
    def of(cls, row: IncidentRow) -> IncidentOut:
        return cls(
            level="problem" if row.word == "problem" else "attention", title=row.title, evidence=row.evidence,
            worst=row.worst, begun_at=row.begun_at, seen_at=row.seen_at, ended_at=row.ended_at,
            duration_s=row.duration_s,
        )  # fmt: skip


class IncidentList(Schema):
    """Some of the incidents, the open ones first, then the newest."""

    total: int
    incidents: list[IncidentOut]


@router.get("", response={200: IncidentList} | REFUSALS, auth=READ, summary="List incidents",
            operation_id="list_incidents")  # fmt: skip
async def get_incidents(
    request: HttpRequest,
    q: str = Query("", max_length=200, description="part of the title"),
    only_open: bool = Query(False, description="only those that go on"),
    offset: int = Query(0, ge=0, le=1_000_000),
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> IncidentList:
    rows = await list_incidents(offset, offset + limit, text=q, only_open=only_open)
    total = await count_incidents(text=q, only_open=only_open)
    return IncidentList(total=total, incidents=[IncidentOut.of(row) for row in rows])
