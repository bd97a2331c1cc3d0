"""The send request and its answer as values, without I/O or state.

An outgoing message is packed once (unique id, compression, property text) and may then be sent several times, to
several brokers, without changing. The header has one-letter names (SEND_MESSAGE_V2), as Java's clients send it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

from gantrymq.client.connection.compression import DEFAULT, Compression, in_thread
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import MessageRejected, ProtocolError, WrongType
from gantrymq.message import properties as names
from gantrymq.message.batch import append_to_batch
from gantrymq.message.ids import create_unique_id
from gantrymq.message.model import Message, MessageQueue
from gantrymq.message.topics import AUTO_CREATE_TOPIC, is_retry_topic
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

MESSAGE_BYTES_MAX = 4 * 1024 * 1024  # RocketMQ: maxMessageSize
QUEUES_OF_NEW_TOPIC = 4  # RocketMQ: defaultTopicQueueNums
REPLY = "reply"  # MSG_TYPE of an answer to a request

_STATUSES = {status.value: status for status in SendStatus}


class Outgoing:
    """A message ready for the wire."""

    __slots__ = (
        "body",
        "flag",
        "is_batch",
        "is_reply",
        "is_timed",
        "max_reconsume_times",
        "msg_id",
        "properties",
        "reconsume_times",
        "sys_flag",
        "topic",
    )

    def __init__(
        self, topic: str, body: bytes, properties: str, msg_id: str, *, flag: int, sys_flag: int, is_batch: bool
    ) -> None:
        self.topic: str = topic
        self.body: bytes = body
        self.properties: str = properties
        self.msg_id: str = msg_id
        self.flag: int = flag
        self.sys_flag: int = sys_flag
        self.is_batch: bool = is_batch
        self.is_timed: bool = False  # for a time, which not every broker keeps
        self.is_reply: bool = False  # an answer to a request: it has its own request code
        self.reconsume_times: int = 0
        self.max_reconsume_times: int | None = None  # said only when a consumer sends a failed message again


def pack(message: Message, compression: Compression = DEFAULT, bytes_max: int = MESSAGE_BYTES_MAX) -> Outgoing:
    """Make a message ready for the wire. MessageRejected when no broker would take it, or its body is too large."""
    _check_message(message, bytes_max)
    return _packed(message, *compression.compress(message.body))


def pack_quickly(message: Message, compression: Compression, bytes_max: int) -> Outgoing | None:
    """As `pack`; None when it takes long because the body is large."""
    _check_message(message, bytes_max)
    body = message.body
    if len(body) < compression.from_bytes:
        if message.is_bare:
            msg_id = create_unique_id()
            own = "UNIQ_KEY\x01" + msg_id
            return Outgoing(message.topic, body, own, msg_id, flag=message.flag, sys_flag=0, is_batch=False)
        return _packed(message, body, 0)
    return None if compression.is_long_work(body) else _packed(message, *compression.compress(body))


async def pack_aside(
    message: Message, compression: Compression = DEFAULT, bytes_max: int = MESSAGE_BYTES_MAX
) -> Outgoing:
    """As `pack`; a large body is compressed in a thread."""
    _check_message(message, bytes_max)
    if compression.is_long_work(message.body):
        return _packed(message, *await in_thread(functools.partial(compression.compress, message.body)))
    return _packed(message, *compression.compress(message.body))


def require_message(message: object) -> None:
    """WrongType unless it is a Message."""
    if not isinstance(message, Message):
        raise WrongType(f"a Message is wanted, not {message!r:.60}: Message(topic, body) makes one")


def _check_message(message: Message, bytes_max: int) -> None:
    if type(message) is Message and type(message.body) is bytes and 0 < len(message.body) <= bytes_max:
        return
    require_message(message)
    check_body(message.body, bytes_max)


def _packed(message: Message, body: bytes, sys_flag: int) -> Outgoing:
    properties, msg_id = _named(message)
    if len(properties) * 4 > names.PROPERTIES_BYTES_MAX:  # four bytes a character at most: only then count exactly
        check_properties(properties)
    outgoing = Outgoing(message.topic, body, properties, msg_id, flag=message.flag, sys_flag=sys_flag, is_batch=False)
    if message.properties:
        outgoing.is_reply = message.properties.get(names.MSG_TYPE) == REPLY
    outgoing.is_timed = message.is_timed
    return outgoing


def _named(message: Message) -> tuple[str, str]:
    """The property text with a unique id, and that id: the message's own, or a new one."""
    if message.is_bare:
        msg_id = create_unique_id()
        return "UNIQ_KEY\x01" + msg_id, msg_id
    properties = message.encoded_properties()
    own_id = message.properties.get(names.UNIQ_KEY)
    if own_id is not None:
        return properties, own_id
    msg_id = create_unique_id()
    own = f"UNIQ_KEY\x01{msg_id}"
    return (f"{properties}\x02{own}" if properties else own), msg_id


def pack_batch(messages: Sequence[Message], bytes_max: int = MESSAGE_BYTES_MAX) -> Outgoing:
    """Make one batch of messages of one topic. MessageRejected when they can't travel together."""
    if not messages:
        raise MessageRejected("a batch needs at least one message")
    topic = messages[0].topic
    if is_retry_topic(topic):
        raise MessageRejected("a retry topic takes no batches")
    wait = messages[0].properties.get(names.WAIT)
    parts: list[bytes] = []
    msg_ids: list[str] = []
    for message in messages:
        if message.topic != topic:
            raise MessageRejected(f"a batch has one topic, not {topic} and {message.topic}")
        if not message.is_bare and message.is_delayed:
            raise MessageRejected("a batch takes no delayed messages")
        if message.properties.get(names.WAIT) != wait:
            raise MessageRejected("the messages of a batch have one WAIT property")
        check_body(message.body, bytes_max)
        text, msg_id = _named(message)
        msg_ids.append(msg_id)
        append_to_batch(parts, message, text)
    body = b"".join(parts)
    if len(body) > bytes_max:
        raise MessageRejected(f"the batch takes {len(body)} bytes, more than {bytes_max}")
    properties = names.encode_properties({names.WAIT: "true" if wait is None else wait})
    return Outgoing(topic, body, properties, ",".join(msg_ids), flag=0, sys_flag=0, is_batch=True)


def check_body(body: bytes, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
    """MessageRejected unless the body has 1 to `bytes_max` bytes, WrongType unless it is bytes."""
    if not isinstance(body, bytes):  # changed since the message was made
        raise WrongType(f"body: bytes are wanted, not {type(body).__name__}")
    if not body:
        raise MessageRejected("a message needs a body of at least one byte")
    if len(body) > bytes_max:
        raise MessageRejected(f"the body takes {len(body)} bytes, more than {bytes_max} (message_bytes_max)")


def check_properties(properties: str) -> None:
    """MessageRejected when the property text is longer than a record can hold."""
    size = len(properties.encode())
    if size > names.PROPERTIES_BYTES_MAX:
        raise MessageRejected(f"properties take {size} bytes, more than {names.PROPERTIES_BYTES_MAX}")


def send_request(
    outgoing: Outgoing, group: str, queue_id: int, new_topic_queues: int = QUEUES_OF_NEW_TOPIC
) -> RemotingCommand:
    """The request that stores the message in the queue. new_topic_queues: of a topic that this message makes."""
    ext_fields = {
        "a": group,
        "b": outgoing.topic,
        "c": AUTO_CREATE_TOPIC,
        "d": str(new_topic_queues),
        "e": str(queue_id),
        "f": str(outgoing.sys_flag),
        "g": str(time.time_ns() // 1_000_000),
        "h": str(outgoing.flag),
        "i": outgoing.properties,
        "j": str(outgoing.reconsume_times),
        "k": "false",
        "m": "true" if outgoing.is_batch else "false",
    }
    if outgoing.max_reconsume_times is not None:
        ext_fields["l"] = str(outgoing.max_reconsume_times)
    return RemotingCommand.request(request_code(outgoing), ext_fields, outgoing.body)


def request_code(outgoing: Outgoing) -> RequestCode:
    """The code of the request that stores it."""
    if outgoing.is_reply:
        return RequestCode.SEND_REPLY_MESSAGE_V2
    return RequestCode.SEND_BATCH_MESSAGE if outgoing.is_batch else RequestCode.SEND_MESSAGE_V2


def is_stored(answer: RemotingCommand) -> bool:
    """Whether the answer to a send says that the broker stored the message."""
    return answer.code in _STATUSES


def send_result(answer: RemotingCommand, outgoing: Outgoing, queue: MessageQueue, address: str) -> SendResult:
    """The outcome of a send to that queue. ResponseError when the broker did not store the message."""
    status = _STATUSES.get(answer.code)
    if status is None:
        raise refused(answer, address, request_code(outgoing))
    ext_fields = answer.ext_fields
    try:
        queue_id, offset = int(ext_fields["queueId"]), int(ext_fields["queueOffset"])
        if queue_id != queue.queue_id:
            queue = MessageQueue(outgoing.topic, queue.broker_name, queue_id)
        return SendResult(
            status,
            outgoing.msg_id,
            ext_fields["msgId"],
            queue,
            offset,
            ext_fields.get("MSG_REGION", ""),
            ext_fields.get("TRACE_ON") != "false",
            ext_fields.get("recallHandle", ""),
        )
    except (KeyError, ValueError) as exc:
        raise ProtocolError(f"{address} answered a send without saying where the message is: {exc}") from exc
