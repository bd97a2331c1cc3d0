"""Consumer groups: the list, which shows what the book has; the whole of one; moving, pausing and deleting it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings as django_settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.cluster.group_values import GroupDetail, InFlight
from dashboard.forms.base import TypedNameForm
from dashboard.forms.rest_bodies import reset_body, values_of
from dashboard.forms.shell_commands import reset_words
from dashboard.groups.changes import (
    MODE_CHANGED,
    consuming_facts,
    dead_letters_of,
    delete_group,
    set_consuming,
    set_mode,
)
from dashboard.groups.forms import ModeForm, ResetForm
from dashboard.groups.group_cache import group_book
from dashboard.groups.listing import COLUMNS, SORTS, GroupRow, metrics_of, rows_of, sorted_rows
from dashboard.groups.moving import Moved, last_moves, log_move, move_all, plan_moves
from dashboard.groups.selection import GroupSelection, select
from dashboard.groups.whole import GroupView, group_row, group_view, shared_view
from dashboard.history.charts import Chart, Line, chart_of, range_of
from dashboard.history.series import GROUP_IN, GROUP_LAG, GROUP_OUT, name_for
from dashboard.http.paging import head_cell, page_of
from dashboard.latency.card import latency_context
from dashboard.limits.names import NameLimit, current
from dashboard.status.board import board
from dashboard.status.metric import shape_of
from gantrymq.remoting.pop_bodies import LeasedMessage

LEASES_SHOWN = 25  # of those in flight, on the page


@requires(Permission.GROUPS_READ)
async def group(request: HttpRequest, name: str) -> HttpResponse:
    """All of it; the figures alone, which are looked at anyway, or members and queues, when the page asks again."""
    if request.headers.get("HX-Target") == "group-tiles":
        return render(request, "groups/_tiles.html", _figures(await group_row(gateway(), name)))
    if request.headers.get("HX-Target") == "group-now":
        return render(request, "groups/_now.html", _now(await shared_view(gateway(), name)))
    view = await group_view(gateway(), name)
    context = _now(view)
    context |= await _undo(name)
    context["charts"] = await _charts(request, name)
    context |= await latency_context(request, group=name)
    return render(request, "groups/group.html", context)


async def _undo(name: str) -> dict[str, Any]:
    """What was moved last, and the query that goes back to before it."""
    moves = await last_moves(name)
    topics = [move.topic for move in moves]
    return {"last_moves": moves, "undo_query": urlencode({"topic": topics, "to": "undo"}, doseq=True)}


@requires(Permission.GROUPS_READ)
async def stacks(request: HttpRequest, name: str) -> HttpResponse:
    """Where the threads and listener calls of a member are now: `client` in the address says whose."""
    client = request.GET.get("client", "")
    text = await gateway().groups.stacks(name, client)
    context = {
        "group": name,
        "client": client,
        "stacks": text,
        "words": ["consumers", name, client, "--stacks"],
        "query": urlencode({"client_id": client}),
        "at": time.time(),
    }
    return render(request, "groups/stacks.html", context)


async def _charts(request: HttpRequest, name: str) -> list[Chart]:
    """How far it was behind, and what came and went."""
    span, principal = range_of(request.GET.get("range", "")), request.principal  # type: ignore[attr-defined]
    lag = (Line(gettext("lag"), name_for(GROUP_LAG, name), "lag"),)
    rates = (
        Line(gettext("in"), name_for(GROUP_IN, name), "in"),
        Line(gettext("consumed"), name_for(GROUP_OUT, name), "out"),
    )
    return [
        await chart_of(gettext("Lag"), gettext("messages"), lag, span, principal),
        await chart_of(gettext("Messages per second"), gettext("msg/s"), rates, span, principal),
    ]


@requires(Permission.GROUPS_WRITE, FORM)
async def reset(request: HttpRequest, name: str) -> HttpResponse:
    """Which topics and where to (GET, in the address), what it would do, then the typed name (POST)."""
    detail = await gateway().groups.get(name)
    if detail.no_reset:
        raise NotAllowed(detail.no_reset)
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
            log_move(request, moved, asked)
            _tell(request, moved)
        return redirect("group", name)
    wanted = given.dict() | {"topics": form.cleaned_data["topic"]}
    context |= {
        "plans": plans,
        "refusal": refusal,
        "typed": typed,
        "topics": wanted["topics"],
        "skipped": sum(plan.skipped for plan in plans),
        "repeated": sum(plan.repeated for plan in plans),
        "is_online": any(plan.is_online for plan in plans),
        "same_body": reset_body(wanted),
        "same_words": reset_words(name, wanted),
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
        *(f"{queue.topic} {queue.broker_name} {queue.queue_id} {bool(queue.in_flight)}" for queue in detail.queues),
        *(f"{one.message.topic} {one.place} {one.message.popped_at} {one.message.client}" for one in detail.leases),
        str(detail.is_popping),
    )
    ids = {load.client_id for load in view.loads} | {queue.owner for queue in detail.queues if queue.owner}
    ids |= {client.client_id for client in detail.clients} | {
        one for party in detail.parties for one in party.client_ids
    }
    now = _context(detail) | _figures(view.row) | {"loads": view.loads, "checks": view.checks, "now_shape": shape}
    return now | {"client_ids": sorted(ids), "leases": [ShownLease.of(one) for one in detail.leases[:LEASES_SHOWN]]}


@dataclass(frozen=True, slots=True)
class ShownLease:
    """A message in flight as of now: how long a member has it, and how long until others get it."""

    message: LeasedMessage
    broker_name: str
    place: str
    since_ms: int
    left_ms: int

    @classmethod
    def of(cls, one: InFlight) -> ShownLease:
        now_ms, message = int(time.time() * 1000), one.message
        since, left = max(now_ms - message.popped_at, 0), max(message.due_at - now_ms, 0)
        return cls(message, one.broker_name, one.place, since, left)


def _figures(row: GroupRow) -> dict[str, Any]:
    return {"group": row.name, "row": row, "metrics": metrics_of([row], time.time())}


def _context(detail: GroupDetail) -> dict[str, Any]:
    return {"group": detail.name, "detail": detail, "failures": detail.failures}


PAGE_GROUPS = 50
FRAGMENTS_MAX = 32
FRAGMENT_SHARED_S = 1.0  # below what a tab waits before it asks again

# The list as it was drawn last, by address, what an account may see, and language: tabs that ask for the same see it.
_fragments: dict[tuple[str, NameLimit, str], tuple[float, asyncio.Task[bytes]]] = {}


@requires(Permission.GROUPS_READ)
async def groups(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, show=system, sort, down, page."""
    if request.headers.get("HX-Target") == "group-list":
        return HttpResponse(await _shared_fragment(request))
    return render(request, "groups/groups.html", await _list_context(request))


async def _shared_fragment(request: HttpRequest) -> bytes:
    """The list alone, drawn once a second for all who ask with this address and may see the same."""

    async def draw() -> bytes:
        return render(request, "groups/_list.html", await _list_context(request)).content

    wanted, loop = (request.get_full_path(), current(), get_language()), asyncio.get_running_loop()
    now = loop.time()
    drawn = _fragments.get(wanted)
    if drawn is None or now - drawn[0] >= FRAGMENT_SHARED_S or drawn[1].get_loop() is not loop:
        if len(_fragments) >= FRAGMENTS_MAX:
            _fragments.clear()
        drawn = _fragments[wanted] = now, loop.create_task(draw(), name="group list")
    return await asyncio.shield(drawn[1])


async def _list_context(request: HttpRequest) -> dict[str, Any]:
    sort = request.GET.get("sort", "behind")
    sort = sort if sort in SORTS else "behind"
    down = request.GET.get("down", "1" if "sort" not in request.GET else "") == "1"
    chosen = await select(
        gateway(), GroupSelection(request.GET.get("q", "").strip(), request.GET.get("show") == "system")
    )
    stored = board.snapshot.stored if board.snapshot is not None else None
    in_order = sorted_rows(rows_of(chosen.groups, stored), sort, down=down)
    page = page_of(request, in_order, PAGE_GROUPS)
    shown = await group_book.rows(gateway(), [row.name for row in page.rows])
    rows = sorted_rows(rows_of(shown, stored), sort, down=down)  # some may have been looked at for the first time
    return {
        "rows": rows, "metrics": metrics_of(rows, time.time()),
        "columns": [_column(key, gettext(label), sort, down) for key, (label, _) in COLUMNS.items()],
        "name_column": _column("name", gettext("Consumer group"), sort, down),
        "state_column": _column("state", "", sort, down),
        "failures": chosen.failures, "q": chosen.wanted.text, "shows_system": chosen.wanted.shows_system,
        "page": page.number, "pages": page.pages, "total": chosen.visible, "hidden": chosen.hidden,
        "unseen": sum(not group.at for group in chosen.groups), "found": len(chosen.groups),
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }  # fmt: skip


def _column(key: str, label: str, sort: str, down: bool) -> dict[str, Any]:
    return head_cell(key, label, sort, down, rises=key in ("name", "state", "zero"))


@requires(Permission.GROUPS_WRITE, ACT)
async def consuming(request: HttpRequest, name: str) -> HttpResponse:
    """Off, or on again: the field `is_on` says which."""
    is_on = request.POST.get("is_on") == "true"
    changed = await set_consuming(gateway(), name, is_on=is_on)
    action = "group resumed" if is_on else "group paused"
    note(request, action, name, consuming_facts(changed, is_on=is_on))
    notes.success(
        request,
        (gettext("%(name)s gets messages again.") % {"name": name})
        if is_on
        else (gettext("%(name)s is paused: new messages wait for it.") % {"name": name}),
    )
    return redirect("group", name)


@requires(Permission.GROUPS_WRITE, FORM)
async def mode(request: HttpRequest, name: str) -> HttpResponse:
    """How it consumes each topic now, and the form that changes it."""
    detail = await gateway().groups.get(name)
    given = request.POST if request.method == "POST" else None
    form = ModeForm(given, modes=detail.modes, topics=detail.resettable_topics)
    if form.is_valid():
        wanted = form.cleaned_data
        brokers = await set_mode(gateway(), name, wanted["topic"], wanted["mode"])
        note(request, MODE_CHANGED, name, wanted | {"brokers": ", ".join(brokers)})
        if wanted["mode"] == "POP":
            told = gettext("%(name)s consumes %(topic)s by POP.")
        else:
            told = gettext("%(name)s consumes %(topic)s by pulling.")
        notes.success(request, told % {"name": name, "topic": wanted["topic"]})
        return redirect("group", name)
    context = _context(detail) | {"form": form, "same": values_of(form), "modes": sorted(detail.modes.items())}
    return render(request, "groups/mode.html", context, status=422 if form.is_bound else 200)


@requires(Permission.GROUPS_WRITE, FORM)
async def delete(request: HttpRequest, name: str) -> HttpResponse:
    """What would be lost, in numbers; then the typed name."""
    detail = await gateway().groups.get(name)
    form = TypedNameForm(request.POST if request.method == "POST" else None, name=name)
    if request.method == "POST" and form.is_valid():
        brokers = await delete_group(gateway(), name)
        note(request, "group deleted", name, {"brokers": ", ".join(brokers)})
        notes.success(request, (gettext("Group %(name)s deleted.") % {"name": name}))
        return redirect("groups")
    dead = await dead_letters_of(gateway(), name)
    context: dict[str, Any] = {"group": name, "detail": detail, "dead": dead, "form": form}
    return render(request, "groups/delete.html", context, status=422 if request.method == "POST" else 200)
