"""All brokers; a broker's pages: how it is now and was, what was done to it; its settings; who is its master."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.audit.notes import note, note_nothing, tell_trouble
from dashboard.brokers.changes import changes_of, entries_of, newest_by_key
from dashboard.brokers.failover_views import failover_context
from dashboard.brokers.machine import machine_checks
from dashboard.brokers.master_change import change_master, choose_log
from dashboard.brokers.settings_sections import in_sections, is_changed
from dashboard.brokers.succession_form import SettlementForm, SuccessionForm
from dashboard.brokers.tabs import Tabs
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.settings_table import BrokerSetting, broker_settings, read_changes
from dashboard.cluster.succession import Settlement, Succession
from dashboard.forms.base import TypedNameForm
from dashboard.history.charts import Chart, Line, Range, chart_of, range_of
from dashboard.history.series import BROKER_DISK, BROKER_IN, BROKER_OUT, BROKER_SILENT, name_for
from dashboard.history.slave_charts import slave_charts
from dashboard.language.sentences import gettext, ngettext
from dashboard.status.board import BrokerState, board
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge

ENTRIES_SHOWN = 10


@requires(Permission.CLUSTER_READ)
async def brokers(request: HttpRequest) -> HttpResponse:
    """Live by the Overview's channel, as the page of each is."""
    snapshot = board.snapshot
    context = {
        "snapshot": snapshot,
        "metrics": overview_metrics(snapshot, judge(snapshot)) if snapshot is not None else None,
        "namesrv_address": settings.APPLIANCE.namesrv_address,
        "machine": await sync_to_async(machine_checks)(settings.APPLIANCE),
    }
    return render(request, "brokers/brokers.html", context)


@requires(Permission.CLUSTER_READ)
async def broker(request: HttpRequest, name: str) -> HttpResponse:
    """As it was looked at last, live by the Overview's channel; a broker that is gone stays while it is known."""
    snapshot, principal = board.snapshot, request.principal  # type: ignore[attr-defined]
    state = next((one for one in snapshot.brokers if one.name == name), None) if snapshot is not None else None
    if state is None:
        found = await gateway().brokers.get(name)
        state = BrokerState(name, found.address, None, gettext("not checked yet"), broker_id=found.broker_id)
    span = range_of(request.GET.get("range", ""))
    may_see_changes = principal.may(Permission.AUDIT_READ)
    context: dict[str, Any] = {
        "broker": state,
        "tabs": Tabs(state.name, state.broker_name, "broker"),
        "snapshot": snapshot,
        "metrics": overview_metrics(snapshot, judge(snapshot)) if snapshot is not None else None,
        "charts": await _charts(name, span, principal),
        "slave_charts": await slave_charts(state, snapshot, span, principal),
        "entries": await entries_of(name, ENTRIES_SHOWN) if may_see_changes else None,
    }
    return render(request, "brokers/broker.html", context)


async def _charts(name: str, span: Range, principal: Any) -> list[Chart]:
    rates = (
        Line(gettext("in"), name_for(BROKER_IN, name), "in"),
        Line(gettext("out"), name_for(BROKER_OUT, name), "out"),
    )
    disk = (Line(gettext("used %"), name_for(BROKER_DISK, name), "in", 100.0),)
    silent = (Line(gettext("silent"), name_for(BROKER_SILENT, name), "out"),)
    return [
        await chart_of(gettext("Messages per second"), "msg/s", rates, span, principal),
        await chart_of(gettext("Disk"), "%", disk, span, principal),
        await chart_of(gettext("Time without an answer"), "s", silent, span, principal),
    ]


@requires(Permission.CONFIG_WRITE)
async def all_settings(request: HttpRequest) -> HttpResponse:
    """Each broker, with its settings that are not the default."""
    brokers = (await gateway().brokers.list()).brokers
    answers, failures = await gateway().calls.ask_brokers(
        brokers, lambda admin, broker: admin.brokers.config_with_origins(broker.address)
    )
    rows = [(broker, [row for row in broker_settings(*told) if is_changed(row)]) for broker, told in answers]
    return render(request, "brokers/settings.html", {"rows": rows, "failures": failures})


FIELD, WAS = "set.", "was."  # what the form calls a setting's new value, and the one it was shown with


@requires(Permission.CONFIG_WRITE, FORM)
async def config(request: HttpRequest, name: str) -> HttpResponse:
    """GET: the settings. POST: the difference; with do=save it is put in force."""
    broker = await gateway().brokers.get(name)
    rows = await gateway().brokers.settings(broker)
    changes_before = newest_by_key(await changes_of(name))
    tabs = Tabs(name, broker.name, "config")
    context: dict[str, Any] = {"broker": broker, "tabs": tabs, "changed_by": changes_before}
    if request.method != "POST":
        return render(request, "brokers/config.html", context | _table(request, rows, {}, {}))
    wanted = {key.removeprefix(FIELD): str(text) for key, text in request.POST.items() if key.startswith(FIELD)}
    if reverted := request.POST.get("revert", ""):
        wanted = {row.key: row.default for row in rows if row.key == reverted}
    changes, problems = read_changes(rows, wanted)
    problems |= _overtaken(request, rows, {change.key for change in changes})
    if problems:
        context |= {"lead": gettext("Nothing was changed.")}
        return render(request, "brokers/config.html", context | _table(request, rows, wanted, problems), status=422)
    if not changes or request.POST.get("do") != "save":
        note_nothing(request)
    if not changes:
        notes.success(request, gettext("Nothing differs, so nothing was changed."))
        return redirect("broker-config", name)
    if request.POST.get("do") != "save":
        values = {change.key: change.after for change in changes}
        context |= {
            "same_body": {"changes": values},
            "same_words": [f"{key}={text}" for key, text in values.items()],
        }
        return render(request, "brokers/config_diff.html", context | {"changes": changes})
    remark = await gateway().brokers.change_settings(broker, changes)
    changed = {change.key: {"before": change.before, "after": change.after} for change in changes}
    note(request, "broker settings changed", name, changed)
    count = ngettext("%(count)s setting changed", "%(count)s settings changed", len(changes)) % {"count": len(changes)}
    if remark:
        said = gettext("%(settings)s; the broker's remark: %(remark)s") % {"settings": count, "remark": remark}
    else:
        said = gettext("%(settings)s and saved in its file.") % {"settings": count}
    notes.success(request, said)
    return redirect("broker-config", name)


def _overtaken(request: HttpRequest, rows: Sequence[BrokerSetting], keys: set[str]) -> dict[str, str]:
    """Settings that changed elsewhere since this form was shown."""
    shown = {key.removeprefix(WAS): text for key, text in request.POST.items() if key.startswith(WAS)}
    return {
        row.key: gettext("It has since been changed to %(value)s.") % {"value": row.value}
        for row in rows
        if row.key in keys and shown.get(row.key, row.value) != row.value
    }


def _table(
    request: HttpRequest, rows: Sequence[BrokerSetting], wanted: dict[str, str], problems: dict[str, str]
) -> dict[str, Any]:
    part = request.GET.get("q", "").strip()
    words = part.lower()
    differing = request.GET.get("show") == "differing"
    seen = [
        row
        for row in rows
        if row.key in problems
        or ((words in row.key.lower() or words in row.doc.lower()) and (not differing or is_changed(row)))
    ]
    known = {row.key for row in rows}
    return {
        "q": part,
        "differing": differing,
        "count_differing": sum(is_changed(row) for row in rows),
        "sections": in_sections(seen),
        "wanted": wanted,
        "problems": problems,
        "is_narrowed": bool(part or differing or problems),
        "odd": sorted(key for key in problems if key not in known)[:5],
    }


@requires(Permission.CONFIG_WRITE, ACT)
async def settle(request: HttpRequest, name: str) -> HttpResponse:
    """Choose the log that counts, with the typed name; what is wrong is said on the page that shows the choice."""
    try:
        found = await gateway().succession.settlement(name)
        form = SettlementForm(request.POST, masters=[member.address for member in found.masters])
        typed = TypedNameForm(request.POST, name=name, undone="changed")
        if request.POST.get("seen") != found.seen:
            note_nothing(request)
            notes.error(request, gettext("It has changed since this page was shown. Nothing was changed; look again."))
        elif form.is_valid() and typed.is_valid():
            keep, accepts = form.cleaned_data["keep"], form.cleaned_data["accept_unknown"]
            await choose_log(gateway(), request, name, keep, str(request.user), accepts_unknown=accepts)
            notes.success(request, gettext("The log of %(address)s counts.") % {"address": keep})
        else:
            problems = [*form.problems().values(), *typed.problems().values()]
            note_nothing(request)
            notes.error(request, " ".join(text for texts in problems for text in texts))
    except GatewayError as exc:
        tell_trouble(request, str(exc))
    return redirect("broker-succession", name)


@requires(Permission.CONFIG_WRITE, FORM)
async def succession(request: HttpRequest, name: str) -> HttpResponse:
    """Who is there and who would take over (GET, in the address), then the typed name (POST)."""
    given = request.POST if request.method == "POST" else request.GET
    plan = await gateway().succession.plan(name)
    slaves = [member.address for member in plan.slaves]
    form = SuccessionForm(given, slaves=slaves, has_master=plan.master is not None)
    is_meant = form.is_valid()
    if is_meant and (form.address or form.accepted_loss or form.accepts_unknown):
        plan = await gateway().succession.plan(
            name, form.address, accepted_loss=form.accepted_loss, accepts_unknown=form.accepts_unknown
        )
    typed = TypedNameForm(request.POST if request.method == "POST" else None, name=name, undone="changed")
    is_as_seen = request.method != "POST" or given.get("seen") == plan.seen
    if request.method == "POST" and is_meant and plan.is_possible and is_as_seen and typed.is_valid():
        changed = await change_master(gateway(), request, plan, str(request.user))
        text = gettext("%(address)s is the master of %(broker)s in epoch %(epoch)s, after %(seconds)s s.")
        facts = {"address": changed.address, "broker": changed.broker_name, "epoch": changed.epoch}
        notes.success(request, text % (facts | {"seconds": f"{changed.seconds:.1f}"}))
        return redirect("broker-succession", name)
    settlement = Settlement(name, plan.members)
    masters = [member.address for member in settlement.masters]
    context = {
        "name": name,
        "plan": plan,
        "settlement": settlement,
        "settlement_form": SettlementForm(masters=masters) if settlement.is_needed else None,
        "settlement_words": ["settle", name, "--keep", *masters[:1]],
        "form": form,
        "typed": typed,
        "is_meant": is_meant,
        "is_as_seen": is_as_seen,
        "accept_loss": given.get("accept_loss", ""),
        "accept_unknown": "on" if plan.accepts_unknown else "",
        "words": _words(plan, form),
        "tabs": Tabs(name, name, "succession"),
        **await failover_context(name),
    }
    status = 422 if request.method == "POST" or not is_meant else 200
    return render(request, "brokers/succession.html", context, status=status)


def _words(plan: Succession, form: SuccessionForm) -> list[str]:
    """The same from a shell: of `gantry admin`."""
    words = ["switchover" if plan.master else "promote", plan.broker_name]
    if plan.promotion is not None:
        words += ["--to", plan.promotion.slave.address]
    if form.is_valid() and form.accepted_loss:
        words += ["--accept-loss", str(form.accepted_loss)]
    if plan.accepts_unknown:
        words += ["--accept-unknown"]
    return words
