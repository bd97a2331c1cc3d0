"""Message trace: what producers and consumers did with each message, sent as messages to the trace topic.

Records wait in a bounded queue and are sent in batches. When the queue is full, records are dropped and counted: no
send and no listener waits for them. A batch that can't be sent is lost. The topic exists where brokers have
traceTopicEnable, or where topics may be created by their first message; where neither is so, the log says it once. The
broker can switch tracing off for its messages (traceOn).
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gantrymq.client.connection.send_codec import pack_aside
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.sender import Sender
from gantrymq.client.produce.trace_records import (
    ConsumeOutcome,
    TracedMessageType,
    TraceKind,
    TraceRecord,
    encode_record,
)
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import GantryError, ResponseError, RouteNotFound
from gantrymq.message import properties as names
from gantrymq.message.ids import create_unique_id
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.home_loop import running_loop
from gantrymq.timeouts import timeout

logger: logging.Logger = logging.getLogger(__name__)

WAITING_MAX = 2048  # records; further ones are dropped
BATCH_WAIT_S = 0.5  # RocketMQ: AsyncTraceDispatcher.waitTimeThresholdMil
BATCH_CHARS_MAX = 118_000  # RocketMQ: maxMsgSize less its reserve
KEYS_CHARS_MAX = 16_000  # a record's properties hold 32767 bytes, and the keys are among them
KEYS_MAX = 64  # of one message: what brokers take in any topic (messageKeysMax)
SEND_TIMEOUT_S = 5.0
FLUSH_S = 1.0  # for what waits when the client closes


class TraceDispatcher:
    """Sends trace records in batches, over the session of the client they are about."""

    def __init__(self, session: ClientSession, group: str, *, topic: str = TRACE_TOPIC, sample: float = 1.0) -> None:
        """sample: the part of the messages that is traced, from 0 to 1."""
        self.topic = topic
        self._sample = sample
        self.dropped: int = 0
        self._is_topic_missing = False  # and the log has it
        self._waiting: deque[TraceRecord] = deque()
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # that of `run`
        sender_group = f"_INNER_TRACE_PRODUCER-{group}"
        session.namespace.exclude(topic)  # as in Java: one topic for all
        session.namespace.exclude(sender_group)
        self._sender = Sender(session, sender_group)

    @property
    def waiting(self) -> int:
        """Records that are not sent yet."""
        return len(self._waiting)

    def wants(self, msg_id: str) -> bool:
        """Whether the message is of the sample: so says its id, to the sender and to each receiver."""
        return self._sample >= 1 or zlib.crc32(msg_id.encode()) < self._sample * (1 << 32)

    def append(self, record: TraceRecord) -> None:
        """Have the record sent soon; drop it when too many wait. From any thread."""
        if len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        self._waiting.append(record)
        if self._loop is None or self._loop is running_loop():
            self._arrived.set()
        else:
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def run(self) -> None:
        """Send records as they come, until cancelled; afterwards `flush` sends the rest."""
        said = 0
        self._loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            await asyncio.sleep(BATCH_WAIT_S)
            self._arrived.clear()
            while self._waiting:
                await self._send(self.take_batch())
            if self.dropped > said:
                logger.warning(
                    "trace records dropped (count=%s)",
                    self.dropped - said,
                    extra={"event": "trace_dropped", "count": self.dropped - said},
                )
                said = self.dropped

    async def flush(self) -> None:
        """Send the records that still wait, for a second at most."""
        try:
            async with timeout(FLUSH_S):
                while self._waiting:
                    await self._send(self.take_batch())
        except TimeoutError:
            logger.warning(
                "trace records lost (count=%s)",
                len(self._waiting),
                extra={"event": "trace_lost", "count": len(self._waiting)},
            )

    def take_batch(self) -> Message:
        """Take as many of the waiting records as fit into one message, and return it. Its keys: every message id and
        key in the records."""
        texts: list[str] = []
        keys: dict[str, None] = {}
        chars = keys_chars = 0
        while self._waiting and chars < BATCH_CHARS_MAX and keys_chars < KEYS_CHARS_MAX:
            record = self._waiting[0]
            own = (record.msg_id, *(record.keys or "").split())
            if texts and len(keys.keys() | own) > KEYS_MAX:
                break
            self._waiting.popleft()
            texts.append(encode_record(record))
            chars += len(texts[-1])
            for key in own:
                if key not in keys and len(keys) < KEYS_MAX and keys_chars + len(key) < KEYS_CHARS_MAX:
                    keys[key] = None
                    keys_chars += 1 + len(key)
        return Message(self.topic, "".join(texts).encode(), keys=list(keys))

    async def _send(self, batch: Message) -> None:
        try:
            await self._sender.deliver(await pack_aside(batch), SEND_TIMEOUT_S)
            self._is_topic_missing = False
        except GantryError as exc:
            if _is_of_missing_topic(exc):
                self._note_missing_topic(exc)
                return
            logger.warning("trace not sent: %s", exc, extra={"event": "trace_not_sent", "error": str(exc)})

    def _note_missing_topic(self, exc: GantryError) -> None:
        if not self._is_topic_missing:
            self._is_topic_missing = True
            logger.warning(
                "traces are lost: there is no trace topic; set traceTopicEnable=true at the brokers (topic=%s): %s",
                self.topic,
                exc,
                extra={"event": "trace_topic_missing", "topic": self.topic, "error": str(exc)},
            )


class TraceOptions(Protocol):
    """What a client says of its trace."""

    @property
    def group(self) -> str: ...
    @property
    def trace(self) -> bool: ...
    @property
    def trace_topic(self) -> str: ...
    @property
    def trace_sample(self) -> float: ...


def dispatcher_of(session: ClientSession, options: TraceOptions) -> TraceDispatcher | None:
    """The dispatcher of a client, None when it traces nothing."""
    if not options.trace:
        return None
    return TraceDispatcher(session, options.group, topic=options.trace_topic, sample=options.trace_sample)


class SendTracer:
    """Makes the records of a producer."""

    def __init__(self, dispatcher: TraceDispatcher, group: str) -> None:
        self._dispatcher = dispatcher
        self._group = group

    def sent(self, messages: Sequence[Message], result: SendResult, store_host: str, took_s: float) -> None:
        """The broker stored the messages: one, or those of a batch."""
        if not result.is_traced or messages[0].topic == self._dispatcher.topic:
            return
        cost_ms = int(took_s * 1000)
        began_ms = (time.time_ns() - int(took_s * 1e9)) // 1_000_000  # from whole ms it might lie behind the delivery
        ids = zip(messages, result.msg_id.split(","), result.offset_msg_id.split(","), strict=False)
        for message, msg_id, offset_msg_id in ids:
            if not self._dispatcher.wants(msg_id):
                continue
            keys = message.keys if isinstance(message.keys, str) else " ".join(message.keys)
            self._dispatcher.append(
                TraceRecord(
                    kind=TraceKind.PUB,
                    msg_id=msg_id,
                    time_ms=began_ms,
                    region=result.region_id,
                    group=self._group,
                    topic=message.topic,
                    tags=message.tags,
                    keys=keys or None,
                    store_host=store_host,
                    body_bytes=len(message.body),
                    cost_ms=cost_ms,
                    message_type=_message_type(message),
                    offset_msg_id=offset_msg_id,
                    is_success=result.status is SendStatus.SEND_OK,
                )
            )


@dataclass(slots=True)
class TracedCall:
    """A listener call that is being traced."""

    messages: list[MessageExt]
    request_id: str


class ConsumeTracer:
    """Makes the records of a consumer: one before and one after a listener call, for each message. For a pull consumer
    the call lasts from the poll until the messages are finished."""

    def __init__(self, dispatcher: TraceDispatcher, group: str) -> None:
        self._dispatcher = dispatcher
        self._group = group

    def before(self, messages: list[MessageExt]) -> TracedCall | None:
        """A listener, or who polls, is about to get the messages. None when no record of them is wanted."""
        traced = [
            message
            for message in messages
            if message.properties.get(names.TRACE_ON) != "false"
            and message.topic != self._dispatcher.topic
            and self._dispatcher.wants(message.msg_id)
        ]
        if not traced:
            return None
        call = TracedCall(traced, create_unique_id())
        for message in traced:
            self._dispatcher.append(
                TraceRecord(
                    kind=TraceKind.SUB_BEFORE,
                    msg_id=message.msg_id,
                    time_ms=time.time_ns() // 1_000_000,
                    region=message.properties.get(names.MSG_REGION, ""),
                    group=self._group,
                    request_id=call.request_id,
                    retry_times=message.reconsume_times,
                    keys=message.properties.get(names.KEYS),
                )
            )
        return call

    def after(self, call: TracedCall, took_s: float, *, is_done: bool, has_raised: bool) -> None:
        """The listener answered."""
        outcome = ConsumeOutcome.FAILED
        if is_done:
            outcome = ConsumeOutcome.SUCCESS
        elif has_raised:
            outcome = ConsumeOutcome.EXCEPTION
        for message in call.messages:
            self._dispatcher.append(
                TraceRecord(
                    kind=TraceKind.SUB_AFTER,
                    msg_id=message.msg_id,
                    time_ms=time.time_ns() // 1_000_000,
                    group=self._group,
                    request_id=call.request_id,
                    cost_ms=int(took_s * 1000 / len(call.messages)),
                    is_success=is_done,
                    keys=message.properties.get(names.KEYS),
                    outcome=outcome,
                )
            )


def _is_of_missing_topic(failure: GantryError) -> bool:
    if isinstance(failure, ResponseError):
        return failure.code == ResponseCode.TOPIC_NOT_EXIST
    return isinstance(failure, RouteNotFound)


def _message_type(message: Message) -> TracedMessageType:
    if names.TRAN_MSG in message.properties:
        return TracedMessageType.TRANSACTION_HALF
    if message.delay_level > 0 or names.START_DELIVER_TIME in message.properties:
        return TracedMessageType.DELAY
    return TracedMessageType.NORMAL
