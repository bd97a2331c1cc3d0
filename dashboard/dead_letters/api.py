"""/api/v1/dead-letters: groups, causes, putting back, results, discarding. The letters: /topics/%DLQ%GROUP/messages."""

from __future__ import annotations

import logging

from django.http import HttpRequest
from ninja import Path, Query, Router, Status

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.dead_letters import letters, runs
from dashboard.dead_letters.causes import grouped
from dashboard.dead_letters.discard import discard
from dashboard.dead_letters.forms import PutBackForm
from dashboard.dead_letters.put_back import log_step, put_backs
from dashboard.dead_letters.schemas import (
    CausesOut,
    DeadGroupList,
    DeadGroupOut,
    DiscardOut,
    LetterCauseOut,
    PutBackIn,
    PutBackOut,
    PutBackRecord,
    PutBackRecords,
    PutBackRunIn,
    PutBackRunList,
    PutBackRunOut,
)
from dashboard.messages.search_form import MessageSearchForm
from dashboard.models import PutBackRow, PutBackRun
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, caller
from dashboard.rest.values import Offset

logger = logging.getLogger(__name__)

router = Router()
LIST_MAX = 200
RUN_MAX = (1 << 63) - 1
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)
WRITE = Token(Permission.TOPICS_WRITE)


@router.get("", response={200: DeadGroupList} | REFUSALS, auth=READ, summary="Groups with dead letters",
            operation_id="list_dead_letters")  # fmt: skip
async def list_dead_letters(
    request: HttpRequest,
    q: str = Query("", description="part of the group's name"),
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> DeadGroupList:
    known, failures = await letters.names(gateway())
    names = [name for name in known if q.lower() in name.lower()]
    rows = await letters.summaries(gateway(), names[offset : offset + limit])
    troubles = [f"{failure.what}: {failure.reason}" for failure in failures]
    return DeadGroupList(groups=[DeadGroupOut.of_group(row) for row in rows], total=len(names), troubles=troubles)


@router.get("/{name}/causes", response={200: CausesOut} | REFUSALS, auth=READ,
            summary="Why a group's messages became dead letters", operation_id="get_dead_letter_causes")  # fmt: skip
async def get_dead_letter_causes(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="as of messages"),
    since: str = Query("", description="2026-11-21 07:30, or 2 h for two hours ago"),
    until: str = Query("", description="as since"),
    older: str = Query("", description="from the previous answer"),
) -> CausesOut:
    asked = MessageSearchForm({"q": q, "since": since, "until": until})
    if not asked.is_valid():
        raise FormProblem(asked.problems())
    step = await letters.look(gateway(), await letters.detail_of(gateway(), name), asked.search(), older=older)
    return CausesOut(
        causes=[LetterCauseOut.of(cause) for cause in grouped(step.letters)],
        scanned=step.scanned, matched=len(step.letters), older=step.older, troubles=step.troubles,
    )  # fmt: skip


@router.post("/{name}/resend", response={200: PutBackOut} | REFUSALS, auth=SEND,
             summary="Resend dead letters, a step at a time", operation_id="resend_dead_letters")  # fmt: skip
async def resend_dead_letters(request: HttpRequest, name: str, body: PutBackIn) -> PutBackOut:
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
            summary="Results of resent dead letters", operation_id="list_resend_results")  # fmt: skip
async def list_resend_results(
    request: HttpRequest,
    name: str,
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> PutBackRecords:
    rows = PutBackRow.objects.filter(group=name)
    shown = [PutBackRecord.of(row) async for row in rows.order_by("-at", "-pk")[offset : offset + limit]]
    return PutBackRecords(results=shown, total=await rows.acount())


@router.delete("/{name}", response={200: DiscardOut} | REFUSALS, auth=WRITE,
               summary="Discard a group's dead letters, for good", operation_id="discard_dead_letters")  # fmt: skip
async def discard_dead_letters(
    request: HttpRequest,
    name: str,
    expected: int = Query(
        ..., alias="letters", ge=1, le=RUN_MAX, description="the current number; otherwise the request is rejected"
    ),
) -> DiscardOut:
    count = await discard(gateway(), name, expected)
    note(request, "dead letters discarded", name, {"letters": count})
    facts = {"event": "dead_letters_discarded", "group": name, "letters": count}
    logger.info("dead letters discarded", extra=facts | caller(request))
    return DiscardOut(group=name, letters=count)


@router.get("/{name}/runs", response={200: PutBackRunList} | REFUSALS, auth=READ,
            summary="Runs that resend dead letters", operation_id="list_resend_runs")  # fmt: skip
async def list_resend_runs(
    request: HttpRequest,
    name: str,
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> PutBackRunList:
    rows = PutBackRun.objects.filter(group=name).order_by("-started_at", "-pk")
    shown = [PutBackRunOut.of_run(row) async for row in rows[offset : offset + limit]]
    return PutBackRunList(runs=shown, total=await rows.acount())


@router.post("/{name}/runs", response={201: PutBackRunOut} | REFUSALS, auth=SEND,
             summary="Start a run that resends dead letters", operation_id="start_resend_run")  # fmt: skip
async def start_resend_run(request: HttpRequest, name: str, body: PutBackRunIn) -> Status[PutBackRunOut]:
    form = PutBackForm(body.dict())
    if not form.is_valid():
        raise FormProblem(form.problems())
    given = form.cleaned_data
    row = await runs.start(
        name, form.wish(), older=given["older"], wanted=given["wanted"], username=caller(request)["username"]
    )
    _note(request, "dead letters: run started", row)
    return Status(201, PutBackRunOut.of_run(row))


@router.get("/{name}/runs/{run}", response={200: PutBackRunOut} | REFUSALS, auth=READ, summary="Progress of a run",
            operation_id="get_resend_run")  # fmt: skip
async def get_resend_run(request: HttpRequest, name: str, run: int = Path(..., ge=1, le=RUN_MAX)) -> PutBackRunOut:
    return PutBackRunOut.of_run(await runs.found(name, run))


@router.post("/{name}/runs/{run}/stop", response={200: PutBackRunOut} | REFUSALS, auth=SEND,
             summary="Stop a run after the step that it is in", operation_id="stop_resend_run")  # fmt: skip
async def stop_resend_run(request: HttpRequest, name: str, run: int = Path(..., ge=1, le=RUN_MAX)) -> PutBackRunOut:
    row = await runs.stop(name, run, caller(request)["username"])
    _note(request, "dead letters: run stopped", row)
    return PutBackRunOut.of_run(row)


@router.post("/{name}/runs/{run}/resume", response={200: PutBackRunOut} | REFUSALS, auth=SEND,
             summary="Resume a run that was stopped or failed", operation_id="resume_resend_run")  # fmt: skip
async def resume_resend_run(request: HttpRequest, name: str, run: int = Path(..., ge=1, le=RUN_MAX)) -> PutBackRunOut:
    row = await runs.go_on(name, run, caller(request)["username"])
    _note(request, "dead letters: run resumed", row)
    return PutBackRunOut.of_run(row)


def _note(request: HttpRequest, action: str, row: PutBackRun) -> None:
    note(request, action, row.group, runs.facts_of(row))
    logger.info(action, extra={"event": "put_back_run", "group": row.group, "run": row.pk} | caller(request))
