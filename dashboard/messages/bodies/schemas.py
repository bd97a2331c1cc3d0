"""Bodies decoded by a schema that the operator gave for the topic: Avro and Protobuf, from files of one folder.

`topics.toml` there names the schema of each topic:

    [orders]
    avro = "order.avsc"

    [payments]
    protobuf = "shop.desc"        # protoc --include_imports --descriptor_set_out=shop.desc shop.proto
    message = "shop.v1.Payment"

    framed = true in either: five bytes of a schema registry's client are in front of each body
    subject = "orders-value": its newest schema in the registry, for bodies without a number (registered.py)

The files are read again when they change. The schema is trusted as far as the operator is; the body is not.
"""

from __future__ import annotations

import functools
import time
import tomllib
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.utils.translation import gettext

from dashboard.messages.bodies.avro import AvroDecoder
from dashboard.messages.bodies.protobuf import ProtobufDecoder
from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError

INDEX = "topics.toml"
FILE_BYTES_MAX = 1 << 20
BODY_BYTES_MAX = 256 * 1024
FRAME_BYTES = 5  # a zero, and the schema's number
LOOK_AGAIN_S = 2.0
KINDS = ("avro", "protobuf")


class Decoder(Protocol):
    """kind: avro or protobuf; file: where its schema is."""

    kind: str
    file: str

    def decode(self, body: bytes, *, framed: bool) -> tuple[Any, str]:
        """The value as JSON knows values, and a remark or "". Raises NotOfSchema."""


class TopicSchema:
    """What decodes one topic's bodies."""

    def __init__(self, decoder: Decoder, *, framed: bool) -> None:
        self._decoder = decoder
        self._framed = framed
        self.kind = decoder.kind

    def decode(self, body: bytes) -> tuple[Any, str]:
        """The value, and a remark or "". Raises NotOfSchema."""
        if len(body) > BODY_BYTES_MAX:
            limit = BODY_BYTES_MAX >> 10
            raise NotOfSchema(gettext("Only bodies up to %(limit)s KiB are decoded by a schema.") % {"limit": limit})
        if self._framed and (len(body) < FRAME_BYTES or body[0]):
            raise self._misfit(gettext("it does not begin with a schema's number"))
        try:
            return self._decoder.decode(body[FRAME_BYTES:] if self._framed else body, framed=self._framed)
        except NotOfSchema as exc:
            raise self._misfit(str(exc)) from exc

    def _misfit(self, why: str) -> NotOfSchema:
        told = {"file": self._decoder.file, "why": why}
        return NotOfSchema(gettext("The body does not fit the schema %(file)s: %(why)s.") % told)


def subject_of(topic: str) -> str:
    """Of the topic's newest schema in the registry, where topics.toml has `subject = "…"`. Raises SchemaError."""
    folder = settings.APPLIANCE.body_schemas
    return _subject_of(folder, topic, int(time.monotonic() / LOOK_AGAIN_S)) if folder else ""


@functools.lru_cache(maxsize=64)
def _subject_of(folder: str, topic: str, turn: int) -> str:
    return str(_index(Path(folder)).get(topic, {}).get("subject", ""))


def schema_of(topic: str) -> TopicSchema | None:
    """None: the topic has none. Raises SchemaError."""
    folder = settings.APPLIANCE.body_schemas
    return _schema_of(folder, topic, int(time.monotonic() / LOOK_AGAIN_S)) if folder else None


@functools.lru_cache(maxsize=64)
def _schema_of(folder: str, topic: str, turn: int) -> TopicSchema | None:
    """turn: a search asks for each message, and files are not looked at for each."""
    entry = _index(Path(folder)).get(topic)
    if entry is None or "subject" in entry:
        return None
    kind = next((kind for kind in KINDS if kind in entry), None)
    if kind is None or not isinstance(entry[kind], str) or not isinstance(entry.get("framed", False), bool):
        raise SchemaError(gettext("%(file)s: [%(topic)s] needs avro or protobuf with a file's name.")
                          % {"file": INDEX, "topic": topic})  # fmt: skip
    path = Path(folder) / entry[kind]
    if path.name != entry[kind]:
        raise SchemaError(gettext("%(file)s: name a file of the same folder, not a path.") % {"file": INDEX})
    return TopicSchema(_decoder(kind, path, str(entry.get("message", "")), _stamp(path)),
                       framed=entry.get("framed", False))  # fmt: skip


@functools.lru_cache(maxsize=64)
def _decoder(kind: str, path: Path, message: str, stamp: tuple[int, int]) -> Decoder:
    content = _content(path)
    return AvroDecoder(path.name, content) if kind == "avro" else ProtobufDecoder(path.name, content, message)


def _index(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / INDEX
    try:
        found = tomllib.loads(_content(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SchemaError(f"{INDEX}: {exc}") from exc
    return {topic: entry for topic, entry in found.items() if isinstance(entry, dict)}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    return status.st_mtime_ns, status.st_size


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    if len(content) > FILE_BYTES_MAX:
        limit = FILE_BYTES_MAX >> 20
        raise SchemaError(gettext("%(file)s is larger than %(limit)s MiB.") % {"file": path.name, "limit": limit})
    return content


def _unreadable(path: Path, exc: OSError) -> SchemaError:
    why = exc.strerror or type(exc).__name__
    return SchemaError(gettext("The schema file %(file)s can't be read: %(why)s.") % {"file": path.name, "why": why})
