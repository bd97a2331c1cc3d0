"""/api/v1/reports/promises and /weekly: how far behind groups may be; the summary of a week by mail."""

from __future__ import annotations

import logging

from django.http import HttpRequest
from ninja import Router

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.models.alerts import AlertChannel, ChannelKind
from dashboard.reports.api import check_times
from dashboard.reports.forms import PromiseForm
from dashboard.reports.runs import promises
from dashboard.reports.schemas import PromiseIn, PromisesOut, WeeklyIn, WeeklyOut
from dashboard.reports.weekly import send_now, set_weekly, weekly_mail
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, NotPossible, caller

logger = logging.getLogger(__name__)

router = Router()
READ = Token(Permission.REPORTS_READ)
RUN = Token(Permission.REPORTS_RUN)


@router.get("/promises", response={200: PromisesOut} | REFUSALS, auth=READ,
            summary="Promises: how far behind groups may be", operation_id="get_promises")  # fmt: skip
async def get_promises(request: HttpRequest) -> PromisesOut:
    return PromisesOut(promises=await promises.promises())


@router.put("/promises", response={200: PromisesOut} | REFUSALS, auth=RUN,
            summary="Set or remove a group's promise", operation_id="set_promise")  # fmt: skip
async def set_promise(request: HttpRequest, body: PromiseIn) -> PromisesOut:
    form = PromiseForm({"group": body.group, "seconds": body.seconds})
    if not form.is_valid():
        raise FormProblem(form.problems())
    try:
        await promises.promise(body.group, body.seconds)
    except promises.TooManyPromises as refusal:
        raise NotPossible(str(refusal)) from refusal
    note(request, "promise of a group changed", body.group, {"seconds": body.seconds})
    logger.info("promise changed", extra={"event": "promise_changed", "group": body.group} | caller(request))
    return PromisesOut(promises=await promises.promises())


@router.get("/weekly", response={200: WeeklyOut} | REFUSALS, auth=READ, summary="The weekly summary by mail",
            operation_id="get_weekly_mail")  # fmt: skip
async def get_weekly(request: HttpRequest) -> WeeklyOut:
    return await _weekly()


@router.put("/weekly", response={200: WeeklyOut} | REFUSALS, auth=RUN,
            summary="Change when the weekly summary is sent", operation_id="set_weekly_mail")  # fmt: skip
async def put_weekly(request: HttpRequest, body: WeeklyIn) -> WeeklyOut:
    if not body.cron:
        raise FormProblem({"cron": ["Write a cron line, such as: 0 8 * * mon"]})
    check_times(body.cron, body.zone)
    known = AlertChannel.objects.filter(pk__in=body.channels, kind=ChannelKind.MAIL)
    if await known.acount() != len(set(body.channels)):
        raise FormProblem({"channels": ["One of these is no mail channel."]})
    await set_weekly(body.channels, body.cron, body.zone)
    note(request, "weekly mail changed", "", body.dict())
    logger.info("weekly mail changed", extra={"event": "weekly_changed"} | caller(request))
    return await _weekly()


@router.post("/weekly/send", response={200: WeeklyOut} | REFUSALS, auth=RUN,
             summary="Send the summary of the last seven days now", operation_id="send_weekly_mail")  # fmt: skip
async def send_weekly(request: HttpRequest) -> WeeklyOut:
    if not await send_now():
        note_nothing(request)
        raise NotPossible("No channel is chosen, or a summary is being made already.")
    note(request, "weekly mail sent by hand", "", {})
    logger.info("weekly mail requested", extra={"event": "weekly_asked"} | caller(request))
    return await _weekly()


async def _weekly() -> WeeklyOut:
    mail = await weekly_mail()
    channels = [key async for key in mail.channels.values_list("pk", flat=True)]
    return WeeklyOut(channels=channels, cron=mail.cron, zone=mail.zone, next_at=mail.next_at if channels else None)
