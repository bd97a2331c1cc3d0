"""Who may consume a queue in order: one client of a group at a time, for as long as it keeps asking.

Memory only. A lock that is not renewed for 60 s is free (RocketMQ: rocketmq.broker.rebalance.lockMaxLiveTime); clients
renew every 20 s and stop consuming after 30 s without an answer, so two never hold one queue. That is also why a
connection that closes frees no locks: its client may only have lost the network, and still consume.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gantrymq.message.model import MessageQueue

logger = logging.getLogger(__name__)

LOCK_LIFE_S = 60.0
LOCKS_MAX = 1_000_000  # of all groups; a client may name queues that don't exist


class QueueLock(NamedTuple):
    """client_id holds the queue until `expires_at` on the manager's clock."""

    client_id: str
    expires_at: float


class RebalanceLockManager:
    """The locks of all groups."""

    def __init__(
        self,
        *,
        life_s: float = LOCK_LIFE_S,
        locks_max: int = LOCKS_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._life_s = life_s
        self._locks_max = locks_max
        self._count = 0
        self._clock = clock
        self._locks: dict[str, dict[MessageQueue, QueueLock]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Lock or renew the queues for the client; return those it holds now."""
        now = self._clock()
        locks = self._locks.setdefault(group, {})
        held: list[MessageQueue] = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None:
                if self._count >= self._locks_max:
                    continue
                self._count += 1
            elif lock.client_id != client_id:
                if lock.expires_at > now:
                    continue
                logger.warning(
                    "queue lock expired, another client has it now",
                    extra={
                        "event": "queue_lock_expired",
                        "group": group,
                        "topic": queue.topic,
                        "queue_id": queue.queue_id,
                        "before": lock.client_id,
                        "now": client_id,
                    },
                )
            locks[queue] = QueueLock(client_id, now + self._life_s)
            held.append(queue)
        if not locks:
            del self._locks[group]
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release those of the queues that the client holds."""
        locks = self._locks.get(group)
        if locks is None:
            return
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
                self._count -= 1
        if not locks:
            del self._locks[group]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """Return the client that holds the queue, None when it is free."""
        lock = self._locks.get(group, {}).get(queue)
        return lock.client_id if lock is not None and lock.expires_at > self._clock() else None

    def drop_expired(self) -> None:
        """Forget locks nobody renewed: called now and then, so that clients which vanished leave nothing behind."""
        now = self._clock()
        for group, locks in list(self._locks.items()):
            for queue in [queue for queue, lock in locks.items() if lock.expires_at <= now]:
                del locks[queue]
                self._count -= 1
            if not locks:
                del self._locks[group]
