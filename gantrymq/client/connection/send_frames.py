"""Frames of plain send requests, made from a template for each queue: most of such a header is always the same.

Plain is what nearly every message is: one that travels alone, is no answer and was not sent back. Its header is the
JSON that `send_request` makes, byte for byte, for a third of the work. Signed requests and ROCKETMQ headers take that
way.
"""

from __future__ import annotations

import struct
import time

import orjson

from gantrymq.client.connection.send_codec import Outgoing
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import AUTO_CREATE_TOPIC
from gantrymq.remoting.codes import PROTOCOL_VERSION, RequestCode
from gantrymq.remoting.command import LANGUAGE, next_opaque

PLAIN_CODE = RequestCode.SEND_MESSAGE_V2.value
TEMPLATES_MAX = 4096  # queues whose templates are kept

_PREFIX = struct.Struct(">ii")  # total; header length, whose high byte 0 means JSON
_VARYING = (
    b'"f":"%d","g":"%d","h":"%d","i":%b,"j":"0","k":"false","m":"false"},"flag":0,'
    b'"language":"' + LANGUAGE.encode() + b'","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":'
)


class SendFrames:
    """The frames of one producer group's messages. new_topic_queues: of a topic that a message makes."""

    __slots__ = ("_group", "_new_topic_queues", "_templates")

    def __init__(self, group: str, new_topic_queues: int) -> None:
        self._group = group
        self._new_topic_queues = new_topic_queues
        self._templates: dict[MessageQueue, bytes] = {}

    def frame(self, outgoing: Outgoing, queue: MessageQueue) -> tuple[int, bytes]:
        """The opaque of a new request that stores the plain message in the queue, and its frame."""
        template = self._templates.get(queue)
        if template is None:
            template = self._learn(queue)
        opaque, body = next_opaque(), outgoing.body
        properties = orjson.dumps(outgoing.properties)
        header = template % (outgoing.sys_flag, time.time_ns() // 1_000_000, outgoing.flag, properties, opaque)
        size = len(header)
        return opaque, b"".join((_PREFIX.pack(4 + size + len(body), size), header, body))

    def _learn(self, queue: MessageQueue) -> bytes:
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        group, topic, template_topic = (
            orjson.dumps(text).replace(b"%", b"%%") for text in (self._group, queue.topic, AUTO_CREATE_TOPIC)
        )
        constant = b'{"code":%d,"extFields":{"a":%b,"b":%b,"c":%b,"d":"%d","e":"%d",' % (
            PLAIN_CODE,
            group,
            topic,
            template_topic,
            self._new_topic_queues,
            queue.queue_id,
        )
        template = self._templates[queue] = constant + _VARYING + b"%d}" % PROTOCOL_VERSION
        return template


def is_plain(outgoing: Outgoing) -> bool:
    """Whether the template says all of the message's header."""
    return (
        outgoing.max_reconsume_times is None
        and not outgoing.is_batch
        and not outgoing.is_reply
        and not outgoing.reconsume_times
    )
