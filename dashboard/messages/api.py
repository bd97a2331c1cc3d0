"""/api/v1/topics/NAME/messages: find, get, what became of one, send, send again."""

from __future__ import annotations

import base64
import binascii
import logging
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Status

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note
from dashboard.cluster.browse import read_cursor
from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import read_place
from dashboard.messages.export import export_response
from dashboard.messages.forms import BODY_BYTES_MAX, TestMessageForm
from dashboard.messages.schemas import (
    DeliverIn,
    FateOut,
    HandledOut,
    MessageDetailOut,
    MessageIn,
    MessageList,
    SentOut,
    TraceEventList,
    TraceOut,
)
from dashboard.messages.search_form import MessageSearchForm
from dashboard.messages.trace_form import TraceForm
from dashboard.messages.trace_search import look
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, caller
from gantrymq.errors import MessageRejected
from gantrymq.message.model import Message, MessageExt

logger = logging.getLogger(__name__)

router = Router()
told = Router()
LIST_MAX = 200
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)


@router.get("/{name}/messages", response={200: MessageList} | REFUSALS, auth=READ, summary="Find messages of a topic",
            operation_id="find_messages")  # fmt: skip
async def find_messages(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="an id, a key, q3 @ 1204, tag:paid, name=value, words in the body"),
    since: str = Query("", description="2026-11-21 07:30, or 2 h for two hours ago"),
    until: str = Query("", description="as since"),
    queue: str = Query("", description="only this one: broker-a.3"),
    older: str = Query("", description="from the previous answer"),
    limit: int = Query(64, ge=1, le=LIST_MAX),
) -> MessageList:
    asked = MessageSearchForm({"q": q, "since": since, "until": until, "queue": queue})
    if not asked.is_valid():
        raise FormProblem(asked.problems())
    detail = await gateway().topics.get(name)
    return MessageList.of_look(
        await gateway().lookup.look(detail, asked.search(), older=read_cursor(older), limit=limit)
    )


@router.get("/{name}/messages.{form}", response={200: None} | REFUSALS, auth=READ,
            summary="Messages as a file of JSON lines (jsonl) or CSV", operation_id="export_messages")  # fmt: skip
async def export_messages(
    request: HttpRequest,
    name: str,
    form: Literal["jsonl", "csv"],
    q: str = "",
    since: str = "",
    until: str = "",
    queue: str = "",
    older: str = Query("", description="of the last line of a truncated file"),
) -> Any:
    asked = MessageSearchForm({"q": q, "since": since, "until": until, "queue": queue})
    if not asked.is_valid():
        raise FormProblem(asked.problems())
    detail = await gateway().topics.get(name)
    facts = {"event": "messages_exported", "topic": name}
    logger.info("messages exported", extra=facts | caller(request))
    return export_response(detail, asked.search(), form, read_cursor(older))


@router.get("/{name}/messages/{place}", response={200: MessageDetailOut} | REFUSALS, auth=READ,
            summary="One message by queue and offset", operation_id="get_message")  # fmt: skip
async def get_message(request: HttpRequest, name: str, place: str) -> MessageDetailOut:
    return MessageDetailOut.of(await _found(name, place), name)


@router.get("/{name}/messages/{place}/groups", response={200: FateOut} | REFUSALS, auth=READ,
            summary="Which groups consumed a message", operation_id="get_message_groups")  # fmt: skip
async def get_message_groups(request: HttpRequest, name: str, place: str) -> FateOut:
    return FateOut.of(await gateway().fate.deliveries(await _found(name, place)))


@router.get("/{name}/messages/{place}/trace", response={200: TraceOut} | REFUSALS, auth=READ,
            summary="A message's trace, as clients reported it", operation_id="get_message_trace")  # fmt: skip
async def get_message_trace(request: HttpRequest, name: str, place: str) -> TraceOut:
    return TraceOut.of(await gateway().fate.trace(await _found(name, place)))


@told.get("", response={200: TraceEventList} | REFUSALS, auth=READ, summary="Find traces that clients reported",
          operation_id="find_traces")  # fmt: skip
async def find_traces(
    request: HttpRequest,
    q: str = Query("", description="a message's id, or one of its keys"),
    topic: str = "",
    group: str = "",
    which: Literal["all", "failed", "slow"] = "all",
    slow: str = Query("", description="threshold for slow: 1 s, 200 ms"),
    since: str = Query("", description="2026-11-21 07:30, or 2 h for two hours ago"),
    until: str = Query("", description="as since"),
    older: str = Query("", description="from the previous answer"),
) -> TraceEventList:
    asked = {"q": q, "topic": topic, "group": group, "which": which, "slow": slow, "since": since, "until": until}
    form = TraceForm(asked)
    if not form.is_valid():
        raise FormProblem(form.problems())
    return TraceEventList.of_step(await look(gateway(), form.wish(), form.span(), read_cursor(older)))


@router.post("/{name}/messages/{place}/resend", response={201: SentOut} | REFUSALS, auth=SEND,
             summary="Send a copy as a new message", operation_id="resend_message")  # fmt: skip
async def resend_message(request: HttpRequest, name: str, place: str) -> Status[SentOut]:
    sent = await gateway().fate.resend(await _found(name, place))
    _log(request, "message resent", "message_resent", name, place=place)
    return Status(201, SentOut.of_result(sent))


@router.post("/{name}/messages/{place}/deliver", response={200: HandledOut} | REFUSALS, auth=SEND,
             summary="Deliver a message again to one client", operation_id="deliver_message")  # fmt: skip
async def deliver_message(request: HttpRequest, name: str, place: str, body: DeliverIn) -> HandledOut:
    handled = await gateway().fate.deliver(await _found(name, place), body.group, body.client)
    _log(request, "message delivered again", "message_delivered", name, place=place, group=body.group)
    return HandledOut(outcome=handled.outcome, took_ms=handled.took_ms, remark=handled.remark)


@router.post("/{name}/messages", response={201: SentOut} | REFUSALS, auth=SEND, summary="Send a message",
             operation_id="send_message")  # fmt: skip
async def send_message(request: HttpRequest, name: str, body: MessageIn) -> Status[SentOut]:
    given = body.dict(include={"tag", "delay_level", "deliver"})
    form = TestMessageForm(given | {"key": _key_text(body.keys), "properties": _property_lines(body.properties)})
    if not form.is_valid():
        raise FormProblem({"keys" if name == "key" else name: texts for name, texts in form.problems().items()})
    wanted = form.cleaned_data
    content = _content(body)
    try:
        message = Message(
            name, content, tags=wanted["tag"] or None, keys=wanted["key"], properties=wanted["properties"],
            delay_level=wanted["delay_level"], **wanted["deliver"],
        )  # fmt: skip
    except MessageRejected as exc:
        raise FormProblem({"body": [str(exc)]}) from exc
    sent = await gateway().messages.send(message)
    _log(request, "message sent by hand", "message_sent", name)
    return Status(201, SentOut.of_result(sent))


async def _found(name: str, place: str) -> MessageExt:
    found = read_place(place)
    if found is None:
        raise TopicNotFound("That is not the place of a message: write it as broker-a.0.17.")
    return await gateway().messages.get(name, *found)


def _log(request: HttpRequest, text: str, event: str, topic: str, **facts: str) -> None:
    logger.info(text, extra={"event": event, "topic": topic} | facts | caller(request))
    note(request, text, topic, facts)


def _content(given: MessageIn) -> bytes:
    """The body's bytes, none of them changed: a form's line ends are a browser's, those of a program are meant."""
    field = "body" if given.body_base64 is None else "body_base64"
    if field == "body_base64" and given.body is not None:
        raise FormProblem({"body": ["Give body or body_base64, not both."]})
    try:
        content = (given.body or "").encode() if field == "body" else base64.b64decode(
            given.body_base64 or "", validate=True
        )  # fmt: skip
    except (binascii.Error, ValueError) as exc:  # a text may hold halves of characters
        raise FormProblem({field: ["That is not a text." if field == "body" else "That is not base64."]}) from exc
    if len(content) > BODY_BYTES_MAX:
        raise FormProblem({field: ["A message can have up to 4 MiB."]})
    return content


def _key_text(keys: list[str]) -> str:
    """The keys as a message has them: separated by spaces."""
    if any(not key or len(key.split()) != 1 or key != key.strip() for key in keys):
        raise FormProblem({"keys": ["A key has no spaces, and at least one character."]})
    return " ".join(keys)


def _property_lines(properties: dict[str, str]) -> str:
    """As the form takes them, a line each; what would not come out of that as it went in is refused."""
    for name, value in properties.items():
        is_line = len(f"{name}={value}".splitlines()) == 1 and "=" not in name
        if not is_line or name != name.strip() or value != value.strip():
            sentence = "Line ends, spaces at the ends, and = in a name can't be part of a property."
            raise FormProblem({"properties": [sentence]})
    return "\n".join(f"{name}={value}" for name, value in properties.items())
