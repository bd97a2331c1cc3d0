"""OFFSET_MOVED_EVENT: a message for each pull whose offset was out of range, so that an operator can watch for it.

As RocketMQ stores it, but not more than EVENTS_A_SECOND_MAX: a client that asks for wrong offsets in a loop would fill
the log with news of itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import OFFSET_MOVED_EVENT
from gantrymq.remoting import fastjson
from store.base.results import PutMessageStatus, StoreMessage

if TYPE_CHECKING:
    from store.message_store import MessageStore

logger = logging.getLogger(__name__)

EVENTS_A_SECOND_MAX = 50


class OffsetMovedEvents:
    """Stores the events. clock: monotonic seconds."""

    def __init__(self, store: MessageStore, store_host: bytes, *, clock: Callable[[], float] = time.monotonic) -> None:
        """store_host: packed address of this broker."""
        self._store = store
        self._store_host = store_host
        self._clock = clock
        self._second = 0
        self._stored_in_second = 0
        self.left_out = 0

    def moved(self, group: str, queue: MessageQueue, requested: int, corrected: int) -> None:
        """A pull of `group` asked for an offset that is not there; it was told to go on at `corrected`."""
        if not self._may_store():
            self.left_out += 1
            return
        logger.warning(
            "offset moved",
            extra={
                "event": "offset_moved",
                "group": group,
                "topic": queue.topic,
                "queue_id": queue.queue_id,
                "requested": requested,
                "corrected": corrected,
            },
        )
        body = {
            "consumerGroup": group,
            "messageQueue": {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic},
            "offsetNew": corrected,
            "offsetRequest": requested,
        }
        result = self._store.put_message(
            StoreMessage(
                OFFSET_MOVED_EVENT,
                0,
                fastjson.dumps(body),
                f"KEYS\x01{group}\x02DELAY\x010\x02TAGS\x01{group}".encode(),
                0,
                0,
                int(time.time() * 1000),
                self._store_host,
                self._store_host,
            )
        )
        if result.status is not PutMessageStatus.PUT_OK:
            logger.warning(
                "offset-moved event not stored",
                extra={"event": "offset_moved_not_stored", "group": group, "why": result.status.name},
            )

    def _may_store(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._stored_in_second = second, 0
        self._stored_in_second += 1
        return self._stored_in_second <= EVENTS_A_SECOND_MAX
