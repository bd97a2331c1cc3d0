"""One alert: what it says, who handles it, and notes about it."""

from __future__ import annotations

from collections.abc import Callable

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_noop

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.alerts import handling
from dashboard.alerts.alert_rows import with_present
from dashboard.alerts.causes import page_of_alert
from dashboard.alerts.editing import NotTaken
from dashboard.alerts.rules import mute_of, mutes_in_force
from dashboard.audit.notes import note, note_nothing
from dashboard.models.alerts import AlertNote, AlertRow

Act = Callable[[AlertRow, str, str], object]  # of the row, what was typed, and who asks
_DEEDS: dict[str, tuple[Act, str, str]] = {  # what is done, what the audit log calls it, and what was typed there
    "acknowledge": (lambda row, _, who: handling.acknowledge(row, who), gettext_noop("alert acknowledged"), ""),
    "withdraw": (lambda row, _, __: handling.withdraw(row), gettext_noop("acknowledgement withdrawn"), ""),
    "assign": (lambda row, user, _: handling.assign(row, user), gettext_noop("alert assigned"), "to"),
    "note": (handling.add_note, gettext_noop("note added to an alert"), "note"),
}


@requires(Permission.CLUSTER_READ)
async def alert(request: HttpRequest, alert_id: int) -> HttpResponse:
    """All that is known about it."""
    row = await _alert(alert_id)
    muted = await sync_to_async(lambda: mute_of(row, mutes_in_force()) if row.rule else None)()
    may = request.principal.may(Permission.ALARMS_WRITE)  # type: ignore[attr-defined]
    context = {
        "row": with_present(row),
        "mute": muted,
        "why": page_of_alert(row),
        "notes": [one async for one in row.notes.all()],
        "handlers": await sync_to_async(handling.handlers)() if may else [],
        "note_max": AlertNote.TEXT_MAX,
    }
    return render(request, "alerts/alert.html", context)


@requires(Permission.ALARMS_WRITE, ACT)
async def alert_do(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Acknowledge it or withdraw that, assign it, or add a note; then back to its page, or to the list."""
    row = await _alert(alert_id)
    does = _DEEDS.get(request.POST.get("do", ""))
    if does is None:
        raise Http404
    act, action, key = does
    typed = request.POST.get("typed", "")
    who = str(request.principal.user)  # type: ignore[attr-defined]
    try:
        await sync_to_async(act)(row, typed, who)
    except (NotTaken, handling.AlreadyOver) as exc:
        note_nothing(request)
        notes.warning(request, str(exc))
    else:
        note(request, action, row.title, {key: typed or "no account"} if key else {})
        notes.success(request, gettext("Saved."))
    return redirect("alerts") if request.POST.get("back") else redirect("alert", row.pk)


async def _alert(alert_id: int) -> AlertRow:
    row = None
    if 0 < alert_id < 1 << 63:
        row = await AlertRow.objects.select_related("rule").filter(pk=alert_id).afirst()
    if row is None:
        raise Http404
    return row
