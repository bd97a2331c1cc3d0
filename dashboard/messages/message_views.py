"""One message: its body, who consumed it, its trace, others with its keys; and handling it again.

It stands on a page of its own or below its row of the list, by the same tabs: the address holds tab and as (the form of
the body).
"""

from __future__ import annotations

import logging
import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError, MessageNotFound
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import MessageLine, read_place
from dashboard.http.error_pages import gateway_error
from dashboard.messages.bodies.body_view import view_body
from dashboard.messages.program import python_of
from dashboard.topics.views import topic_context
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt

logger = logging.getLogger(__name__)

TABS = {
    "message": gettext_lazy("Message"),
    "consumers": gettext_lazy("Consumers"),
    "trace": gettext_lazy("Trace"),
    "related": gettext_lazy("Same keys"),
}


@requires(Permission.MESSAGES_READ)
@require_safe
async def message(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """One message whole: a page of its own, or the fragment that opens below its row."""
    try:
        found = await _found(name, place)
        context = await message_context(found, name, request.GET.get("tab"), request.GET.get("as"))
        return await _shown(request, name, context)
    except GatewayError as exc:
        return gateway_error(request, exc)


@requires(Permission.MESSAGES_READ)
@require_safe
async def body(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """The body's bytes as a file. Never shown by the browser, whatever they are."""
    try:
        found = await _found(name, place)
    except GatewayError as exc:
        return gateway_error(request, exc)
    response = HttpResponse(bytes(found.body), content_type="application/octet-stream")
    file_name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{name}-{place}")[:120]
    response["Content-Disposition"] = f'attachment; filename="{file_name}.bin"'
    return response


@requires(Permission.MESSAGES_SEND)
@require_POST
async def again(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """Send it again as a new message, or have one client handle it now; shows the tab with what came of it."""
    done: dict[str, Any] = {}
    try:
        found = await _found(name, place)
        try:
            if request.POST.get("do") == "deliver":
                group, _, client = request.POST.get("client", "").partition(" ")
                done["handled"] = await gateway().fate.deliver(found, group, client)
                done["handled_by"] = client
                _log(request, "message delivered again", "message_delivered", name, place, group=group, client=client)
            else:
                sent = await gateway().fate.resend(found)
                done |= {"resent": sent, "resent_place": _place_of(sent.queue, sent.queue_offset)}
                _log(request, "message resent", "message_resent", name, place, to=sent.queue.topic)
        except GatewayError as exc:
            done["refusal"] = str(exc)
            note_nothing(request)
        context = await message_context(found, name, "consumers", None)
        return await _shown(request, name, context | done)
    except GatewayError as exc:
        return gateway_error(request, exc)


async def message_context(found: MessageExt, topic: str, tab: str | None, form: str | None) -> dict[str, Any]:
    """What the templates of a message need, with what its tab asks of the cluster. A tab that fails says why."""
    hidden = {names.KEYS, names.TAGS, names.UNIQ_KEY}
    tab = tab if tab in TABS else "message"
    context: dict[str, Any] = {
        "topic": topic,
        "message": found,
        "line": MessageLine.of(found),
        "message_tab": tab,
        "message_tabs": TABS.items(),
        "born_host": f"{found.born_host[0]}:{found.born_host[1]}",
    }
    try:
        if tab == "consumers":
            fate = context["fate"] = await gateway().fate.deliveries(found)
            context["first_client"] = next(({"group": group, "client": client} for group, client in fate.clients), {})
        elif tab == "trace":
            context["trace"] = await gateway().fate.trace(found)
        elif tab == "related":
            others = await gateway().fate.related(await gateway().topics.get(topic), found)
            context["related"] = [MessageLine.of(other) for other in others]
        else:
            context["body"] = view_body(found, form)
            context["program"] = python_of(found)
            context["properties"] = sorted((key, value) for key, value in found.properties.items() if key not in hidden)
    except GatewayError as exc:
        context["tab_refusal"] = str(exc)
    return context


async def _found(name: str, place: str) -> MessageExt:
    found = read_place(place)
    if found is None:
        raise MessageNotFound(gettext("That is not a valid place of a message."))
    return await gateway().messages.get(name, *found)


async def _shown(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return render(request, "messages/_message.html", context)
    detail = await gateway().topics.get(name)
    return render(request, "messages/message.html", await topic_context(detail, "messages") | context)


def _place_of(queue: Any, offset: int) -> str:
    return f"{queue.broker_name}.{queue.queue_id}.{offset}"


def _log(request: HttpRequest, text: str, event: str, topic: str, place: str, **facts: str) -> None:
    logger.info(text, extra={"event": event, "topic": topic, "place": place, "username": str(request.user)} | facts)
    note(request, text, topic, {"place": place, **facts})
