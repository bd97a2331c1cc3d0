"""Protobuf: a message of a set of descriptors, which protoc writes of .proto files with all that they import."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, unknown_fields
from google.protobuf.message import DecodeError, Message

from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError

INDEXES_MAX = 16
VARINT_BYTES_MAX = 5


class ProtobufDecoder:
    """One message type."""

    kind = "protobuf"

    def __init__(self, file: str, content: bytes, message: str) -> None:
        self.file = file
        pool = descriptor_pool.DescriptorPool()
        try:
            for one in descriptor_pb2.FileDescriptorSet.FromString(content).file:
                pool.Add(one)
        except DecodeError as exc:
            raise SchemaError(gettext("%(file)s is not a set of descriptors: make it with protoc --descriptor_set_out.")
                              % {"file": file}) from exc  # fmt: skip
        except (TypeError, ValueError) as exc:
            raise SchemaError(gettext("%(file)s can't be used: %(why)s. Make it with protoc --include_imports.")
                              % {"file": file, "why": str(exc)[:200]}) from exc  # fmt: skip
        try:
            self._class = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
        except KeyError:
            raise SchemaError(gettext("%(file)s has no message “%(message)s”.")
                              % {"file": file, "message": message}) from None  # fmt: skip
        self._pool = pool

    def decode(self, body: bytes, *, framed: bool) -> tuple[Any, str]:
        """The parser has its own limit for depth (100). Raises NotOfSchema."""
        found = self._class()
        try:
            found.ParseFromString(body[indexes_of(body)[1] :] if framed else body)
            value = json_format.MessageToDict(found, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except (DecodeError, json_format.Error, ValueError, TypeError, KeyError, RecursionError) as exc:
            raise NotOfSchema(str(exc)[:200] or type(exc).__name__) from exc
        return value, _remark(found)


def _remark(found: Message) -> str:
    """A body of another type is often read without an error, as fields that are not known."""
    unknown = len(unknown_fields.UnknownFieldSet(found))
    return gettext("Fields that are not in the schema: %(unknown)s") % {"unknown": unknown} if unknown else ""


def indexes_of(body: bytes) -> tuple[tuple[int, ...], int]:
    """The numbers that say which of the file's messages it is, and where it begins behind them. Raises NotOfSchema."""
    count, end = _varint(body, 0)
    count >>= 1  # zigzag
    if count > INDEXES_MAX:
        raise NotOfSchema(gettext("it does not begin with a schema's number"))
    indexes = []
    for _ in range(count):
        index, end = _varint(body, end)
        indexes.append(index >> 1)
    return tuple(indexes) or (0,), end


def _varint(body: bytes, begin: int) -> tuple[int, int]:
    value = 0
    for number, byte in enumerate(body[begin : begin + VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * number)
        if not byte & 0x80:
            return value, begin + number + 1
    raise NotOfSchema(gettext("it ends too early"))
