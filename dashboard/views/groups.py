"""A consumer group: the whole of it, and moving it to another position."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.access import Permission, requires
from dashboard.audit.notes import note
from dashboard.bodies.commands import move_body, move_words
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import GroupDetail
from dashboard.forms.base import TypedNameForm
from dashboard.forms.groups import ResetForm
from dashboard.groups.listing import GroupRow, metrics_of
from dashboard.groups.moving import move, plan_move
from dashboard.groups.undo import last_move
from dashboard.groups.whole import group_row, group_view
from dashboard.history.charts import Chart, Line, chart_of, range_of
from dashboard.history.series import GROUP_IN, GROUP_LAG, GROUP_OUT, name_for
from dashboard.http.error_pages import gateway_error

logger = logging.getLogger(__name__)


@requires(Permission.GROUPS_READ)
@require_safe
async def group(request: HttpRequest, name: str) -> HttpResponse:
    """All of it; the figures alone, which are looked at anyway, when the page asks for them again."""
    try:
        if request.headers.get("HX-Target") == "group-tiles":
            return render(request, "groups/_tiles.html", _figures(await group_row(gateway(), name)))
        view = await group_view(gateway(), name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context = _context(view.detail) | _figures(view.row) | {"loads": view.loads, "causes": view.causes}
    context["last_move"] = await last_move(name)
    context["charts"] = await _charts(request, name)
    return render(request, "groups/group.html", context)


async def _charts(request: HttpRequest, name: str) -> list[Chart]:
    """How far it was behind, and what came and went."""
    span, principal = range_of(request.GET.get("range", "")), request.principal  # type: ignore[attr-defined]
    lag = (Line("lag", name_for(GROUP_LAG, name), "lag"),)
    rates = (Line("in", name_for(GROUP_IN, name), "in"), Line("out", name_for(GROUP_OUT, name), "out"))
    return [
        await chart_of("Lag", "messages", lag, span, principal),
        await chart_of("Messages per second", "msg/s", rates, span, principal),
    ]


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
        plan = await plan_move(gateway(), name, form)
        typed = TypedNameForm(request.POST if request.method == "POST" else None, name=name, undone="changed")
        if request.method == "POST" and plan.refusal is None and typed.is_valid():
            was_told, elsewhere = await move(gateway(), plan, str(request.user))
            logger.info(
                "group moved",
                extra={
                    "event": "group_reset", "group": name, "topic": plan.topic, "username": str(request.user),
                    "skipped": plan.skipped, "repeated": plan.repeated,
                    "before": {f"{one.queue.broker_name}.{one.queue.queue_id}": one.before for one in plan.moves},
                },
            )  # fmt: skip
            told = {key: value for key, value in given.items() if key not in ("csrfmiddlewaretoken", "typed_name")}
            note(request, "group moved", name, {**told, "skipped": plan.skipped, "repeated": plan.repeated})
            if elsewhere:
                queues = ", ".join(f"{one.queue.broker_name} · {one.queue.queue_id}" for one in elsewhere[:5])
                notes.warning(
                    request,
                    f"{name} was moved in {plan.topic}, but {len(elsewhere)} of {len(plan.moves)} queues stand "
                    f"elsewhere now: {queues}. A consumer may have started meanwhile.",
                )
            else:
                how = "its running consumers were told" if was_told else "checked, its new offsets are written"
                notes.success(request, f"{name} goes on elsewhere in {plan.topic}: {how}.")
            return redirect("group", name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context |= {"plan": plan, "typed": typed, "same_body": move_body(given), "same_words": move_words(name, given)}
    return render(request, "groups/reset.html", context, status=422 if request.method == "POST" else 200)


def _figures(row: GroupRow) -> dict[str, Any]:
    return {"group": row.name, "row": row, "metrics": metrics_of([row], time.time())}


def _context(detail: GroupDetail) -> dict[str, Any]:
    return {"group": detail.name, "detail": detail, "failures": detail.failures}
