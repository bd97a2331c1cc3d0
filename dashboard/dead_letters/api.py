"""/api/v1/dead-letters: groups, causes, putting back, results, discarding. The letters: /topics/%DLQ%GROUP/messages."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Path, Query

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.dead_letters import letters, runs
from dashboard.dead_letters.discard import discard
from dashboard.dead_letters.forms import PutBackForm
from dashboard.dead_letters.letters import grouped
from dashboard.dead_letters.put_back import note_step, put_backs
from dashboard.dead_letters.schemas import (
    FORM_NAMES,
    CauseList,
    DeadGroupList,
    DeadGroupOut,
    DiscardOut,
    LetterCauseOut,
    ResendIn,
    ResendOut,
    ResendRecord,
    ResendRecords,
    ResendRunIn,
    ResendRunList,
    ResendRunOut,
)
from dashboard.messages.forms import MessageSearchForm
from dashboard.models import PutBackRow, PutBackRun
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Since, Until, part_of, place_of, sentences
from dashboard.rest.refusals import caller, checked
from dashboard.rest.routes import Routes
from dashboard.rest.values import text_of

router = Routes(asks_cluster=True)
RUN_MAX = (1 << 63) - 1
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)
WRITE = Token(Permission.TOPICS_WRITE)


@router.get("", auth=READ, summary="Groups with dead letters")
async def list_dead_letters(
    request: HttpRequest,
    q: str = Query("", description="part of the group's name"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> DeadGroupList:
    part = part_of(cursor, limit)
    known, failures = await letters.names(gateway())
    names = [name for name in known if q.lower() in name.lower()]
    rows = await letters.summaries(gateway(), names[part.rows])
    return DeadGroupList.cut(part, map(DeadGroupOut.of_group, rows), len(names), failures)


@router.get("/{name}/causes", auth=READ, summary="Why a group's messages became dead letters")
async def get_dead_letter_causes(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="as of messages"),
    since: Since = None,
    until: Until = None,
    cursor: Cursor = "",
) -> CauseList:
    asked = checked(MessageSearchForm({"q": q, "since": text_of(since), "until": text_of(until)}))
    place_of(cursor)
    step = await letters.look(gateway(), await letters.detail_of(gateway(), name), asked.search(), older=cursor)
    return CauseList(
        items=[LetterCauseOut.of(cause) for cause in grouped(step.letters)], total=None, next=step.older,
        problems=sentences(step.troubles), scanned=step.scanned, matched=len(step.letters),
    )  # fmt: skip


@router.post("/{name}/resend", auth=SEND, response=409, summary="Resend dead letters, a step at a time")
async def resend_dead_letters(request: HttpRequest, name: str, body: ResendIn) -> ResendOut:
    form = checked(PutBackForm(body.form_data()), **FORM_NAMES)
    detail = await letters.detail_of(gateway(), name)
    step = await put_backs.step(
        gateway(), name, detail, form.wish(), older=form.cleaned_data["older"], username=caller(request)
    )
    if not body.dry_run:
        note_step(request, name, step)
    else:
        note_nothing(request)
    return ResendOut.of_step(step)


@router.get("/{name}/results", auth=READ, summary="Results of resent dead letters")
async def list_resend_results(
    request: HttpRequest,
    name: str,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> ResendRecords:
    rows = PutBackRow.objects.filter(group=name).order_by("-at", "-pk")
    return await ResendRecords.of_rows(rows, ResendRecord.of, cursor, limit)


@router.delete("/{name}", auth=WRITE, response=409, summary="Discard a group's dead letters, for good")
async def discard_dead_letters(
    request: HttpRequest,
    name: str,
    expected: int = Query(
        ..., alias="letters", ge=1, le=RUN_MAX, description="the current number; otherwise the request is rejected"
    ),
) -> DiscardOut:
    count = await discard(gateway(), name, expected)
    note(request, "dead letters discarded", name, {"letters": count})
    return DiscardOut(group=name, letters=count)


@router.get("/{name}/runs", auth=READ, summary="Runs that resend dead letters")
async def list_resend_runs(
    request: HttpRequest,
    name: str,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> ResendRunList:
    rows = PutBackRun.objects.filter(group=name).order_by("-started_at", "-pk")
    return await ResendRunList.of_rows(rows, ResendRunOut.of_run, cursor, limit)


@router.post("/{name}/runs", auth=SEND, response=(201, 409), summary="Start a run that resends dead letters")
async def start_resend_run(request: HttpRequest, name: str, body: ResendRunIn) -> ResendRunOut:
    form = checked(PutBackForm(body.form_data()), **FORM_NAMES)
    given = form.cleaned_data
    row = await runs.start(name, form.wish(), older=given["older"], wanted=given["wanted"], username=caller(request))
    note(request, "dead letters: run started", row.group, runs.facts_of(row))
    return ResendRunOut.of_run(row)


@router.get("/{name}/runs/{run_id}", auth=READ, summary="Progress of a run")
async def get_resend_run(request: HttpRequest, name: str, run_id: int = Path(..., ge=1, le=RUN_MAX)) -> ResendRunOut:
    return ResendRunOut.of_run(await runs.found(name, run_id))


@router.post("/{name}/runs/{run_id}/stop", auth=SEND, response=409, summary="Stop a run after the step that it is in")
async def stop_resend_run(request: HttpRequest, name: str, run_id: int = Path(..., ge=1, le=RUN_MAX)) -> ResendRunOut:
    row = await runs.stop(name, run_id, caller(request))
    note(request, "dead letters: run stopped", row.group, runs.facts_of(row))
    return ResendRunOut.of_run(row)


@router.post("/{name}/runs/{run_id}/resume", auth=SEND, response=409, summary="Resume a run that was stopped or failed")
async def resume_resend_run(request: HttpRequest, name: str, run_id: int = Path(..., ge=1, le=RUN_MAX)) -> ResendRunOut:
    row = await runs.go_on(name, run_id, caller(request))
    note(request, "dead letters: run resumed", row.group, runs.facts_of(row))
    return ResendRunOut.of_run(row)
