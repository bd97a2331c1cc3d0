"""/api/v1/topics/NAME/messages: find, get, send."""

from __future__ import annotations

import base64
import binascii
import logging

from django.http import HttpRequest
from ninja import Query, Router, Status

from dashboard.accounts.access import Permission
from dashboard.api.auth import Token
from dashboard.api.message_schemas import MessageDetailOut, MessageIn, MessageList, SentOut
from dashboard.api.problems import REFUSALS, FormProblem, caller
from dashboard.cluster.browse import read_cursor
from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import read_place
from dashboard.forms.message_search import MessageSearchForm
from dashboard.forms.messages import BODY_BYTES_MAX, TestMessageForm
from gantrymq.errors import MessageRejected
from gantrymq.message.model import Message

logger = logging.getLogger(__name__)

router = Router()
LIST_MAX = 200
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)


@router.get("/{name}/messages", response={200: MessageList} | REFUSALS, auth=READ, summary="Find messages of a topic",
            operation_id="find_messages")  # fmt: skip
async def find_messages(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="an id, a key, q3 @ 1204, tag:paid, name=value, words in the body"),
    since: str = Query("", description="2026-11-21 07:30, or 2 h for so long ago"),
    until: str = Query("", description="as since"),
    queue: str = Query("", description="only this one: broker-a.3"),
    older: str = Query("", description="of the answer before"),
    limit: int = Query(64, ge=1, le=LIST_MAX),
) -> MessageList:
    asked = MessageSearchForm({"q": q, "since": since, "until": until, "queue": queue})
    if not asked.is_valid():
        raise FormProblem(asked.problems())
    detail = await gateway().topics.get(name)
    return MessageList.of(await gateway().lookup.look(detail, asked.search(), older=read_cursor(older), limit=limit))


@router.get("/{name}/messages/{place}", response={200: MessageDetailOut} | REFUSALS, auth=READ,
            summary="One message by its place", operation_id="get_message")  # fmt: skip
async def get_message(request: HttpRequest, name: str, place: str) -> MessageDetailOut:
    found = read_place(place)
    if found is None:
        raise TopicNotFound("That is not the place of a message: write it as broker-a.0.17.")
    return MessageDetailOut.of(await gateway().messages.get(name, *found), name)


@router.post("/{name}/messages", response={201: SentOut} | REFUSALS, auth=SEND, summary="Send a message",
             operation_id="send_message")  # fmt: skip
async def send_message(request: HttpRequest, name: str, body: MessageIn) -> Status[SentOut]:
    given = body.dict(exclude={"properties", "body_base64"})
    lines = "\n".join(f"{key}={value}" for key, value in body.properties.items())
    form = TestMessageForm(given | {"properties": lines})
    if not form.is_valid():
        raise FormProblem(form.problems())
    wanted = form.cleaned_data
    content = wanted["body"] if body.body_base64 is None else _decoded(body.body_base64)
    try:
        message = Message(
            name, content, tags=wanted["tag"] or None, keys=wanted["key"], properties=wanted["properties"],
            delay_level=wanted["delay_level"], **wanted["deliver"],
        )  # fmt: skip
    except MessageRejected as exc:
        raise FormProblem({"body": [str(exc)]}) from exc
    sent = await gateway().messages.send(message)
    logger.info("message sent by hand", extra={"event": "message_sent", "topic": name} | caller(request))
    return Status(
        201,
        SentOut(
            message_id=sent.msg_id, topic=name, broker=sent.queue.broker_name, queue=sent.queue.queue_id,
            offset=sent.queue_offset,
        ),
    )  # fmt: skip


def _decoded(text: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise FormProblem({"body_base64": ["That is not base64."]}) from exc
    if len(content) > BODY_BYTES_MAX:
        raise FormProblem({"body_base64": ["A message may have 4 MiB."]})
    return content
