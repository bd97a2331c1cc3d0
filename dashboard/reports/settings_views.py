"""What the page of reports lets people set: the schedule, promises of groups, the weekly mail."""

from __future__ import annotations

from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.forms.base import BaseForm
from dashboard.models.alerts import AlertChannel, ChannelKind
from dashboard.reports.forms import INTERVALS, RANGES, PlanForm, PromiseForm, WeeklyForm
from dashboard.reports.runs import plans
from dashboard.reports.runs import promises as group_promises
from dashboard.reports.weekly import send_now, set_weekly, weekly_mail


async def settings_context(plan: plans.Schedule) -> dict[str, Any]:
    """What the page's forms need."""
    mail = await weekly_mail()
    channels = await _mail_channels()
    chosen = [key async for key in mail.channels.values_list("pk", flat=True)]
    return {
        "plan_form": PlanForm(
            auto_id="plan-%s",
            initial={
                "interval_minutes": plan.interval_minutes,
                "days": plan.days,
                "reports": plan.reports,
                "cron": plan.cron,
                "zone": plan.zone,
            },
        ),
        "interval_text": (
            gettext("at “%(cron)s” (%(zone)s)") % {"cron": plan.cron, "zone": plan.zone}
            if plan.cron
            else dict(INTERVALS).get(plan.interval_minutes)
            or gettext("every %(minutes)s minutes") % {"minutes": plan.interval_minutes}
        ),
        "range_text": dict(RANGES).get(plan.days) or gettext("last %(days)s days") % {"days": plan.days},
        "promises": await group_promises.promises(),
        "promise_form": PromiseForm(auto_id="promise-%s"),
        "mail": mail,
        "mail_channels": channels,
        "weekly_form": WeeklyForm(
            auto_id="weekly-%s",
            channels=channels,
            initial={"channels": chosen, "cron": mail.cron, "zone": mail.zone},
        ),
        "is_weekly_on": bool(chosen) and mail.next_at is not None,
    }


@requires(Permission.REPORTS_RUN, ACT)
async def schedule(request: HttpRequest) -> HttpResponseBase:
    form = PlanForm(request.POST)
    if not form.is_valid():
        return refused(gettext("The schedule is unchanged."), form)
    before = await plans.schedule()
    await plans.set_schedule(**form.cleaned_data)
    note(request, "report schedule changed", "", changed(before.facts(), (await plans.schedule()).facts()))
    notes.success(request, gettext("Schedule saved."))
    return redirect("reports:index")


@requires(Permission.REPORTS_RUN, ACT)
async def promises(request: HttpRequest) -> HttpResponseBase:
    """Set a group's promise, or take it away."""
    form = PromiseForm(request.POST)
    if not form.is_valid():
        return refused(gettext("No promise was changed."), form)
    group, seconds = form.cleaned_data["group"], form.cleaned_data["seconds"]
    try:
        await group_promises.promise(group, seconds)
    except group_promises.TooManyPromises as refusal:
        note_nothing(request)
        notes.warning(request, str(refusal))
        return redirect("reports:index")
    note(request, "promise of a group changed", group, {"seconds": seconds})
    notes.success(request, gettext("Promise saved.") if seconds is not None else gettext("Promise removed."))
    return redirect("reports:index")


@requires(Permission.REPORTS_RUN, ACT)
async def weekly(request: HttpRequest) -> HttpResponseBase:
    form = WeeklyForm(request.POST, channels=await _mail_channels())
    if not form.is_valid():
        return refused(gettext("The weekly mail is unchanged."), form)
    await set_weekly(**form.cleaned_data)
    note(request, "weekly mail changed", "", form.cleaned_data)
    notes.success(
        request, gettext("Weekly mail saved.") if form.cleaned_data["channels"] else gettext("The weekly mail is off.")
    )
    return redirect("reports:index")


@requires(Permission.REPORTS_RUN, ACT)
async def send_weekly(request: HttpRequest) -> HttpResponseBase:
    """Have the summary of the last seven days sent now."""
    if await send_now():
        note(request, "weekly mail sent by hand", "", {})
        notes.success(request, gettext("The summary is being computed; it is sent when its reports are ready."))
    else:
        note_nothing(request)
        notes.warning(
            request, gettext("Nothing was started: no channel is chosen, or a summary is being computed already.")
        )
    return redirect("reports:index")


def refused(what: str, form: BaseForm) -> HttpResponse:
    """400, with all that is wrong with the form in sentences."""
    sentences = [what, *(text for texts in form.problems().values() for text in texts)]
    return HttpResponse(" ".join(sentences), status=400, content_type="text/plain; charset=utf-8")


async def _mail_channels() -> list[tuple[int, str]]:
    channels = AlertChannel.objects.filter(kind=ChannelKind.MAIL)
    return [(key, name) async for key, name in channels.values_list("pk", "name")]
