"""Sends read straight into typed fields: the one request that comes tens of thousands of times a second.

A send's JSON header holds a dozen short texts, most of them numbers. Building a dictionary of them and picking it apart
again costs more than storing the message; msgspec reads the same bytes into a struct with real integers in a quarter of
the time. Whatever it can't read (binary headers, clients that send booleans, other codes) goes the ordinary way through
RemotingCommand, and `SendFields.of` makes the same fields of that.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from appliance.remoting.header_fields import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, FieldError, quoted
from gantrymq.remoting.command import JSON, ONEWAY_FLAG, RemotingCommand

_SEND_V2 = b'{"code":310,'  # Java's fastjson and everybody else write the code first
_SEND_BATCH = b'{"code":320,'
_HEADER_LENGTH_MASK = 0xFFFFFF

_Int = Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)]
_Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]


class SendFields(msgspec.Struct, gc=False):
    """Ext fields of 310 and 320 (10 has the same under long names); see the spec's codes.csv."""

    topic: str = msgspec.field(name="b")
    queue_id: _Int = msgspec.field(name="e")
    sys_flag: _Int = msgspec.field(name="f")
    born_timestamp: _Long = msgspec.field(name="g")
    flag: _Int = msgspec.field(name="h")
    properties: str = msgspec.field(name="i", default="")
    reconsume_times: _Int = msgspec.field(name="j", default=0)
    batch: str = msgspec.field(name="m", default="false")
    default_topic: str = msgspec.field(name="c", default="")
    default_topic_queue_nums: _Int = msgspec.field(name="d", default=4)
    max_reconsume_times: _Int | None = msgspec.field(name="l", default=None)

    @classmethod
    def of(cls, fields: dict[str, str]) -> SendFields:
        """The same from ext fields as texts. Raises FieldError, which names what is missing or no number."""
        is_short = "b" in fields or "e" in fields
        texts = fields if is_short else {short: fields[name] for name, short in _SHORT_OF.items() if name in fields}
        try:
            return _convert(texts, SendFields, strict=False)
        except msgspec.ValidationError as exc:
            raise _field_error(texts, is_short, exc) from exc


_SHORT_OF = {
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "maxReconsumeTimes": "l",
    "batch": "m",
}
_LONG_OF = {short: name for name, short in _SHORT_OF.items()}
_REQUIRED = ("b", "e", "f", "g", "h")


def _field_error(texts: dict[str, str], is_short: bool, exc: msgspec.ValidationError) -> FieldError:
    """What msgspec says is about `$.e`; what the client wrote may have been queueId."""
    absent = [short for short in _REQUIRED if short not in texts]
    what, _, place = str(exc).partition(" - at `$.")
    short = absent[0] if absent else place.rstrip("`")
    name = short if is_short else _LONG_OF.get(short, short)
    if absent:
        return FieldError(f"header field {name} is missing")
    return FieldError(f"header field {name}={quoted(texts.get(short, ''))}: {what}")


class SendRequest(msgspec.Struct, gc=False):
    """A send as it arrived. Behaves as a RemotingCommand where lanes and answers look at it."""

    fields: SendFields = msgspec.field(name="extFields")
    code: int
    opaque: int
    flag: int
    version: int = 0
    body: bytes = b""  # always set after decoding: no header can bring its own

    serialize_type: ClassVar[int] = JSON

    @property
    def is_oneway(self) -> bool:
        return self.flag & ONEWAY_FLAG != 0

    @property
    def ext_fields(self) -> dict[str, str]:
        """The fields as texts, for messages about them."""
        return {name: str(value) for name, value in msgspec.to_builtins(self.fields).items()}

    def reply(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """The answer to this request."""
        request = RemotingCommand(self.code, {}, b"", None, self.opaque, self.flag, "", self.version, JSON)
        return request.reply(code, remark, ext_fields, body)


class SignedSend(SendRequest, gc=False):
    """A send with all its ext fields as they were written, for a signature has to be checked over them."""

    texts: dict[str, str] = {}  # always set after decoding

    @property
    def ext_fields(self) -> dict[str, str]:
        return self.texts


class _RawSend(msgspec.Struct, gc=False):
    """A send's header with the ext fields as plain texts."""

    fields: dict[str, str] = msgspec.field(name="extFields")
    code: int
    opaque: int
    flag: int
    version: int = 0


_decode_send = msgspec.json.Decoder(SendRequest, strict=False).decode
_decode_raw_send = msgspec.json.Decoder(_RawSend, strict=True).decode
_convert = msgspec.convert


def decode_request(buffer: bytes, start: int, end: int) -> RemotingCommand | SendRequest:
    """Read the frame whose header word stands at `start` and whose last byte before `end`. Raises FrameError."""
    header_start = start + 4
    if buffer.startswith((_SEND_V2, _SEND_BATCH), header_start) and not buffer[start]:
        header_end = header_start + (int.from_bytes(buffer[start:header_start]) & _HEADER_LENGTH_MASK)
        if header_end <= end:
            try:
                request = _decode_send(buffer[header_start:header_end])
            except (msgspec.ValidationError, msgspec.DecodeError):
                return RemotingCommand.decode_at(buffer, start, end)  # unusual, not necessarily wrong
            request.body = buffer[header_end:end]
            return request
    return RemotingCommand.decode_at(buffer, start, end)


def decode_request_with_fields(buffer: bytes, start: int, end: int) -> RemotingCommand | SendRequest:
    """As decode_request, but a send is a SignedSend: both its ways of reading the fields see the same texts."""
    header_start = start + 4
    if buffer.startswith((_SEND_V2, _SEND_BATCH), header_start) and not buffer[start]:
        header_end = header_start + (int.from_bytes(buffer[start:header_start]) & _HEADER_LENGTH_MASK)
        if header_end <= end:
            try:
                raw = _decode_raw_send(buffer[header_start:header_end])
                fields = _convert(raw.fields, SendFields, strict=False)
            except (msgspec.ValidationError, msgspec.DecodeError):
                return RemotingCommand.decode_at(buffer, start, end)  # unusual, not necessarily wrong
            body = buffer[header_end:end]
            return SignedSend(fields, raw.code, raw.opaque, raw.flag, raw.version, body, raw.fields)
    return RemotingCommand.decode_at(buffer, start, end)
