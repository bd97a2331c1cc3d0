"""What calls return: the outcome of a send, of a pull, and what a listener says about its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.remoting.codes import ResponseCode


class SendStatus(Enum):
    """Each means that the broker stored the message; the last three, that it is not flushed or replicated as asked."""

    SEND_OK = ResponseCode.SUCCESS.value
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT.value
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT.value
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE.value


@dataclass(slots=True)
class SendResult:
    """Where a message went. msg_id: made by the producer; offset_msg_id: made by the broker (a batch has several,
    joined by commas). region_id and is_traced are what the broker says about message traces. recall_handle: of a
    message for a time, see Producer.recall; empty for others, and from brokers that can't."""

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    region_id: str = ""
    is_traced: bool = True
    recall_handle: str = ""


class ConsumeResult(Enum):
    """What a listener returns. LATER sends the messages back; the broker delivers them again after a delay."""

    SUCCESS = "SUCCESS"
    LATER = "LATER"


class RetryLater(Exception):
    """Raised or returned by a listener: the messages come again after `delay_s`; None: when the broker decides.

    Brokers know 18 delays (1 s to 2 h): the next longer one is taken. An ordered consumer waits here, to the
    millisecond, and until then consumes nothing more of the queue. messages: only these come again, the others of the
    call are done; in order, those behind the first of them come again as well.
    """

    def __init__(self, delay_s: float | None = None, messages: Sequence[MessageExt] | None = None) -> None:
        if delay_s is not None and not delay_s >= 0:
            raise ValueError(f"delay_s={delay_s}: it must be 0 or more")
        super().__init__(delay_s, messages)
        self.delay_s = delay_s
        self.messages: list[MessageExt] | None = None if messages is None else list(messages)

    def again(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Those of the call's messages that come again."""
        if self.messages is None:
            return messages
        return [message for message in messages if any(message is each for each in self.messages)]


class DeadLetter(RetryLater):
    """Raised or returned by a listener: the messages are dead letters at once, because trying again can't help.

    reason: told with them. messages: only these, the others of the call are done. When they can't be sent there now,
    they come again. A broadcasting consumer drops them.
    """

    def __init__(self, reason: str = "", messages: Sequence[MessageExt] | None = None) -> None:
        super().__init__(None, messages)
        Exception.__init__(self, reason, messages)  # what pickling calls the class with
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class PullStatus(Enum):
    """How a pull ended: normal outcomes, not errors."""

    FOUND = ResponseCode.SUCCESS.value
    NO_NEW_MESSAGE = ResponseCode.PULL_NOT_FOUND.value
    NO_MATCHED_MESSAGE = ResponseCode.PULL_RETRY_IMMEDIATELY.value
    OFFSET_ILLEGAL = ResponseCode.PULL_OFFSET_MOVED.value


@dataclass(frozen=True, slots=True)
class LostMessage:
    """A stored message that was skipped: its record was damaged on the broker's disk, twice in a row.

    physical_offset: where the record starts in the broker's commit log, as far as it still says; -1: it does not.
    """

    queue: MessageQueue
    queue_offset: int
    physical_offset: int
    reason: str

    def __str__(self) -> str:
        place = f", physical offset {self.physical_offset}" if self.physical_offset >= 0 else ""
        return f"{self.queue.topic}, queue {self.queue.queue_id}, offset {self.queue_offset}{place}: {self.reason}"


@dataclass(slots=True)
class PullResult:
    """One answer to a pull. next_offset: where to go on; broker_id: the broker that is suggested for the next pull;
    lost: the message before next_offset, when there are no others because it is damaged."""

    status: PullStatus
    messages: list[MessageExt]
    next_offset: int
    min_offset: int
    max_offset: int
    broker_id: int
    lost: LostMessage | None = None
