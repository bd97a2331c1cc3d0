"""/api/v1/audit: who changed what, and whether the chain of entries is whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from ninja import Query, Schema

from dashboard.access.permissions import Permission
from dashboard.audit import chain
from dashboard.audit.export import export_response, told
from dashboard.audit.listing import Asked, found
from dashboard.models.audit import AuditEntry
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Listed, Since, Until
from dashboard.rest.routes import Routes

router = Routes()
READ = Token(Permission.AUDIT_READ)
WayWord = Literal["page", "rest", "command", "remoting"]
ResultWord = Literal["done", "refused", "failed"]


class AuditEntryOut(Schema):
    """One change. who: "" without an account; detail: why it was refused, or failed.

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
    detail: str
    details: dict[str, Any]
    request_id: str
    previous_hash: str
    hash: str


class AuditList(Listed[AuditEntryOut]):
    """The newest first."""

    @staticmethod
    def entry(row: AuditEntry) -> AuditEntryOut:
        facts = told(row)
        return AuditEntryOut(detail=facts.pop("told"), **facts)


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
    first_at: datetime | None
    head: str
    broken_at: int | None
    missing: list[NumbersOut]
    recorded_since: int | None


@router.get("", auth=READ, summary="List changes")
async def list_audit_entries(
    request: HttpRequest,
    q: str = Query("", max_length=200, description="part of action, target, account or details, or a request's id"),
    who: str = Query("", max_length=160, description="account; its tokens are included"),
    way: Literal["", WayWord] = "",
    result: Literal["", ResultWord] = "",
    since: Since = None,
    until: Until = None,
    own: bool = Query(False, description="also the calls that the appliance signs itself"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> AuditList:
    rows = found(Asked(text=q, who=who, way=way, result=result, since=since, until=until, with_own=own))
    return await AuditList.of_rows(rows, AuditList.entry, cursor, limit)


@router.get("/chain", auth=READ, summary="Check the chain of entries")
async def check_audit_chain(request: HttpRequest) -> ChainOut:
    state = await sync_to_async(chain.check)()
    return ChainOut(
        is_whole=state.is_whole, count=state.count, first_at=state.since, head=state.head,
        broken_at=state.broken_at, recorded_since=state.recorded_since,
        missing=[NumbersOut(first=first, last=last) for first, last in state.missing],
    )  # fmt: skip


@router.get("/export.{form}", auth=READ, summary="Changes as a file of JSON lines or CSV")
async def export_audit_entries(
    request: HttpRequest,
    form: Literal["jsonl", "csv"],
    q: str = Query("", max_length=200),
    who: str = Query("", max_length=160),
    way: Literal["", WayWord] = "",
    result: Literal["", ResultWord] = "",
    since: Since = None,
    until: Until = None,
    own: bool = False,
) -> HttpResponseBase:
    asked = Asked(text=q, who=who, way=way, result=result, since=since, until=until, with_own=own)
    return export_response(asked, form)
