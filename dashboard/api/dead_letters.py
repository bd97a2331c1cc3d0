"""/api/v1/dead-letters: groups, causes, putting back, results. The letters: /topics/%DLQ%GROUP/messages."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Router

from dashboard.accounts.access import Permission
from dashboard.api.auth import Token
from dashboard.api.problems import REFUSALS, FormProblem, caller
from dashboard.api.schemas.dead_letters import (
    CauseOut,
    CausesOut,
    DeadGroupList,
    DeadGroupOut,
    PutBackIn,
    PutBackOut,
    PutBackRecord,
    PutBackRecords,
)
from dashboard.audit.notes import note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.dead_letters import letters
from dashboard.dead_letters.causes import grouped
from dashboard.dead_letters.put_back import log_step, put_backs
from dashboard.forms.dead_letters import PutBackForm
from dashboard.forms.message_search import MessageSearchForm
from dashboard.models import PutBackRow

router = Router()
LIST_MAX = 200
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)


@router.get("", response={200: DeadGroupList} | REFUSALS, auth=READ, summary="Groups with dead letters",
            operation_id="list_dead_letters")  # fmt: skip
async def list_dead_letters(
    request: HttpRequest,
    q: str = Query("", description="part of the group's name"),
    offset: int = Query(0, ge=0, le=1_000_000),
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> DeadGroupList:
    known, failures = await letters.names(gateway())
    names = [name for name in known if q.lower() in name.lower()]
    rows = await letters.summaries(gateway(), names[offset : offset + limit])
    troubles = [f"{failure.what}: {failure.reason}" for failure in failures]
    return DeadGroupList(groups=[DeadGroupOut.of(row) for row in rows], total=len(names), troubles=troubles)


@router.get("/{name}/causes", response={200: CausesOut} | REFUSALS, auth=READ,
            summary="Why a group's messages became dead letters", operation_id="get_dead_letter_causes")  # fmt: skip
async def get_dead_letter_causes(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="as of messages"),
    since: str = Query("", description="2026-11-21 07:30, or 2 h for so long ago"),
    until: str = Query("", description="as since"),
    older: str = Query("", description="of the answer before"),
) -> CausesOut:
    asked = MessageSearchForm({"q": q, "since": since, "until": until})
    if not asked.is_valid():
        raise FormProblem(asked.problems())
    step = await letters.look(gateway(), await letters.detail_of(gateway(), name), asked.search(), older=older)
    return CausesOut(
        causes=[CauseOut.of(cause) for cause in grouped(step.letters)],
        scanned=step.scanned, matched=len(step.letters), older=step.older, troubles=step.troubles,
    )  # fmt: skip


@router.post("/{name}/put-back", response={200: PutBackOut} | REFUSALS, auth=SEND,
             summary="Put dead letters back, a step at a time", operation_id="put_back_dead_letters")  # fmt: skip
async def put_back_dead_letters(request: HttpRequest, name: str, body: PutBackIn) -> PutBackOut:
    form = PutBackForm(body.dict())
    if not form.is_valid():
        raise FormProblem(form.problems())
    detail = await letters.detail_of(gateway(), name)
    who = caller(request)
    step = await put_backs.step(
        gateway(), name, detail, form.wish(), older=form.cleaned_data["older"], username=who["username"]
    )
    if not body.dry_run:
        log_step(request, name, step, who)
    else:
        note_nothing(request)
    return PutBackOut.of(step)


@router.get("/{name}/results", response={200: PutBackRecords} | REFUSALS, auth=READ,
            summary="What became of letters that were put back", operation_id="list_put_back_results")  # fmt: skip
async def list_put_back_results(
    request: HttpRequest,
    name: str,
    offset: int = Query(0, ge=0, le=1_000_000),
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> PutBackRecords:
    rows = PutBackRow.objects.filter(group=name)
    shown = [PutBackRecord.of(row) async for row in rows.order_by("-at", "-pk")[offset : offset + limit]]
    return PutBackRecords(results=shown, total=await rows.acount())
