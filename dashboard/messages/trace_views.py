"""The page Traces: what is asked for, further steps for the script, and the life of one message."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from dashboard.access.permissions import Permission, requires
from dashboard.cluster import units
from dashboard.cluster.browse import read_cursor
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.messages.forms import TraceForm
from dashboard.messages.trace_search import TraceStep, life, look
from dashboard.messages.views import step_answer


@requires(Permission.MESSAGES_READ)
async def traces(request: HttpRequest) -> HttpResponse:
    """The address holds what is asked for (q, topic, group, which, slow, since, until) and older, a cursor."""
    form = TraceForm(request.GET.dict())
    step = TraceStep()
    if form.is_valid():
        step = await look(gateway(), form.wish(), form.span(), read_cursor(request.GET.get("older", "")))
    context = {"form": form, "step": step, "took": units.milliseconds(step.took_ms)}
    context["is_narrowed"] = any(request.GET.get(name) for name in ("q", "topic", "group", "since", "until")) or (
        request.GET.get("which", "all") != "all"
    )
    return render(request, "messages/traces.html", context, status=200 if form.is_valid() else 422)


@requires(Permission.MESSAGES_READ)
async def further(request: HttpRequest) -> HttpResponse:
    """One more step, for the script: the rows, and the cursor of the step after it."""
    form = TraceForm(request.GET.dict())
    if not form.is_valid():
        return JsonResponse({"fields": form.problems()}, status=422)
    try:
        step = await look(gateway(), form.wish(), form.span(), read_cursor(request.GET.get("older", "")))
    except GatewayError as exc:
        return JsonResponse({"detail": str(exc)}, status=exc.status)
    rows = [render_to_string("messages/_trace_row.html", {"event": event}) for event in step.events]
    return step_answer(step, rows)


@requires(Permission.MESSAGES_READ)
async def one(request: HttpRequest, msg_id: str) -> HttpResponse:
    """The life of one message: on its own page while it is stored, else here."""
    found = await life(gateway(), msg_id)
    if found is None:
        raise Http404
    if found.place:
        return redirect(f"{reverse('topic-message', args=[found.topic, found.place])}?tab=trace")
    return render(request, "messages/trace.html", {"msg_id": msg_id, "trace": found})
