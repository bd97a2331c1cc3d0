"""Alerts: those that are open, the rules, mutes, channels, the history, and what was delivered."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.alerts import editing, preview
from dashboard.alerts.alert_rows import kept_days, with_present
from dashboard.alerts.causes import page_of_alert
from dashboard.alerts.forms import MuteForm, RuleForm, choices_of, rule_initial
from dashboard.alerts.kinds import KINDS, is_named_by_its_kind, name_in_words
from dashboard.alerts.rules import deleted_rules, for_book, mute_of, mutes_in_force, shown_rules
from dashboard.audit.notes import changed, note
from dashboard.http.paging import page_of
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule, ChannelKind

OPEN_SHOWN = 200
PAGE_ALERTS = 50
TEXT_MAX = 200
DELIVERIES_SHOWN = 5
PAGE_DELIVERIES = 50


@requires(Permission.CLUSTER_READ)
async def alerts(request: HttpRequest) -> HttpResponse:
    """All of it; the history as the address says: q, show=open, page."""
    wanted, only_open = request.GET.get("q", "").strip()[:TEXT_MAX], request.GET.get("show") == "open"
    rows = AlertRow.objects.found(wanted, only_open=only_open).select_related("rule").prefetch_related("notes")
    page = page_of(request, range(total := await rows.acount()), PAGE_ALERTS)
    start = page.rows[0] if page.rows else 0
    context = await sync_to_async(_context)() | {
        "history": [with_present(row) async for row in rows[start : start + PAGE_ALERTS]],
        "q": wanted, "only_open": only_open, "total": total, "page": page.number, "pages": page.pages,
        "kept_days": kept_days(),
        "would_have_days": preview.DAYS,
    }  # fmt: skip
    return render(request, "alerts/alerts.html", context)


@requires(Permission.CLUSTER_READ)
async def deliveries(request: HttpRequest) -> HttpResponse:
    """The delivery log."""
    rows = AlertDelivery.objects.select_related("channel")
    page = page_of(request, range(await rows.acount()), PAGE_DELIVERIES)
    start = page.rows[0] if page.rows else 0
    shown = [row async for row in rows[start : start + PAGE_DELIVERIES]]
    context = {"deliveries": shown, "page": page.number, "pages": page.pages, "kept_days": kept_days()}
    return render(request, "alerts/deliveries.html", context)


@requires(Permission.CLUSTER_READ)
async def would_have(request: HttpRequest, rule_id: int) -> HttpResponse:
    """A line for the list: how often the rule would have rung."""
    row = await _rule(rule_id)
    found = await sync_to_async(preview.would_have_rung)(for_book(row), time.time()) if row.kind in KINDS else None
    return render(request, "alerts/_would_have.html", {"found": found, "days": preview.DAYS})


@requires(Permission.ALARMS_WRITE, FORM)
async def rule(request: HttpRequest, rule_id: int = 0) -> HttpResponse:
    """A new rule, or one that is there."""
    row = await _rule(rule_id) if rule_id else None
    channels = choices_of([channel async for channel in AlertChannel.objects.all()])
    initial = {"clear_s": "1 min", "level": "1"}
    if row is not None:
        initial = rule_initial(row, [channel.pk async for channel in row.channels.all()])
    form = RuleForm(request.POST if request.method == "POST" else None, channels=channels, initial=initial)
    if request.method == "POST" and form.is_valid():
        before = _facts(row) if row is not None else {}
        try:
            saved = await sync_to_async(editing.save_rule)(form.values(), row)
        except editing.NotTaken as exc:
            form.refuse(exc)
        else:
            action = "alert rule changed" if row is not None else "alert rule created"
            note(request, action, saved.name, changed(before, _facts(saved)) if before else _facts(saved))
            notes.success(request, gettext("The rule “%(name)s” is saved.") % {"name": name_in_words(saved.name)})
            return redirect("alerts")
    context = {"form": form, "rule": row}
    return render(request, "alerts/rule.html", context, status=422 if request.method == "POST" else 200)


@requires(Permission.ALARMS_WRITE, ACT)
async def rule_do(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Switch a rule on or off, delete it, or have it back."""
    row = await AlertRule.objects.filter(pk=rule_id).afirst()
    does = _DEEDS.get(request.POST.get("do", ""))
    if row is None or does is None:
        raise Http404
    act, action, said = does
    await sync_to_async(act)(row)
    note(request, action, row.name)
    notes.success(request, gettext(said) % {"name": name_in_words(row.name)})
    return redirect("alerts")


@requires(Permission.ALARMS_WRITE, FORM)
async def mute(request: HttpRequest) -> HttpResponse:
    """Hold back notices, for a while."""
    rules = [(str(row.pk), name_in_words(row.name)) for row in await sync_to_async(shown_rules)()]
    initial = {"rule": request.GET.get("rule", ""), "pattern": request.GET.get("subject", ""), "until": "1 h"}
    form = MuteForm(request.POST if request.method == "POST" else None, rules=rules, initial=initial)
    if request.method == "POST" and form.is_valid():
        known = form.cleaned_data
        of = await AlertRule.objects.filter(pk=known["rule"]).afirst() if known["rule"] else None
        who = str(request.principal.user)  # type: ignore[attr-defined]
        try:
            made = await sync_to_async(editing.mute)(of, known["pattern"], known["reason"], known["until"], who)
        except editing.NotTaken as exc:
            form.refuse(exc)
        else:
            facts = {"about": made.pattern, "until": made.until.isoformat(timespec="seconds"), "reason": made.reason}
            note(request, "alerts muted", of.name if of else "every rule", facts)
            return redirect("alerts")
    return render(request, "alerts/mute.html", {"form": form}, status=422 if request.method == "POST" else 200)


@requires(Permission.ALARMS_WRITE, ACT)
async def mute_end(request: HttpRequest, mute_id: int) -> HttpResponse:
    row = await AlertMute.objects.filter(pk=mute_id).select_related("rule").afirst()
    if row is None:
        raise Http404
    await sync_to_async(editing.end_mute)(row)
    note(request, "mute ended", row.rule.name if row.rule else "every rule", {"about": row.pattern})
    notes.success(request, gettext("The mute has ended. Alerts that are still open are sent now."))
    return redirect("alerts")


Deed = tuple[Callable[[AlertRule], None], str, str]  # what is done, what the audit log calls it, what the page says
_DEEDS: dict[str, Deed] = {
    "on": (lambda row: editing.switch_rule(row, True), "alert rule switched on", gettext_noop("“%(name)s” is on.")),
    "off": (lambda row: editing.switch_rule(row, False), "alert rule switched off", gettext_noop("“%(name)s” is off.")),
    "delete": (
        editing.delete_rule,
        "alert rule deleted",
        gettext_noop("“%(name)s” is deleted. You can restore it below for a day."),
    ),
    "restore": (editing.restore_rule, "alert rule restored", gettext_noop("“%(name)s” is back.")),
}


async def _rule(rule_id: int) -> AlertRule:
    row = await AlertRule.objects.filter(pk=rule_id, deleted_at=None).afirst()
    if row is None:
        raise Http404
    return row


def _facts(row: AlertRule) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "about": row.pattern,
        "threshold": row.threshold,
        "over at": row.clear,
        "for_s": row.for_s,
        "clear_s": row.clear_s,
        "level": row.word,
        "on": row.is_on,
    }


def _condition(row: AlertRule) -> str:
    """In words, "" where the rule's name says it already."""
    if is_named_by_its_kind(row.name, row.kind, row.threshold):
        return ""
    return KINDS[row.kind].words if row.kind in KINDS else row.kind


def _context() -> dict[str, Any]:
    mutes = mutes_in_force()
    rows = AlertRow.objects.filter(ended_at=None).select_related("rule").order_by("-level", "begun_at")[:OPEN_SHOWN]
    newest = {}
    for channel in AlertChannel.objects.all():
        newest[channel] = channel.deliveries.order_by("-pk").first()
    return {
        "open": [(with_present(row), mute_of(row, mutes) if row.rule else None, page_of_alert(row)) for row in rows],
        "rules": [(row, _condition(row), _shown(row)) for row in shown_rules()],
        "deleted": deleted_rules(),
        "channels": [(channel, editing.shown_settings(channel), last) for channel, last in newest.items()],
        "kinds": ChannelKind.choices,
        "mutes": mutes,
        "deliveries": list(AlertDelivery.objects.select_related("channel")[:DELIVERIES_SHOWN]),
        "now": timezone.now(),
    }


def _shown(row: AlertRule) -> str:
    """The threshold in words."""
    kind = KINDS.get(row.kind)
    return f"{row.threshold:g}" if kind is None else kind.shown(row.threshold)
