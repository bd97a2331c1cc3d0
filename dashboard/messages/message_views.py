"""One message: its body, who consumed it, its trace, others with its keys; and handling it again.

It stands on a page of its own or below its row of the list, by the same tabs: the address holds tab and as (the form of
the body).
"""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError, MessageNotFound
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import MessageLine, read_place
from dashboard.messages.bodies.body_view import view_body
from dashboard.messages.bodies.registered import learn_schemas
from dashboard.messages.by_id import message_by_id
from dashboard.messages.trace_search import life
from dashboard.topics.views import topic_context
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt

MOMENTS = {
    names.TIMER_DELIVER_MS, names.TIMER_OUT_MS, names.TIMER_ENQUEUE_MS, names.TIMER_DEQUEUE_MS,
    names.START_DELIVER_TIME, names.FIRST_POP_TIME,
}  # fmt: skip
MS_DIGITS = 14  # of a moment within the years that clocks know
ID = re.compile(r"[^/]{1,255}")
TABS = {
    "message": gettext_lazy("Message"),
    "consumers": gettext_lazy("Consumers"),
    "trace": gettext_lazy("Trace"),
    "related": gettext_lazy("Same keys"),
}


@requires(Permission.MESSAGES_READ)
async def message(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """One message whole: a page of its own, or the fragment that opens below its row."""
    found = await _found(name, place)
    context = await message_context(found, name, request.GET.get("tab"), request.GET.get("as"))
    return await _shown(request, name, context)


@requires(Permission.MESSAGES_READ)
async def of_id(request: HttpRequest) -> HttpResponse:
    """To the address of the message whose id was typed; no id has a slash."""
    msg_id = request.GET.get("id", "").strip()
    return redirect("message", msg_id) if ID.fullmatch(msg_id) else redirect("traces")


@requires(Permission.MESSAGES_READ)
async def by_id(request: HttpRequest, msg_id: str) -> HttpResponse:
    """The message with this id, by its id alone; where it is no longer stored what clients reported of it."""
    try:
        found = await message_by_id(gateway(), msg_id, request.GET.get("topic", ""))
    except MessageNotFound:
        if await life(gateway(), msg_id) is not None:
            return redirect("trace", msg_id)
        raise
    context = await message_context(found, found.topic, request.GET.get("tab"), request.GET.get("as"))
    return await _shown(request, found.topic, context | {"at": request.path})


@requires(Permission.MESSAGES_READ)
async def body(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """The body's bytes as a file. Never shown by the browser, whatever they are."""
    found = await _found(name, place)
    response = HttpResponse(bytes(found.body), content_type="application/octet-stream")
    file_name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{name}-{place}")[:120]
    response["Content-Disposition"] = f'attachment; filename="{file_name}.bin"'
    return response


@requires(Permission.MESSAGES_SEND, ACT)
async def again(request: HttpRequest, name: str, place: str) -> HttpResponse:
    """Send it again as a new message, or have one client handle it now; shows the tab with what came of it."""
    done: dict[str, Any] = {}
    found = await _found(name, place)
    try:
        if request.POST.get("do") == "deliver":
            group, _, client = request.POST.get("client", "").partition(" ")
            done["handled"] = await gateway().fate.deliver(found, group, client)
            done["handled_by"] = client
            note(request, "message delivered again", name, {"place": place, "group": group, "client": client})
        else:
            sent = await gateway().fate.resend(found)
            done |= {"resent": sent, "resent_place": _place_of(sent.queue, sent.queue_offset)}
            note(request, "message resent", name, {"place": place, "to": sent.queue.topic})
    except GatewayError as exc:
        done["refusal"] = str(exc)
        note_nothing(request)
    context = await message_context(found, name, "consumers", None)
    return await _shown(request, name, context | done)


async def message_context(found: MessageExt, topic: str, tab: str | None, form: str | None) -> dict[str, Any]:
    """What the templates of a message need, with what its tab asks of the cluster. A tab that fails says why."""
    hidden = {names.KEYS, names.TAGS, names.UNIQ_KEY}
    tab, line = tab if tab in TABS else "message", MessageLine.of(found)
    context: dict[str, Any] = {
        "topic": topic,
        "message": found,
        "line": line,
        "at": reverse("topic-message", args=[topic, line.place]),
        "message_tab": tab,
        "message_tabs": TABS.items(),
        "born_host": f"{found.born_host[0]}:{found.born_host[1]}",
    }
    try:
        if tab == "consumers":
            fate = context["fate"] = await gateway().fate.deliveries(found)
            context["first_client"] = next(
                ({"group": group, "client_id": client} for group, client in fate.clients), {}
            )
        elif tab == "trace":
            context["trace"] = await gateway().fate.trace(found)
        elif tab == "related":
            others = await gateway().fate.related(await gateway().topics.get(topic), found)
            context["related"] = [MessageLine.of(other) for other in others]
        else:
            await learn_schemas([(found.topic, bytes(found.body))])
            context["body"] = view_body(found, form)
            context["program"] = python_of(found)
            shown = sorted((key, value) for key, value in found.properties.items() if key not in hidden)
            context["properties"] = [(key, value, _moment_ms(key, value)) for key, value in shown]
    except GatewayError as exc:
        context["tab_refusal"] = str(exc)
    return context


def _moment_ms(name: str, value: str) -> int | None:
    """The moment that a property says as a number; None for any other property."""
    is_one = name in MOMENTS and value.isascii() and value.isdecimal() and len(value) <= MS_DIGITS
    return int(value) if is_one else None


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


BODY_BYTES_MAX = 16 * 1024
_NOT_FREE = frozenset(
    {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)} | names.DELAYING
)


def python_of(message: MessageExt) -> str | None:
    """The program's text; None for a body too large to stand in one."""
    body = bytes(message.body)
    if len(body) > BODY_BYTES_MAX:
        return None
    free = {name: value for name, value in message.properties.items() if name not in _NOT_FREE}
    arguments = [repr(message.topic), repr(body)]
    arguments += [f"tags={message.tags!r}"] if message.tags else []
    arguments += [f"keys={message.keys!r}"] if message.keys else []
    arguments += [f"properties={free!r}"] if free else []
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"from gantrymq import Message\n\nmessage = Message(\n{lines})\n"
