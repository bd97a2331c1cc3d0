"""/api/v1/topics/NAME/messages, /messages/ID: find, get, what became of one, send, send again."""

from __future__ import annotations

import base64
import binascii
import logging
from typing import Literal

from django.http import HttpRequest, HttpResponseBase
from ninja import Query

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.browse import CURSOR_CHARS_MAX
from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import read_place
from dashboard.forms.fields import DURATION_MS_MAX
from dashboard.messages.by_id import message_by_id
from dashboard.messages.export import export_response
from dashboard.messages.forms import BODY_BYTES_MAX, MessageSearchForm, SaveSearchForm, TestMessageForm, TraceForm
from dashboard.messages.saved_searches import keep_search, saved_searches
from dashboard.messages.schemas import (
    DeliverIn,
    DeliveryList,
    HandledOut,
    MessageDetailOut,
    MessageIn,
    MessageList,
    SavedSearchIn,
    SavedSearchList,
    SavedSearchOut,
    SentOut,
    TraceEventList,
    TraceOut,
)
from dashboard.messages.trace_search import look
from dashboard.models.management import User
from dashboard.models.saved_searches import SavedSearch
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Since, Until, place_of
from dashboard.rest.refusals import FormProblem, NotPossible, caller, checked
from dashboard.rest.routes import Routes
from dashboard.rest.values import Key, text_of
from gantrymq.errors import MessageRejected
from gantrymq.message.model import Message, MessageExt

logger = logging.getLogger(__name__)

router = Routes(asks_cluster=True)
told = Routes(asks_cluster=True)
by_id = Routes(asks_cluster=True)
ROWS_MAX = 200  # of an answer: each is looked at whole
DECODE = Query(False, description="the body's value too: JSON, MessagePack, or by its topic's schema")
READ = Token(Permission.MESSAGES_READ)
SEND = Token(Permission.MESSAGES_SEND)
KEEP = Token(Permission.SEARCHES_WRITE)


@router.get("/{name}/messages", auth=READ, summary="Find messages of a topic")
async def find_messages(
    request: HttpRequest,
    name: str,
    q: str = Query("", description="an id, a key, q3 @ 1204, tag:paid, name=value, words in the body"),
    since: Since = None,
    until: Until = None,
    queue: str = Query("", description="only this one: broker-a.3"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> MessageList:
    search = MessageSearchForm({"q": q, "since": text_of(since), "until": text_of(until), "queue": queue})
    asked, older = checked(search).search(), place_of(cursor)
    detail = await gateway().topics.get(name)
    return MessageList.of_look(await gateway().lookup.look(detail, asked, older=older, limit=min(limit, ROWS_MAX)))


@router.get("/{name}/searches", auth=READ, summary="Your saved searches of a topic's messages")
async def list_saved_searches(request: HttpRequest, name: str) -> SavedSearchList:
    return SavedSearchList.whole(map(SavedSearchOut.of_row, await saved_searches(_user(request), name)))


@router.post("/{name}/searches", auth=KEEP, response=(201, 409), summary="Save a search of a topic's messages")
async def save_search(request: HttpRequest, name: str, body: SavedSearchIn) -> SavedSearchOut:
    note_nothing(request)
    await gateway().topics.get(name)
    checked(MessageSearchForm(body.dict()))
    form = checked(SaveSearchForm(body.dict()))
    return SavedSearchOut.of_row(
        await keep_search(_user(request), name, form.cleaned_data["name"], body.dict(exclude={"name"}))
    )


@router.delete("/{name}/searches/{int:search_id}", auth=KEEP, summary="Delete a saved search of yours")
async def delete_saved_search(request: HttpRequest, name: str, search_id: Key) -> None:
    note_nothing(request)
    if not (await SavedSearch.objects.filter(user=_user(request), topic=name, pk=search_id).adelete())[0]:
        raise NotPossible("There is no such search.", status=404)


def _user(request: HttpRequest) -> User:
    user: User = request.auth.user  # type: ignore[attr-defined]
    return user


@router.get("/{name}/messages.{form}", auth=READ, summary="Messages as a file of JSON lines (jsonl) or CSV")
async def export_messages(
    request: HttpRequest,
    name: str,
    form: Literal["jsonl", "csv"],
    q: str = "",
    since: Since = None,
    until: Until = None,
    queue: str = "",
    cursor: str = Query("", max_length=CURSOR_CHARS_MAX, description="of the last line of a truncated file"),
) -> HttpResponseBase:
    search = MessageSearchForm({"q": q, "since": text_of(since), "until": text_of(until), "queue": queue})
    asked, older = checked(search).search(), place_of(cursor)
    detail = await gateway().topics.get(name)
    facts = {"event": "messages_exported", "topic": name, "username": caller(request)}
    logger.info("messages exported", extra=facts)
    return export_response(detail, asked, form, older)


@router.get("/{name}/messages/{place}", auth=READ, summary="One message by queue and offset")
async def get_message(request: HttpRequest, name: str, place: str, decode: bool = DECODE) -> MessageDetailOut:
    return await MessageDetailOut.of(await _found(name, place), name, decode=decode)


@router.get("/{name}/messages/{place}/groups", auth=READ, summary="Which groups consumed a message")
async def get_message_groups(request: HttpRequest, name: str, place: str) -> DeliveryList:
    return DeliveryList.of(await gateway().fate.deliveries(await _found(name, place)))


@router.get("/{name}/messages/{place}/trace", auth=READ, summary="A message's trace, as clients reported it")
async def get_message_trace(request: HttpRequest, name: str, place: str) -> TraceOut:
    return TraceOut.of(await gateway().fate.trace(await _found(name, place)))


@by_id.get("/{message_id}", auth=READ, summary="One message by its id alone")
async def get_message_by_id(
    request: HttpRequest,
    message_id: str,
    topic: str = Query("", description="look in this topic only; empty: where traces and the newest topics have it"),
    decode: bool = DECODE,
) -> MessageDetailOut:
    found = await message_by_id(gateway(), message_id, topic)
    return await MessageDetailOut.of(found, found.topic, decode=decode)


@told.get("", auth=READ, summary="Find traces that clients reported")
async def find_traces(
    request: HttpRequest,
    q: str = Query("", description="a message's id, or one of its keys"),
    topic: str = "",
    group: str = "",
    which: Literal["all", "failed", "slow"] = "all",
    slow_ms: int | None = Query(None, ge=1, le=DURATION_MS_MAX, description="threshold for slow"),
    since: Since = None,
    until: Until = None,
    cursor: Cursor = "",
) -> TraceEventList:
    asked = {"q": q, "topic": topic, "group": group, "which": which, "slow": f"{slow_ms} ms" if slow_ms else ""}
    form = checked(TraceForm(asked | {"since": text_of(since), "until": text_of(until)}), slow="slow_ms")
    return TraceEventList.of_step(await look(gateway(), form.wish(), form.span(), place_of(cursor)))


@router.post("/{name}/messages/{place}/resend", auth=SEND, response=(201, 409), summary="Send a copy as a new message")
async def resend_message(request: HttpRequest, name: str, place: str) -> SentOut:
    sent = await gateway().fate.resend(await _found(name, place))
    note(request, "message resent", name, {"place": place})
    return SentOut.of_result(sent)


@router.post(
    "/{name}/messages/{place}/deliver", auth=SEND, response=409, summary="Deliver a message again to one client"
)
async def deliver_message(request: HttpRequest, name: str, place: str, body: DeliverIn) -> HandledOut:
    handled = await gateway().fate.deliver(await _found(name, place), body.group, body.client_id)
    note(request, "message delivered again", name, {"place": place, "group": body.group})
    return HandledOut(outcome=handled.outcome, took_ms=handled.took_ms, detail=handled.remark)


@router.post("/{name}/messages", auth=SEND, response=(201, 409), summary="Send a message")
async def send_message(request: HttpRequest, name: str, body: MessageIn) -> SentOut:
    given = body.dict(include={"tag", "delay_level"}) | {"deliver": _delivery(body)}
    form = TestMessageForm(given | {"key": _key_text(body.keys), "properties": _property_lines(body.properties)})
    late = "deliver_at" if body.deliver_at else "deliver_in_ms"
    wanted = checked(form, key="keys", deliver=late).cleaned_data
    content = _content(body)
    try:
        message = Message(
            name, content, tags=wanted["tag"] or None, keys=wanted["key"], properties=wanted["properties"],
            delay_level=wanted["delay_level"], **wanted["deliver"],
        )  # fmt: skip
    except MessageRejected as exc:
        raise FormProblem({"body": [str(exc)]}) from exc
    sent = await gateway().messages.send(message)
    note(request, "message sent by hand", name)
    return SentOut.of_result(sent)


async def _found(name: str, place: str) -> MessageExt:
    found = read_place(place)
    if found is None:
        raise TopicNotFound("That is not the place of a message: write it as broker-a.0.17.")
    return await gateway().messages.get(name, *found)


def _delivery(given: MessageIn) -> str:
    """When, as the form takes it."""
    if given.deliver_at is not None and given.deliver_in_ms is not None:
        raise FormProblem({"deliver_in_ms": ["Give deliver_at or deliver_in_ms, not both."]})
    return f"{given.deliver_in_ms} ms" if given.deliver_in_ms else text_of(given.deliver_at)


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
