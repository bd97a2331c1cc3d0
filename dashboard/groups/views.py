"""A consumer group: the whole of it, and moving it to another position."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import GroupDetail
from dashboard.forms.base import TypedNameForm
from dashboard.forms.shell_commands import move_body, move_words
from dashboard.groups.forms import ResetForm
from dashboard.groups.listing import GroupRow, metrics_of
from dashboard.groups.moving import Moved, log_move, move_all, plan_moves
from dashboard.groups.undo import last_moves
from dashboard.groups.whole import GroupView, group_row, group_view, shared_view
from dashboard.history.charts import Chart, Line, chart_of, range_of
from dashboard.history.series import GROUP_IN, GROUP_LAG, GROUP_OUT, name_for
from dashboard.http.error_pages import gateway_error
from dashboard.status.metric import shape_of


@requires(Permission.GROUPS_READ)
@require_safe
async def group(request: HttpRequest, name: str) -> HttpResponse:
    """All of it; the figures alone, which are looked at anyway, or members and queues, when the page asks again."""
    try:
        if request.headers.get("HX-Target") == "group-tiles":
            return render(request, "groups/_tiles.html", _figures(await group_row(gateway(), name)))
        if request.headers.get("HX-Target") == "group-now":
            return render(request, "groups/_now.html", _now(await shared_view(gateway(), name)))
        view = await group_view(gateway(), name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context = _now(view)
    context |= await _undo(name)
    context["charts"] = await _charts(request, name)
    return render(request, "groups/group.html", context)


async def _undo(name: str) -> dict[str, Any]:
    """What was moved last, and the query that goes back to before it."""
    moves = await last_moves(name)
    topics = [move.topic for move in moves]
    return {"last_moves": moves, "undo_query": urlencode({"topic": topics, "to": "undo"}, doseq=True)}


@requires(Permission.GROUPS_READ)
@require_safe
async def stacks(request: HttpRequest, name: str) -> HttpResponse:
    """Where the threads and listener calls of a member are now: `client` in the address says whose."""
    client = request.GET.get("client", "")
    try:
        text = await gateway().groups.stacks(name, client)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context = {
        "group": name,
        "client": client,
        "stacks": text,
        "words": ["consumers", name, client, "--stacks"],
        "query": urlencode({"client": client}),
        "at": time.time(),
    }
    return render(request, "groups/stacks.html", context)


async def _charts(request: HttpRequest, name: str) -> list[Chart]:
    """How far it was behind, and what came and went."""
    span, principal = range_of(request.GET.get("range", "")), request.principal  # type: ignore[attr-defined]
    lag = (Line(gettext("lag"), name_for(GROUP_LAG, name), "lag"),)
    rates = (
        Line(gettext("in"), name_for(GROUP_IN, name), "in"),
        Line(gettext("out"), name_for(GROUP_OUT, name), "out"),
    )
    return [
        await chart_of(gettext("Lag"), gettext("messages"), lag, span, principal),
        await chart_of(gettext("Messages per second"), gettext("msg/s"), rates, span, principal),
    ]


@requires(Permission.GROUPS_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def reset(request: HttpRequest, name: str) -> HttpResponse:
    """Which topics and where to (GET, in the address), what it would do, then the typed name (POST)."""
    try:
        detail = await gateway().groups.get(name)
        topics = detail.resettable_topics
        given = request.POST if request.method == "POST" else request.GET
        chosen = {"topic": given.getlist("topic")} if "topic" in given else {}
        form = ResetForm(given if "to" in given else None, topics=topics, initial=chosen)
        context = _context(detail) | {"form": form, "given": given, "has_topics": bool(topics)}
        if not form.is_valid():
            return render(request, "groups/reset.html", context, status=422 if form.is_bound else 200)
        plans = await plan_moves(gateway(), name, form)
        refusal = next((plan.refusal for plan in plans if plan.refusal), None)
        typed = TypedNameForm(request.POST if request.method == "POST" else None, name=name, undone="changed")
        if request.method == "POST" and refusal is None and typed.is_valid():
            asked = {key: given[key] for key in ("to", "at", "offset", "by", "source") if given.get(key)}
            for moved in await move_all(gateway(), plans, str(request.user)):
                log_move(request, moved, asked, {"username": str(request.user)})
                _tell(request, moved)
            return redirect("group", name)
    except GatewayError as exc:
        return gateway_error(request, exc)
    wanted = given.dict() | {"topics": form.cleaned_data["topic"]}
    context |= {
        "plans": plans,
        "refusal": refusal,
        "typed": typed,
        "topics": wanted["topics"],
        "skipped": sum(plan.skipped for plan in plans),
        "repeated": sum(plan.repeated for plan in plans),
        "is_online": any(plan.is_online for plan in plans),
        "same_body": move_body(wanted),
        "same_words": move_words(name, wanted),
    }
    return render(request, "groups/reset.html", context, status=422 if request.method == "POST" else 200)


def _tell(request: HttpRequest, moved: Moved) -> None:
    """What became of one topic, for the next page."""
    values = {"name": moved.plan.group, "topic": moved.plan.topic}
    if moved.trouble:
        notes.error(
            request,
            (
                gettext("The offsets of %(name)s in %(topic)s were perhaps not reset: %(trouble)s")
                % (values | {"trouble": moved.trouble})
            ),
        )
    elif moved.elsewhere:
        queues = ", ".join(f"{one.queue.broker_name} · {one.queue.queue_id}" for one in moved.elsewhere[:5])
        notes.warning(
            request,
            gettext(
                "The offsets of %(name)s in %(topic)s were reset, but %(count)s of %(all)s queues "
                "have other offsets now: %(queues)s. A consumer may have started in between."
            )
            % (values | {"count": len(moved.elsewhere), "all": len(moved.plan.moves), "queues": queues}),
        )
    else:
        told = gettext("%(name)s: offsets in %(topic)s are reset. The new offsets were read back and match.")
        if moved.was_told:
            told = gettext("%(name)s: offsets in %(topic)s are reset. Running consumers were notified.")
        notes.success(request, told % values)


def _now(view: GroupView) -> dict[str, Any]:
    """What the page asks for again by itself; its shape changes when members or queues come or go."""
    detail = view.detail
    shape = shape_of(
        *(f"{load.client_id} {load.has_answered}" for load in view.loads),
        *(f"{queue.topic} {queue.broker_name} {queue.queue_id}" for queue in detail.queues),
    )
    return _context(detail) | _figures(view.row) | {"loads": view.loads, "checks": view.checks, "now_shape": shape}


def _figures(row: GroupRow) -> dict[str, Any]:
    return {"group": row.name, "row": row, "metrics": metrics_of([row], time.time())}


def _context(detail: GroupDetail) -> dict[str, Any]:
    return {"group": detail.name, "detail": detail, "failures": detail.failures}
