"""Who may consume a queue in order: one client of a group at a time, for as long as it keeps asking.

Memory only. A lock that is not renewed for 60 s is free (RocketMQ: rocketmq.broker.rebalance.lockMaxLiveTime); clients
renew every 20 s and stop consuming after 30 s without an answer, so two never hold one queue.

A client whose last connection broke is mostly dead, and its queues would stand still for most of a minute: its locks go
after queueLockGraceTime, unless it is heard of again by then. One that only lost its connection and takes longer to
come back may still work on what it had pulled (docs/operations/consumers.md says which clients do); -1 leaves such
locks to expire.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from appliance.process.cooperative import Slices
from gantrymq.log_limit import LogLimit
from gantrymq.message.model import MessageQueue

logger = logging.getLogger(__name__)

LOCK_LIFE_S = 60.0
LOCKS_MAX = 1_000_000  # of all groups; as in RocketMQ a client may name groups and queues that don't exist
LOCKS_OF_A_HOST_MAX = 250_000  # so that one host does not keep the others from locking
LOCKS_A_SLICE = 1024


class QueueLock(NamedTuple):
    """client_id, on a host, holds the queue until `expires_at` on the manager's clock."""

    client_id: str
    expires_at: float
    host: str


class RebalanceLockManager:
    """The locks of all groups."""

    def __init__(
        self,
        *,
        life_s: float = LOCK_LIFE_S,
        locks_max: int = LOCKS_MAX,
        locks_of_a_host_max: int = LOCKS_OF_A_HOST_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._life_s = life_s
        self._locks_max = locks_max
        self._locks_of_a_host_max = locks_of_a_host_max
        self._count = 0
        self._of_hosts: Counter[str] = Counter()
        self._of_clients: Counter[str] = Counter()
        self._gone: dict[str, float] = {}  # clients that hold locks, to when these go
        self._log_limit = LogLimit()
        self._clock = clock
        self._locks: dict[str, dict[MessageQueue, QueueLock]] = {}

    def __len__(self) -> int:
        """Locks that take room: those that expired count until `drop_expired` forgets them."""
        return self._count

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue], *, host: str = "") -> list[MessageQueue]:
        """Lock or renew the queues for the client, which is on a host; return those it holds now."""
        now = self._clock()
        self._gone.pop(client_id, None)
        locks = self._locks.setdefault(group, {})
        held: list[MessageQueue] = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id != client_id and not self._is_free(lock, now):
                continue
            if not self._has_room(lock, host):
                continue
            if lock is not None:
                if lock.client_id != client_id:
                    self._tell_passed_on(group, queue, lock, client_id, host)
                self._leave(lock)
            self._count += 1
            self._of_hosts[host] += 1
            self._of_clients[client_id] += 1
            locks[queue] = QueueLock(client_id, now + self._life_s, host)
            held.append(queue)
        if not locks:
            del self._locks[group]
        return held

    def _has_room(self, before: QueueLock | None, host: str) -> bool:
        """Whether a lock of the host may take the place of the one before, or a place of its own."""
        if before is not None and before.host == host:
            return True
        if self._of_hosts[host] >= self._locks_of_a_host_max:
            return False
        return before is not None or self._count < self._locks_max

    def _leave(self, lock: QueueLock) -> None:
        self._count -= 1
        self._of_hosts[lock.host] -= 1
        if not self._of_hosts[lock.host]:
            del self._of_hosts[lock.host]
        self._of_clients[lock.client_id] -= 1
        if not self._of_clients[lock.client_id]:
            del self._of_clients[lock.client_id]
            self._gone.pop(lock.client_id, None)

    def _is_free(self, lock: QueueLock, now: float) -> bool:
        """Whether another client may have the queue."""
        return lock.expires_at <= now or self._gone.get(lock.client_id, now + 1) <= now

    def _tell_passed_on(self, group: str, queue: MessageQueue, before: QueueLock, now: str, host: str) -> None:
        facts = {
            "group": group,
            "topic": queue.topic,
            "queue_id": queue.queue_id,
            "before": before.client_id,
            "now": now,
        }
        if before.client_id in self._gone:
            if self._log_limit.allows("queue_lock_left", host):
                logger.info(
                    "queue lock of a disconnected client, another has it now",
                    extra={"event": "queue_lock_left"} | facts,
                )
        elif self._log_limit.allows("queue_lock_expired", host):
            logger.warning(
                "queue lock expired, another client has it now", extra={"event": "queue_lock_expired"} | facts
            )

    # -- clients that come and go -------------------------------------------------------------------------------------

    def client_gone(self, client_id: str, grace_s: float) -> bool:
        """The client's last connection closed: its locks go after the grace. Returns whether it holds any."""
        if not self._of_clients[client_id]:
            return False
        self._gone[client_id] = self._clock() + grace_s
        return True

    def client_back(self, client_id: str) -> None:
        """The client was heard of: it keeps what no other client took."""
        self._gone.pop(client_id, None)

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release those of the queues that the client holds."""
        locks = self._locks.get(group)
        if locks is None:
            return
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
                self._leave(lock)
        if not locks:
            del self._locks[group]

    def holder(self, group: str, queue: MessageQueue) -> str | None:
        """Return the client that holds the queue, None when it is free."""
        lock = self._locks.get(group, {}).get(queue)
        return lock.client_id if lock is not None and not self._is_free(lock, self._clock()) else None

    async def drop_expired(self) -> None:
        """Forget locks that were not renewed: called now and then, so that vanished clients leave nothing behind."""
        slices = Slices(LOCKS_A_SLICE)
        for group in list(self._locks):
            await slices.step()
            for queue in list(self._locks.get(group, ())):
                await slices.step()
                locks = self._locks.get(group, {})
                lock = locks.get(queue)
                if lock is None or not self._is_free(lock, self._clock()):
                    continue
                del locks[queue]
                self._leave(lock)
                if not locks:
                    del self._locks[group]
