"""A topic's messages: the newest, what a search finds, and a test message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster import units
from dashboard.cluster.browse import read_cursor
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_scan import ScanStep
from dashboard.cluster.message_values import read_place
from dashboard.cluster.values import TopicDetail
from dashboard.live.tail import render_lines
from dashboard.messages.export import export_response
from dashboard.messages.forms import MessageSearchForm, TestMessageForm
from dashboard.messages.message_views import message_context
from dashboard.messages.saved_searches import ASKED, asked_query, saved_searches
from dashboard.messages.trace_search import TraceStep
from dashboard.models.saved_searches import SavedSearch
from dashboard.topics.views import topic_context
from gantrymq.errors import MessageRejected
from gantrymq.message.model import Message

logger = logging.getLogger(__name__)

PAGE_MESSAGES = 25
RANGES = ("5 min", "15 min", "1 h", "6 h", "24 h", "7 d")


@requires(Permission.MESSAGES_READ)
async def messages(request: HttpRequest, name: str) -> HttpResponse:
    """The topic's first page. The address holds what is asked for (q, since, until, queue), older (a cursor), open (a
    message's place) and tail=off (a list that stands still)."""
    context = await _page_context(request, name)
    return render(request, "messages/messages.html", context)


@requires(Permission.MESSAGES_READ)
async def search(request: HttpRequest, name: str) -> HttpResponse:
    """One more step of a search, for the script: the rows, and the cursor of the step after it."""
    asked = MessageSearchForm(request.GET.dict())
    if not asked.is_valid():
        return JsonResponse({"fields": asked.problems()}, status=422)
    try:
        detail = await gateway().topics.get(name)
        older = read_cursor(request.GET.get("older", ""))
        step = await gateway().search.step(detail, asked.search(), older=older)
    except GatewayError as exc:
        return JsonResponse({"detail": str(exc)}, status=exc.status)
    return step_answer(step, render_lines(name, step.lines))


def step_answer(step: ScanStep | TraceStep, rows: Sequence[str]) -> JsonResponse:
    """For the script: the rows of one more step, and the cursor of the step after it."""
    return JsonResponse(
        {
            "rows": rows,
            "scanned": step.scanned,
            "older": step.older,
            "reached": f"{units.moment(step.reached_ms)[:19]} UTC" if step.reached_ms else "",
            "troubles": [f"{failure.what}: {failure.reason}" for failure in step.failures],
        }
    )


@requires(Permission.MESSAGES_READ)
async def export(request: HttpRequest, name: str, form: str) -> HttpResponseBase:
    """What is asked for as a file."""
    asked = MessageSearchForm(request.GET.dict())
    if not asked.is_valid():
        return redirect(f"{reverse('topic', args=[name])}?{request.GET.urlencode()}")  # the page says what is wrong
    detail = await gateway().topics.get(name)
    logger.info("messages exported", extra={"event": "messages_exported", "topic": name, "username": str(request.user)})
    return export_response(detail, asked.search(), form, read_cursor(request.GET.get("older", "")))


@requires(Permission.MESSAGES_SEND, ACT)
async def send(request: HttpRequest, name: str) -> HttpResponse:
    """Send a test message; the answer says where it went."""
    form = TestMessageForm(request.POST)
    context: dict[str, Any] = {"form": form, "topic": name}
    status = 422
    if form.is_valid():
        wanted = form.cleaned_data
        context["is_delayed"] = bool(wanted["delay_level"] or wanted["deliver"])
        try:
            to_send = Message(
                name,
                wanted["body"],
                tags=wanted["tag"] or None,
                keys=wanted["key"],
                properties=wanted["properties"],
                delay_level=wanted["delay_level"],
                **wanted["deliver"],
            )
            sent = context["sent"] = await gateway().messages.send(to_send)
            note(request, "message sent by hand", name, {"queue": sent.queue.queue_id, "offset": sent.queue_offset})
            status = 200
        except MessageRejected as exc:
            form.add_error(None, str(exc))
        except GatewayError as exc:
            form.add_error(None, str(exc))
            status = exc.status
    if request.headers.get("HX-Request"):
        return render(request, "messages/_send_form.html", context, status=status)
    if status == 200:
        return redirect("topic", name)
    detail = await gateway().topics.get(name)
    return render(
        request,
        "messages/messages.html",
        await _messages_context(detail, {}) | context | {"is_sending": True},
        status=status,
    )


async def _page_context(request: HttpRequest, name: str) -> dict[str, Any]:
    detail = await gateway().topics.get(name)
    context = await _messages_context(detail, request.GET.dict())
    context["form"] = TestMessageForm()
    context |= await _saved(request, name)
    context["is_sending"] = request.GET.get("send") == "1"
    place = read_place(request.GET.get("open", ""))
    if place is not None:
        try:
            found = await gateway().messages.get(name, *place)
            context |= await message_context(found, name, request.GET.get("tab"), request.GET.get("as"))
            context["open_place"] = request.GET["open"]
        except GatewayError as exc:
            context["open_error"] = str(exc)
    return context


async def _saved(request: HttpRequest, topic: str) -> dict[str, Any]:
    """The account's saved searches of the topic, and which of them is asked for."""
    saved, asked = await saved_searches(request.principal.user, topic), asked_query(request.GET)  # type: ignore[attr-defined]
    chosen = next((one.name for one in saved if one.query == asked), "")
    return {
        "saved": saved,
        "chosen": chosen,
        "asked_fields": [(key, request.GET.get(key, "")) for key in ASKED],
        "name_max": SavedSearch.NAME_MAX,
    }


async def _messages_context(detail: TopicDetail, wish: dict[str, str]) -> dict[str, Any]:
    asked = MessageSearchForm(wish)
    context = await topic_context(detail, "messages") | {"asked": asked, "ranges": RANGES}
    if not asked.is_valid():
        return context | {"lines": [], "is_asked": True, "took": ""}
    wanted = asked.search()
    older = wish.get("older", "")
    looked = await gateway().lookup.look(detail, wanted, older=read_cursor(older), limit=PAGE_MESSAGES)
    return context | {
        "lines": looked.lines,
        "looked": looked,
        "took": units.milliseconds(looked.took_ms),
        "queue": wanted.queue or "",
        "is_asked": not (wanted.query.is_empty and wanted.span.is_open),
        "is_newest": looked.how == "newest" and not older,
        "is_paused": wish.get("tail") == "off",
        "failures": looked.failures,
    }
