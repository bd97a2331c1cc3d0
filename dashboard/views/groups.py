"""Consumer groups: the list, one whole, and moving one to another position."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.access import Permission, requires
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import GroupDetail, is_system_group
from dashboard.forms.base import TypedNameForm
from dashboard.forms.groups import ResetForm
from dashboard.http.error_pages import gateway_error
from dashboard.views.paging import page_of

logger = logging.getLogger(__name__)

PAGE_GROUPS = 50


@requires(Permission.GROUPS_READ)
@require_safe
async def groups(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, show=system, page."""
    wanted = request.GET.get("q", "").strip()
    shows_system = request.GET.get("show") == "system"
    try:
        known, failures = await gateway().groups.settings()
        visible = [name for name in known if shows_system or not is_system_group(name)]
        names = [name for name in visible if wanted.lower() in name.lower()]
        page = page_of(request, names, PAGE_GROUPS)
        rows = await gateway().groups.summaries(page.rows, known)
    except GatewayError as exc:
        return gateway_error(request, exc)
    rows.sort(key=lambda row: (-(row.lag_ms or 0), -(row.lag or 0), row.name))
    context = {
        "groups": rows, "failures": failures, "q": wanted, "shows_system": shows_system,
        "page": page.number, "pages": page.pages,
        "total": len(visible), "hidden": len(known) - len(visible),
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }  # fmt: skip
    return render(request, "groups/groups.html", context)


@requires(Permission.GROUPS_READ)
@require_safe
async def group(request: HttpRequest, name: str) -> HttpResponse:
    try:
        detail = await gateway().groups.get(name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    return render(request, "groups/group.html", _context(detail))


@requires(Permission.GROUPS_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def reset(request: HttpRequest, name: str) -> HttpResponse:
    """Where to (GET, in the address), what it would do, then the typed name (POST)."""
    try:
        detail = await gateway().groups.get(name)
        topics = detail.resettable_topics
        given = request.POST if request.method == "POST" else request.GET
        form = ResetForm(given if "to" in given else None, topics=topics, initial={"topic": given.get("topic")})
        context = _context(detail) | {"form": form, "given": given, "has_topics": bool(topics)}
        if not form.is_valid():
            return render(request, "groups/reset.html", context, status=422 if form.is_bound else 200)
        plan = await gateway().groups.plan_reset(name, form.cleaned_data["topic"], *form.position())
        typed = TypedNameForm(request.POST if request.method == "POST" else None, name=name, undone="changed")
        if request.method == "POST" and plan.refusal is None and typed.is_valid():
            was_online = await gateway().groups.reset(plan)
            logger.info(
                "group moved",
                extra={
                    "event": "group_reset", "group": name, "topic": plan.topic, "username": str(request.user),
                    "skipped": plan.skipped, "repeated": plan.repeated,
                    "before": {f"{move.queue.broker_name}.{move.queue.queue_id}": move.before for move in plan.moves},
                },
            )  # fmt: skip
            how = "its running consumers were told" if was_online else "its new offsets are written"
            notes.success(request, f"{name} goes on elsewhere in {plan.topic}: {how}.")
            return redirect("group", name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context |= {"plan": plan, "typed": typed}
    return render(request, "groups/reset.html", context, status=422 if request.method == "POST" else 200)


def _context(detail: GroupDetail) -> dict[str, Any]:
    return {"group": detail.name, "detail": detail, "failures": detail.failures}
