"""Bodies decoded by schemas of the registry: which one a body needs, and the value by what was learned of it."""

from __future__ import annotations

import base64
import binascii
import functools
import json
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from dashboard.messages.bodies.avro import AvroDecoder
from dashboard.messages.bodies.protobuf import ProtobufDecoder, indexes_of
from dashboard.messages.bodies.registry import Registered, by_number, by_subject, registry
from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError
from dashboard.messages.bodies.schemas import BODY_BYTES_MAX, FRAME_BYTES, KINDS, subject_of
from dashboard.messages.bodies.unpack import unpack

JSON_SCHEMA = "json-schema"  # the form of a body whose schema says what JSON there is
FORMS = (*KINDS, JSON_SCHEMA)


class RegisteredSchema:
    """One body's schema in the registry, by its path there."""

    def __init__(self, path: str, *, framed: bool) -> None:
        self.path = path
        self._framed = framed
        self.kind = ""

    def decode(self, body: bytes) -> tuple[Any, str]:
        """The value, and a remark or "". Raises NotOfSchema, SchemaError."""
        asked = registry()
        assert asked is not None
        found = asked.known(self.path)
        content = body[FRAME_BYTES:] if self._framed else body
        self.kind = JSON_SCHEMA if found.kind == "json" else found.kind
        try:
            return _decoded(found, content, framed=self._framed)
        except NotOfSchema as exc:
            told = {"file": found.name, "why": str(exc)}
            raise NotOfSchema(gettext("The body does not fit the schema %(file)s: %(why)s.") % told) from exc


def registered_schema_of(topic: str, body: bytes) -> RegisteredSchema | None:
    """By the topic's subject, if topics.toml names one, else by the number in front of the body. Raises SchemaError."""
    if registry() is None or len(body) > BODY_BYTES_MAX:
        return None
    if subject := subject_of(topic):
        return RegisteredSchema(by_subject(subject), framed=False)
    if len(body) <= FRAME_BYTES or body[0]:
        return None
    return RegisteredSchema(by_number(int.from_bytes(body[1:FRAME_BYTES], "big")), framed=True)


async def learn_schemas(bodies: Iterable[tuple[str, bytes]]) -> None:
    """Before bodies of these topics are decoded: ask the registry for what they need."""
    asked = registry()
    if asked is None:
        return
    paths = []
    for topic, stored in bodies:
        packed = unpack(stored)
        try:
            schema = registered_schema_of(topic, stored if packed is None else packed[1])
        except SchemaError:  # said where the body is decoded
            continue
        if schema is not None:
            paths.append(schema.path)
    await asked.learn(paths)


def _decoded(found: Registered, body: bytes, *, framed: bool) -> tuple[Any, str]:
    if found.kind == "json":
        try:
            return json.loads(body), ""
        except (ValueError, RecursionError) as exc:
            raise NotOfSchema(str(exc)[:200]) from exc
    if found.kind == "avro":
        return _avro(found).decode(body, framed=framed)
    if found.kind != "protobuf":
        raise SchemaError(gettext("%(file)s is of an unknown kind: %(kind)s.")
                          % {"file": found.name, "kind": found.kind})  # fmt: skip
    indexes, end = indexes_of(body) if framed else ((0,), 0)
    return _protobuf(found, indexes).decode(body[end:], framed=False)


@functools.lru_cache(maxsize=64)
def _avro(found: Registered) -> AvroDecoder:
    return AvroDecoder(found.name, found.text.encode(), tuple(text.encode() for _, text in found.parts))


@functools.lru_cache(maxsize=64)
def _protobuf(found: Registered, indexes: tuple[int, ...]) -> ProtobufDecoder:
    files = descriptor_pb2.FileDescriptorSet()
    try:
        for name, text in (*found.parts, ("", found.text)):
            file = files.file.add()
            file.ParseFromString(base64.b64decode(text, validate=True))
            file.name = name or file.name or "schema.proto"
    except (DecodeError, binascii.Error, ValueError) as exc:
        told = {"file": found.name, "why": str(exc)[:200]}
        raise SchemaError(gettext("%(file)s can't be used: %(why)s.") % told) from exc
    return ProtobufDecoder(found.name, files.SerializeToString(), _message_at(found, files.file[-1], indexes))


def _message_at(found: Registered, file: descriptor_pb2.FileDescriptorProto, indexes: tuple[int, ...]) -> str:
    """The whole name of the message that the numbers lead to: of the file, then of those within it."""
    names, messages = [file.package] if file.package else [], file.message_type
    for index in indexes:
        if not 0 <= index < len(messages):
            raise NotOfSchema(gettext("it does not begin with a schema's number"))
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(names)
