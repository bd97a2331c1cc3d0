"""Which broker of a name is the master: the members, what a change would mean, and the change."""

from __future__ import annotations

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access.permissions import Permission, requires
from dashboard.brokers.master_change import change_master, choose_log
from dashboard.brokers.succession_form import SettlementForm, SuccessionForm
from dashboard.brokers.tabs import Tabs
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.succession import Settlement, Succession
from dashboard.forms.base import TypedNameForm
from dashboard.http.error_pages import gateway_error


@requires(Permission.CONFIG_WRITE)
@require_POST
async def settle(request: HttpRequest, name: str) -> HttpResponse:
    """Choose the log that counts, with the typed name; what is wrong is said on the page that shows the choice."""
    try:
        found = await gateway().succession.settlement(name)
        form = SettlementForm(request.POST, masters=[member.address for member in found.masters])
        typed = TypedNameForm(request.POST, name=name, undone="changed")
        if request.POST.get("seen") != found.seen:
            notes.error(request, gettext("It has changed since this page was shown. Nothing was changed; look again."))
        elif form.is_valid() and typed.is_valid():
            keep, accepts = form.cleaned_data["keep"], form.cleaned_data["accept_unknown"]
            await choose_log(gateway(), request, name, keep, str(request.user), accepts_unknown=accepts)
            notes.success(request, gettext("The log of %(address)s counts.") % {"address": keep})
        else:
            problems = [*form.problems().values(), *typed.problems().values()]
            notes.error(request, " ".join(text for texts in problems for text in texts))
    except GatewayError as exc:
        notes.error(request, str(exc))
    return redirect("broker-succession", name)


@requires(Permission.CONFIG_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def succession(request: HttpRequest, name: str) -> HttpResponse:
    """Who is there and who would take over (GET, in the address), then the typed name (POST)."""
    given = request.POST if request.method == "POST" else request.GET
    try:
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
    except GatewayError as exc:
        return gateway_error(request, exc)
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
