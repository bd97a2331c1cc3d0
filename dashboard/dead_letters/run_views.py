"""Runs that put dead letters back: started, watched, stopped, gone on with."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster.errors import GatewayError
from dashboard.dead_letters import runs as book
from dashboard.dead_letters.forms import PutBackForm
from dashboard.http.error_pages import gateway_error
from dashboard.models import PutBackRow, PutBackRun
from dashboard.status.metric import shape_of

logger = logging.getLogger(__name__)

RUNS_SHOWN = 5
LETTERS_SHOWN = 50


@requires(Permission.MESSAGES_READ)
@require_safe
async def runs(request: HttpRequest, name: str) -> HttpResponse:
    """The newest runs of a group: the fragment that a page asks for again while one is running."""
    return render(request, "dead_letters/_runs.html", {"group": name} | await runs_context(name))


async def runs_context(name: str) -> dict[str, Any]:
    """The newest runs, and what became of the letters of the newest one."""
    rows = [row async for row in PutBackRun.objects.filter(group=name).order_by("-started_at", "-pk")[:RUNS_SHOWN]]
    newest = PutBackRow.objects.filter(run=rows[0]).order_by("-at", "-pk") if rows else PutBackRow.objects.none()
    return {
        "runs": rows, "is_running": any(row.is_running for row in rows),
        "runs_shape": shape_of(*(f"{row.pk} {row.state}" for row in rows)),
        "run_letters": [row async for row in newest[:LETTERS_SHOWN]],
    }  # fmt: skip


@requires(Permission.MESSAGES_SEND)
@require_POST
async def start(request: HttpRequest, name: str) -> HttpResponse:
    """Begin, from where a count began; the page then shows how far it is."""
    form = PutBackForm(request.POST)
    if not form.is_valid():
        return redirect_with_problem(request, name, next(iter(form.problems().values()))[0])
    username, given = str(request.user), form.cleaned_data
    try:
        run = await book.start(name, form.wish(), older=given["older"], wanted=given["wanted"], username=username)
    except GatewayError as exc:
        return gateway_error(request, exc)
    note(request, "dead letters: run started", name, book.facts_of(run))
    facts = {"event": "put_back_started", "group": name, "run": run.pk, "username": username}
    logger.info("resend run started", extra=facts)
    return to_runs(name)


@requires(Permission.MESSAGES_SEND)
@require_POST
async def do(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """Stop it, or let it go on: the field `what` says which."""
    is_stop, username = request.POST.get("what") == "stop", str(request.user)
    try:
        run = await (book.stop(name, int(number), username) if is_stop else book.go_on(name, int(number), username))
    except GatewayError as exc:
        return gateway_error(request, exc)
    action = "dead letters: run stopped" if is_stop else "dead letters: run resumed"
    note(request, action, name, book.facts_of(run))
    logger.info(action, extra={"event": "put_back_run", "group": name, "run": run.pk, "username": username})
    return to_runs(name)


def to_runs(name: str) -> HttpResponse:
    response = redirect("dead-letters-group", name)
    response["Location"] += "#resend-runs"
    return response


def redirect_with_problem(request: HttpRequest, name: str, problem: str) -> HttpResponse:
    """Back to the page, which says why nothing was begun."""
    notes.error(request, (gettext("Nothing was resent: %(problem)s") % {"problem": problem}))
    return redirect("dead-letters-group", name)
