"""Received messages as FastStream's: headers are properties; ack, nack and reject are a listener's results."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Any, TypeVar

from faststream.message import AckStatus, StreamMessage, decode_message

from gantrymq.client.results import ConsumeResult, DeadLetter, RetryLater
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt

CONTENT_TYPE = "content-type"
CORRELATION_ID = "x-correlation-id"  # RocketMQ's own CORRELATION_ID makes a message a request

Result = ConsumeResult | RetryLater
Raw = TypeVar("Raw")


class Acknowledged(StreamMessage[Raw]):
    """`ack`: done. `nack`: comes again, after `delay_s` if given. `reject`: a dead letter at once, for the `reason`."""

    result: Result = ConsumeResult.LATER  # until it is acknowledged

    async def ack(self) -> None:
        """Done: the group goes on behind it."""
        if self.committed is None:
            self.result = ConsumeResult.SUCCESS
        await super().ack()

    async def nack(self, delay_s: float | None = None) -> None:
        """It comes again: after the broker's next delay, or after `delay_s` seconds or somewhat more."""
        if self.committed is None:
            self.result = RetryLater(delay_s)
        await super().nack()

    async def reject(self, reason: str = "rejected by the handler") -> None:
        """It becomes a dead letter at once, which says the reason."""
        if self.committed is None:
            self.result = DeadLetter(reason)
        await super().reject()


class GantryMessage(Acknowledged[MessageExt]):
    """One message."""


class GantryBatchMessage(Acknowledged[Sequence[MessageExt]]):
    """Messages of one queue. What is said of them counts for all; `batch_headers` has those of each."""


# What becomes of the message that this task is consuming: FastStream's own flow does not hand it back.
parsed: contextvars.ContextVar[list[Acknowledged[Any]] | None] = contextvars.ContextVar("gantrymq_parsed", default=None)


async def parse_message(message: MessageExt) -> GantryMessage:
    """FastStream's view of a message."""
    properties = message.properties
    found = GantryMessage(
        message,
        message.body,
        headers=dict(properties),
        reply_to=properties.get(names.REPLY_TO_CLIENT, "") if names.CORRELATION_ID in properties else "",
        content_type=properties.get(CONTENT_TYPE),
        correlation_id=properties.get(CORRELATION_ID) or properties.get(names.CORRELATION_ID),
        message_id=message.msg_id,
    )
    return _noted(found)


async def parse_batch(messages: Sequence[MessageExt]) -> GantryBatchMessage:
    """FastStream's view of the messages of one listener call: headers, ids and content type are the first one's."""
    first = messages[0].properties
    return _noted(
        GantryBatchMessage(
            messages,
            [message.body for message in messages],
            headers=dict(first),
            batch_headers=[dict(message.properties) for message in messages],
            content_type=first.get(CONTENT_TYPE),
            correlation_id=first.get(CORRELATION_ID),
            message_id=messages[0].msg_id,
        )
    )


Noted = TypeVar("Noted", bound=Acknowledged[Any])


def _noted(found: Noted) -> Noted:
    box = parsed.get()
    if box is not None:
        box.append(found)
    return found


async def decode(message: StreamMessage[Any]) -> Any:
    """The payload, by its content type; without one JSON if it is."""
    return decode_message(message)


async def decode_batch(message: StreamMessage[Any]) -> list[Any]:
    """The payload of each message."""
    return [decode_message(await parse_message(each)) for each in message.raw_message]


def result_of(messages: Sequence[Acknowledged[Any]]) -> Result:
    """What the listener answers: LATER when nothing was decided."""
    return messages[-1].result if messages and isinstance(messages[-1].committed, AckStatus) else ConsumeResult.LATER
