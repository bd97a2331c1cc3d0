"""What `gantry admin` prints beside tables: times, amounts, messages; or JSON."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any

import orjson

from appliance.cli.tables import facts
from gantrymq.byte_size import readable
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.remoting.json_body import Body

BODY_CHARS_MAX = 100_000


def when(timestamp_ms: int | None) -> str | None:
    """A time of this machine's zone; None for what never was."""
    if not timestamp_ms or timestamp_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)


def ago(timestamp_ms: int | None) -> str | None:
    """How long ago, in its largest unit."""
    if not timestamp_ms or timestamp_ms < 0:
        return None
    return f"{duration(time.time() * 1000 - timestamp_ms)} ago"


def duration(milliseconds: float | None) -> str | None:
    """90000 is "1 min", 350 is "350 ms"."""
    if milliseconds is None:
        return None
    if milliseconds < 1000:
        return f"{max(int(milliseconds), 0)} ms"
    seconds = int(milliseconds / 1000)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def body_text(body: bytes, *, limit: int | None = None) -> str:
    """A body as text; what is no text as hexadecimal. Cut to `limit` characters."""
    try:
        text = body.decode()
        if not all(each.isprintable() or each in "\n\t" for each in text):
            raise ValueError
    except ValueError:
        text = "0x" + body.hex()
    if limit is not None and len(text) > limit:
        text = text[:limit] + "…"
    return text


def message_lines(message: MessageExt) -> list[str]:
    """A message for people: everything about it, then its body."""
    shown = facts(
        [
            ("topic", message.topic),
            ("queue", f"{message.broker_name or '?'} {message.queue_id}, offset {message.queue_offset}"),
            ("id", message.msg_id),
            ("offset id", message.offset_msg_id),
            ("tag", message.tags),
            ("keys", " ".join(message.keys) or None),
            ("born", f"{when(message.born_timestamp)} at {message.born_host[0]}"),
            ("stored", f"{when(message.store_timestamp)} at {message.store_host[0]}:{message.store_host[1]}"),
            ("tried before", message.reconsume_times),
            ("properties", ", ".join(f"{name}={value}" for name, value in sorted(message.properties.items()))),
            ("body", readable(len(message.body))),
        ]
    )
    return [*shown, "", *body_text(message.body, limit=BODY_CHARS_MAX).splitlines()]


def message_json(message: MessageExt) -> dict[str, Any]:
    """A message for --json: body as text where it is UTF-8, else bodyHex."""
    try:
        body: dict[str, str] = {"body": message.body.decode()}
    except UnicodeDecodeError:
        body = {"bodyHex": message.body.hex()}
    return {
        "topic": message.topic,
        "broker": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "tags": message.tags,
        "keys": message.keys,
        "bornTimestamp": message.born_timestamp,
        "bornHost": f"{message.born_host[0]}:{message.born_host[1]}",
        "storeTimestamp": message.store_timestamp,
        "storeHost": f"{message.store_host[0]}:{message.store_host[1]}",
        "reconsumeTimes": message.reconsume_times,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "storeSize": message.store_size,
        "properties": message.properties,
        **body,
    }


def plain(value: Any) -> Any:
    """A value as JSON can hold it: bodies and dataclasses as objects, queues as topic, broker and id."""
    if isinstance(value, MessageExt):
        return message_json(value)
    if isinstance(value, MessageQueue):
        return {"topic": value.topic, "broker": value.broker_name, "queueId": value.queue_id}
    if isinstance(value, Body):
        return plain(value.to_dict())
    if isinstance(value, Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(item.name): plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, BaseException):
        return str(value)
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _key(key: Any) -> str:
    if isinstance(key, MessageQueue):
        return f"{key.topic}/{key.broker_name}/{key.queue_id}"
    return str(key)


def print_document(document: Any) -> None:
    sys.stdout.write(orjson.dumps(plain(document), option=orjson.OPT_INDENT_2).decode() + "\n")


def print_json_line(document: Any) -> None:
    sys.stdout.write(orjson.dumps(plain(document)).decode() + "\n")
    sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
