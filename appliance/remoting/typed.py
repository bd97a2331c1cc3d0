"""Sends read straight into typed fields: the one request that comes tens of thousands of times a second.

A send's JSON header holds a dozen short texts, most of them numbers. Building a dictionary of them and picking it apart
again costs more than storing the message; msgspec reads the same bytes into a struct with real integers in a quarter of
the time. Whatever it can't read (binary headers, clients that send booleans, other codes) goes the ordinary way through
RemotingCommand, and `SendFields.of` makes the same fields of that.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from gantrymq.remoting.command import JSON, ONEWAY_FLAG, RemotingCommand

_SEND_V2 = b'{"code":310,'  # Java's fastjson and everybody else write the code first
_SEND_BATCH = b'{"code":320,'
_HEADER_LENGTH_MASK = 0xFFFFFF


class SendFields(msgspec.Struct, gc=False):
    """Ext fields of 310 and 320 (10 has the same under long names); see the spec's codes.csv."""

    topic: str = msgspec.field(name="b")
    queue_id: int = msgspec.field(name="e")
    sys_flag: int = msgspec.field(name="f")
    born_timestamp: int = msgspec.field(name="g")
    flag: int = msgspec.field(name="h")
    properties: str = msgspec.field(name="i", default="")
    reconsume_times: int = msgspec.field(name="j", default=0)
    batch: str = msgspec.field(name="m", default="false")
    default_topic: str = msgspec.field(name="c", default="")
    default_topic_queue_nums: int = msgspec.field(name="d", default=4)
    max_reconsume_times: int | None = msgspec.field(name="l", default=None)

    @classmethod
    def of(cls, fields: dict[str, str]) -> SendFields:
        """The same from ext fields as texts. Raises KeyError or ValueError for what is missing or no number."""
        if "b" in fields:
            names = _SHORT_NAMES
        else:
            names = _LONG_NAMES
        tries = fields.get(names["max_reconsume_times"])
        return cls(
            fields[names["topic"]],
            int(fields[names["queue_id"]]),
            int(fields[names["sys_flag"]]),
            int(fields[names["born_timestamp"]]),
            int(fields[names["flag"]]),
            fields.get(names["properties"], ""),
            int(fields.get(names["reconsume_times"], 0)),
            fields.get(names["batch"], "false"),
            fields.get(names["default_topic"], ""),
            int(fields.get(names["default_topic_queue_nums"], 4)),
            None if tries is None else int(tries),
        )


_LONG_NAMES = {
    "topic": "topic",
    "queue_id": "queueId",
    "sys_flag": "sysFlag",
    "born_timestamp": "bornTimestamp",
    "flag": "flag",
    "properties": "properties",
    "reconsume_times": "reconsumeTimes",
    "batch": "batch",
    "default_topic": "defaultTopic",
    "default_topic_queue_nums": "defaultTopicQueueNums",
    "max_reconsume_times": "maxReconsumeTimes",
}
_SHORT_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(SendFields)}


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
