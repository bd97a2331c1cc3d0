"""Answers of the hot paths, put together from prepared text instead of a JSON encoder.

A send and a pull are answered tens of thousands of times a second with the same fields; only numbers differ. For JSON
headers one `%` on a prepared template makes the frame; the binary header encoding goes the ordinary way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import orjson

from appliance.remoting.pull_request import PullRequest
from appliance.remoting.send_request import SendRequest
from gantrymq.remoting.codes import PROTOCOL_VERSION, ResponseCode
from gantrymq.remoting.command import JSON, LANGUAGE, RESPONSE_FLAG, ROCKETMQ, RemotingCommand
from store.base.results import GetMessageStatus

Request = RemotingCommand | SendRequest

BATCH_SIZES_KEPT = 64  # packers of ids for so many different sizes of batches

_FRAME = struct.Struct(">iI")  # total, header encoding (0: JSON) and header length
_TAIL = f'"flag":1,"language":"{LANGUAGE}","opaque":%d'
_END = f'"serializeTypeCurrentRPC":"JSON","version":{PROTOCOL_VERSION}}}'


class SendAnswers:
    """Makes the answers to sends. Every one says the broker's region and whether tracing is on, refusals too."""

    def __init__(self, region_id: str, trace_on: bool, store_host: bytes) -> None:
        """store_host: packed address of this broker, 8 or 20 bytes; message ids begin with it."""
        self._host = store_host
        self._id_prefix = store_host.hex().upper()
        self._ids_packers: dict[int, Callable[..., bytes]] = {}
        self.say(region_id, trace_on)

    def say(self, region_id: str, trace_on: bool) -> None:
        """From now on say this region, and whether tracing is on."""
        self._common: Mapping[str, str] = {"MSG_REGION": region_id, "TRACE_ON": "true" if trace_on else "false"}
        fields = orjson.dumps(self._common).decode().replace("%", "%%")[:-1]
        begin = f'{{"code":0,"extFields":{fields},"msgId":'
        end = f',"queueId":"%d","queueOffset":"%d"}},{_TAIL},{_END}'
        self.said: object = self._common  # another object whenever anything else is said
        self._template = f'{begin}"{self._id_prefix}%016X"{end}'.encode()
        self._batch_template = f'{begin}"%b"{end}'.encode()

    def texts(self) -> tuple[bytes, ...]:
        """The parts of an answer that are the same for all messages, for the fast path (answers.pxd has their order).

        JSON: what stands before message id, queue id, queue offset and opaque, and the end. Binary: what stands before
        and behind the opaque, and the ext fields that don't change. At last what message ids begin with.
        """
        header, binary = self._batch_template.replace(b"%d", b"%b"), self._binary_template()
        before_id, before_queue_id, before_queue_offset, before_opaque, end = header.split(b"%b")
        prefix = self._id_prefix.encode()
        unescaped = [text.replace(b"%%", b"%") for text in (before_id, before_queue_id, before_queue_offset)]
        return (*unescaped, before_opaque, end, *binary, prefix)

    def _binary_template(self) -> tuple[bytes, bytes, bytes]:
        """The binary header of an answer up to its opaque, from there to the ext fields' size, and the common ones."""
        command = RemotingCommand(
            0, dict(self._common), b"", None, 0, RESPONSE_FLAG, LANGUAGE, PROTOCOL_VERSION, ROCKETMQ
        )
        header = command.encode_head(0)[8:]
        return header[:5], header[9:17], header[21:]

    def stored(self, request: Request, physical_offset: int, queue_id: int, queue_offset: int, code: int = 0) -> bytes:
        """The frame that says where one message was stored. code: a "stored, but ..." code or 0."""
        if code == 0 and request.serialize_type == JSON:
            header = self._template % (physical_offset, queue_id, queue_offset, request.opaque)
            return _FRAME.pack(4 + len(header), len(header)) + header
        return self.stored_batch(request, (physical_offset,), queue_id, queue_offset, code)

    def stored_batch(
        self,
        request: Request,
        physical_offsets: Sequence[int],
        queue_id: int,
        queue_offset: int,
        code: int = 0,
    ) -> bytes:
        """The same for a batch: ids joined by commas, the queue offset is the first message's."""
        ids = self._message_ids(physical_offsets)
        if code == 0 and request.serialize_type == JSON:
            header = self._batch_template % (ids.encode(), queue_id, queue_offset, request.opaque)
            return _FRAME.pack(4 + len(header), len(header)) + header
        fields = {**self._common, "msgId": ids, "queueId": str(queue_id), "queueOffset": str(queue_offset)}
        return request.reply(code, None, fields).encode()

    def stored_with(
        self,
        request: Request,
        physical_offset: int,
        queue_id: int,
        queue_offset: int,
        more: Mapping[str, str],
        code: int = 0,
    ) -> bytes:
        """The same for one whose sender is told more: what recalls it, or the id of its transaction."""
        fields = {"msgId": self.message_id(physical_offset), "queueId": str(queue_id)}
        return self.told(request, code, None, {**fields, "queueOffset": str(queue_offset), **more})

    def _message_ids(self, physical_offsets: Sequence[int]) -> str:
        """The messages' ids, joined by commas: one call makes the hexadecimal digits of them all."""
        count, host = len(physical_offsets), self._host
        pack = self._ids_packers.get(count)
        if pack is None:
            pack = struct.Struct(">" + f"{len(host)}sQ" * count).pack
            if len(self._ids_packers) < BATCH_SIZES_KEPT:
                self._ids_packers[count] = pack
        parts: list[bytes | int] = [host] * (2 * count)
        parts[1::2] = physical_offsets
        return pack(*parts).hex(",", len(host) + 8).upper()

    def refused(self, request: Request, code: int, remark: str) -> bytes:
        """The frame that says why nothing was stored."""
        return request.reply(code, remark, dict(self._common)).encode()

    def told(self, request: Request, code: int, remark: str | None, fields: Mapping[str, str]) -> bytes:
        """The frame of an answer with other fields than a send's."""
        return request.reply(code, remark, {**self._common, **fields}).encode()

    def message_id(self, physical_offset: int) -> str:
        """The offset message id of a message of this broker."""
        return f"{self._id_prefix}{physical_offset:016X}"


_PULL_TEMPLATE = (
    '{"code":%d,"extFields":{"maxOffset":"%d","minOffset":"%d","nextBeginOffset":"%d","suggestWhichBrokerId":"%d"},'
    f'{_TAIL},"remark":"%s",{_END}'
).encode()


def found_texts() -> tuple[bytes, ...]:
    """The parts of an answer with messages that are the same for all pulls, for the fast path (answers.pxd: PullTexts).

    JSON: what stands before the queue's end, its minimum, the next offset and the opaque, and the end. Binary: what
    stands before and behind the opaque, up to the ext fields' size.
    """
    code, before_max, before_min, before_next, broker_id, before_opaque, end = _PULL_TEMPLATE.split(b"%d")
    remark = GetMessageStatus.FOUND.name
    command = RemotingCommand(0, {}, b"", remark, 0, RESPONSE_FLAG, LANGUAGE, PROTOCOL_VERSION, ROCKETMQ)
    binary = command.encode_head(0)[8:]
    return (
        code + b"0" + before_max, before_min, before_next, broker_id + b"%d" % 0 + before_opaque,
        end % remark.encode(), binary[:5], binary[9:-4],
    )  # fmt: skip


def pull_head(
    request: RemotingCommand | PullRequest,
    code: ResponseCode,
    remark: str,
    offsets: tuple[int, int, int],
    suggested_broker_id: int,
    body_bytes: int,
) -> bytes:
    """A pull answer's frame up to its body of `body_bytes`. offsets: next to ask for, queue's minimum, queue's end.

    remark: the name of a GetMessageStatus, nothing that JSON would have to escape.
    """
    next_offset, min_offset, max_offset = offsets
    if request.serialize_type == JSON:
        header = _PULL_TEMPLATE % (
            code,
            max_offset,
            min_offset,
            next_offset,
            suggested_broker_id,
            request.opaque,
            remark.encode(),
        )
        return _FRAME.pack(4 + len(header) + body_bytes, len(header)) + header
    fields = {
        "maxOffset": str(max_offset),
        "minOffset": str(min_offset),
        "nextBeginOffset": str(next_offset),
        "suggestWhichBrokerId": str(suggested_broker_id),
    }
    return request.reply(code, remark, fields).encode_head(body_bytes)
