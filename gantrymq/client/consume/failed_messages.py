"""What happens to messages that a listener could not consume.

They go back to the broker that stored them, which delivers them again later through the topic %RETRY%<group>; after
`max_reconsume_times` they are dead letters, in %DLQ%<group>. What the broker can't take back is sent as a new message.
In broadcasting, failed messages are dropped: each member would have to keep its own.

Each takes along why it failed, in two properties, so that dead letters can be told apart by their cause. A broker of
Apache RocketMQ does not keep them.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable

from gantrymq.client.connection.send_codec import pack_aside
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.options import PushConsumerOptions
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.subscription import MessageModel
from gantrymq.client.produce.sender import Sender
from gantrymq.errors import GantryError
from gantrymq.message import properties as names
from gantrymq.message.delay_levels import level_of
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace
from gantrymq.message.topics import retry_topic

logger: logging.Logger = logging.getLogger(__name__)

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"  # sends the failed messages that the broker can't take back
SEND_TIMEOUT_S = 5.0
OVERDUE_DELAY_S = 10.0  # of messages a listener never finished


class FailedMessages:
    """Sends the failed messages of one consumer group back, or to the dead letters."""

    def __init__(self, session: ClientSession, options: PushConsumerOptions) -> None:
        self.max_reconsume_times: int = options.reconsume_limit
        self._session = session
        self._group = options.group
        self._model = options.model
        self._retry_topic = retry_topic(options.group)
        self._namespace = session.namespace
        self._namespace.exclude(INNER_PRODUCER_GROUP)
        self.sender: Sender = Sender(session, INNER_PRODUCER_GROUP)

    async def send_back(self, messages: list[MessageExt], delay_s: float | None = None) -> list[MessageExt]:
        """Have the messages delivered again after `delay_s` (None: the broker decides when); return those that could
        not be sent back, for another try here."""
        delay_level = 0 if delay_s is None else level_of(delay_s)

        async def again(message: MessageExt) -> None:
            await self._send_back_one(message, delay_level, self.max_reconsume_times)

        return await self._left_of(messages, again, "send_back_failed")

    async def _send_back_one(self, message: MessageExt, delay_level: int, max_reconsume_times: int) -> None:
        """Through the broker that stored it, else as a new message to the retry topic at any broker."""
        address = self._session.routes.address(message.broker_name)
        if address is not None:
            try:
                await self._session.calls.send_back(
                    address,
                    self._group,
                    message,
                    topic=message.topic,
                    delay_level=delay_level,
                    max_reconsume_times=max_reconsume_times,
                )
                return
            except GantryError as exc:
                logger.info(
                    "send-back rejected (address=%s): %s",
                    address,
                    exc,
                    extra={"event": "send_back_refused", "address": address, "error": str(exc)},
                )
        await self._send_anew(message, message.reconsume_times + 1, delay_level, max_reconsume_times)

    async def send_back_overdue(self, process_queues: Iterable[ProcessQueue], started_before: float) -> None:
        """Send back messages of listener calls that began before `started_before` (time.monotonic()): a call that
        never ends must not hold the group's offset for ever."""
        for process_queue in list(process_queues):
            overdue = process_queue.overdue(started_before)
            if overdue:
                logger.warning(
                    "listener overdue (queue=%s, count=%s)",
                    process_queue.queue,
                    len(overdue),
                    extra={"event": "listener_overdue", "queue": str(process_queue.queue), "count": len(overdue)},
                )
                note_cause(overdue, "the listener took too long")
                left = await self.send_back(overdue, OVERDUE_DELAY_S)
                process_queue.remove([message for message in overdue if message not in left])

    async def give_up(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Send messages that failed as often as they may to the dead letters; return those that could not be sent."""

        async def to_dead_letters(message: MessageExt) -> None:
            await self._send_anew(message, message.reconsume_times)

        return await self._left_of(messages, to_dead_letters, "give_up_failed")

    async def bury(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Make the messages dead letters, however often they were tried; return those that could not be sent."""

        async def to_dead_letters(message: MessageExt) -> None:
            await self._send_back_one(message, 0, max_reconsume_times=0)

        return await self._left_of(messages, to_dead_letters, "give_up_failed")

    async def _left_of(
        self, messages: list[MessageExt], send: Callable[[MessageExt], Awaitable[None]], failed_event: str
    ) -> list[MessageExt]:
        """Send each message; return those that could not be sent. A broadcasting consumer drops all of them."""
        left: list[MessageExt] = []
        for message in messages:
            if self._model is MessageModel.BROADCASTING:
                logger.warning(
                    "failed message dropped (msg_id=%s)",
                    message.msg_id,
                    extra={"event": "failed_message_dropped", "msg_id": message.msg_id},
                )
                continue
            try:
                await send(message)
            except GantryError as exc:
                left.append(message)
                logger.warning(
                    "failed message not sent (msg_id=%s): %s",
                    message.msg_id,
                    exc,
                    extra={"event": failed_event, "msg_id": message.msg_id, "error": str(exc)},
                )
        return left

    async def _send_anew(
        self, message: MessageExt, times: int, delay_level: int = 0, max_reconsume_times: int | None = None
    ) -> None:
        """Send it as a new message to the retry topic; when `times` is the limit, the broker makes it a dead letter."""
        if max_reconsume_times is None:
            max_reconsume_times = self.max_reconsume_times
        again = retry_message(message, self._retry_topic, max_reconsume_times, times=times)
        if again.properties[names.RETRY_TOPIC] == message.topic:
            again.properties[names.RETRY_TOPIC] = self._namespace.wrap(message.topic)  # who reads it knows no namespace
        if delay_level:
            again.properties[names.DELAY] = str(delay_level)
        outgoing = await pack_aside(again)
        outgoing.reconsume_times = times
        outgoing.max_reconsume_times = max_reconsume_times
        await self.sender.deliver(outgoing, SEND_TIMEOUT_S)


def note_cause(messages: Iterable[MessageExt], cause: BaseException | str) -> None:
    """Have the messages say why they failed: an exception's class and place, and its last line."""
    text = ""
    if isinstance(cause, BaseException):
        lines = traceback.format_exception_only(cause)
        cause, text = f"{_class_name(cause)}{_place_of(cause)}", lines[-1] if lines else ""
    told = names.cause_properties(cause, text)
    for message in messages:
        message.properties.pop(names.CONSUME_ERROR_TEXT, None)  # of an earlier try
        message.properties.update(told)


def _class_name(error: BaseException) -> str:
    kind = type(error)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _place_of(error: BaseException) -> str:
    """ " at FILE:LINE" where it was raised."""
    at = error.__traceback__
    if at is None:
        return ""
    while at.tb_next is not None:
        at = at.tb_next
    return f" at {at.tb_frame.f_code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{at.tb_lineno}"


def retry_message(message: MessageExt, topic: str, max_reconsume_times: int, *, times: int | None = None) -> Message:
    """A failed message as a new one for the group's retry topic, as the broker would have made it."""
    if times is None:
        times = message.reconsume_times + 1
    properties = names.sendable_properties(message.properties)
    properties.setdefault(names.RETRY_TOPIC, message.topic)
    properties.setdefault(names.ORIGIN_MESSAGE_ID, message.offset_msg_id)
    properties[names.RECONSUME_TIME] = str(times)
    properties[names.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    properties[names.DELAY] = str(3 + times)
    properties.pop(names.TRAN_MSG, None)  # a committed message still bears it: sent again it would be prepared anew
    if len(names.encode_properties(properties).encode("utf-8", "replace")) > names.PROPERTIES_BYTES_MAX:
        for name in (names.CONSUME_ERROR, names.CONSUME_ERROR_TEXT):
            properties.pop(name, None)  # rather the message without its cause than no message
    return Message(topic, message.body, properties=properties, flag=message.flag)


def restore_topic(message: MessageExt, retry_topic: str, namespace: Namespace = NO_NAMESPACE) -> None:
    """Give a redelivered message its original topic: it is stored under the group's retry topic."""
    if message.topic == retry_topic:
        message.topic = namespace.unwrap(message.properties.get(names.RETRY_TOPIC, message.topic))
