"""Frames to requests: the headers of sends and pulls, the hot path, are decoded straight into typed fields.

msgspec decodes a header into a struct in a quarter of the time that a dictionary takes. Headers that it can't decode
(binary ones, clients that send booleans, other codes) become a RemotingCommand, from which `SendFields.of` and
`PullFields.of` make the same fields.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from appliance.remoting.pull_request import PullRequest
from appliance.remoting.send_request import SendFields, SendRequest, SignedSend
from appliance.remoting.typed_request import Long
from gantrymq.remoting.command import RemotingCommand

_SEND_V2 = b'{"code":310,'  # Java's fastjson and all known clients write the code first
_SEND_BATCH = b'{"code":320,'
_PULL = b'{"code":11,'
_HEADER_LENGTH_MASK = 0xFFFFFF


class _RawSend(msgspec.Struct, gc=False):
    """A send's header with the ext fields as plain texts."""

    fields: dict[str, str] = msgspec.field(name="extFields")
    code: Long
    opaque: Long
    flag: Long
    version: Long = 0


_decode_send = msgspec.json.Decoder(SendRequest, strict=False).decode
_decode_pull = msgspec.json.Decoder(PullRequest, strict=False).decode
_decode_raw_send = msgspec.json.Decoder(_RawSend, strict=True).decode
_convert = msgspec.convert
_UNUSUAL = (
    msgspec.ValidationError,
    msgspec.DecodeError,
    RecursionError,  # deeply nested brackets
    UnicodeDecodeError,
)


def decode_request(buffer: bytes, start: int, end: int) -> RemotingCommand | SendRequest | PullRequest:
    """Decode the frame buffer[start:end], which begins with its header length word. Raises FrameError."""
    header_start = start + 4
    decode: Callable[[bytes], SendRequest | PullRequest] | None = None
    if buffer.startswith((_SEND_V2, _SEND_BATCH), header_start):
        decode = _decode_send
    elif buffer.startswith(_PULL, header_start):
        decode = _decode_pull
    if decode is not None and not buffer[start]:
        header_end = header_start + (int.from_bytes(buffer[start:header_start]) & _HEADER_LENGTH_MASK)
        if header_end <= end:
            try:
                request = decode(buffer[header_start:header_end])
            except _UNUSUAL:
                return RemotingCommand.decode_at(buffer, start, end)  # unusual, not necessarily wrong
            request.body = buffer[header_end:end]
            return request
    return RemotingCommand.decode_at(buffer, start, end)


def decode_request_with_fields(buffer: bytes, start: int, end: int) -> RemotingCommand | SendRequest:
    """As decode_request, but a send keeps its fields as texts too (SignedSend), for the signature check.

    One decoding gives both, so that the check and the handler can't see different values (duplicate JSON keys).
    """
    header_start = start + 4
    if buffer.startswith((_SEND_V2, _SEND_BATCH), header_start) and not buffer[start]:
        header_end = header_start + (int.from_bytes(buffer[start:header_start]) & _HEADER_LENGTH_MASK)
        if header_end <= end:
            try:
                raw = _decode_raw_send(buffer[header_start:header_end])
                fields = _convert(raw.fields, SendFields, strict=False)
            except _UNUSUAL:
                return RemotingCommand.decode_at(buffer, start, end)  # unusual, not necessarily wrong
            body = buffer[header_end:end]
            return SignedSend(
                fields=fields,
                code=raw.code,
                opaque=raw.opaque,
                flag=raw.flag,
                version=raw.version,
                body=body,
                texts=raw.fields,
            )
    return RemotingCommand.decode_at(buffer, start, end)
