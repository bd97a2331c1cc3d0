"""/api/v1/audit: who changed what, and whether the chain of entries is whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import Query, Router, Schema

from dashboard.access.permissions import Permission
from dashboard.audit import chain
from dashboard.audit.export import export_response, told
from dashboard.audit.listing import Asked, found
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS
from dashboard.rest.values import Offset

router = Router()
LIST_MAX = 500
READ = Token(Permission.AUDIT_READ)
WayWord = Literal["page", "rest", "command", "remoting"]
ResultWord = Literal["done", "refused", "failed"]


class AuditEntryOut(Schema):
    """One change. who: "" without an account; told: why it was refused, or failed.

    details: a value that changed is {"before": …, "after": …}. request_id: the X-Request-ID of the request's answer.
    """

    number: int
    at: datetime
    who: str
    way: WayWord
    address: str
    action: str
    target: str
    result: ResultWord
    told: str
    details: dict[str, Any]
    request_id: str
    previous_hash: str
    hash: str


class AuditList(Schema):
    """Some of the entries, the newest first."""

    total: int
    entries: list[AuditEntryOut]


class NumbersOut(Schema):
    """Consecutive numbers of entries."""

    first: int
    last: int


class ChainOut(Schema):
    """What a walk along the chain found. broken_at: number of the first entry that does not fit; null: all fit.

    missing: numbers of entries that had been written and are gone: deleted, or an older copy of the
    database was put in place. recorded_since: the first number that is also recorded outside the database; null: there
    is no record that can be read.
    """

    is_whole: bool
    count: int
    since: datetime | None
    head: str
    broken_at: int | None
    missing: list[NumbersOut]
    recorded_since: int | None


@router.get("", response={200: AuditList} | REFUSALS, auth=READ, summary="List changes",
            operation_id="list_audit_entries")  # fmt: skip
async def list_entries(
    request: HttpRequest,
    q: str = Query("", max_length=200, description="part of action, target, account or details, or a request's id"),
    who: str = Query("", max_length=160, description="account; its tokens are included"),
    way: Literal["", WayWord] = "",
    result: Literal["", ResultWord] = "",
    since: datetime | None = None,
    until: datetime | None = None,
    own: bool = Query(False, description="also the calls that the appliance signs itself"),
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> AuditList:
    rows = found(Asked(text=q, who=who, way=way, result=result, since=since, until=until, with_own=own))
    entries = [AuditEntryOut(**told(entry)) async for entry in rows[offset : offset + limit]]
    return AuditList(total=await rows.acount(), entries=entries)


@router.get("/chain", response={200: ChainOut} | REFUSALS, auth=READ, summary="Check the chain of entries",
            operation_id="check_audit_chain")  # fmt: skip
async def check_chain(request: HttpRequest) -> ChainOut:
    state = await sync_to_async(chain.check)()
    return ChainOut(
        is_whole=state.is_whole, count=state.count, since=state.since, head=state.head,
        broken_at=state.broken_at, recorded_since=state.recorded_since,
        missing=[NumbersOut(first=first, last=last) for first, last in state.missing],
    )  # fmt: skip


@router.get("/export.{form}", response={200: None} | REFUSALS, auth=READ,
            summary="Changes as a file of JSON lines or CSV", operation_id="export_audit_entries")  # fmt: skip
async def export_entries(
    request: HttpRequest,
    form: Literal["jsonl", "csv"],
    q: str = Query("", max_length=200),
    who: str = Query("", max_length=160),
    way: Literal["", WayWord] = "",
    result: Literal["", ResultWord] = "",
    since: datetime | None = None,
    until: datetime | None = None,
    own: bool = False,
) -> Any:
    asked = Asked(text=q, who=who, way=way, result=result, since=since, until=until, with_own=own)
    return export_response(asked, form)
