"""The brokers' locks on the queues of an ordered consumer: at most one client of a group consumes a locked queue.

Asked for when a queue is taken, renewed each 20 s, given back when the queue is released. A broker forgets a lock 60 s
after its last renewal, and soon after the connection of its holder broke. The consumer stops 30 s after the renewal,
and as soon as the connection is gone. A lock that was lost, or that another client may have had in between, is
reported: the queue has to be taken anew, at the offset the broker knows by then.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import Iterable

from gantrymq.client.connection.session import ClientSession
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import LockBatchRequest, LockBatchResponse
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.connection import ClientConnection

logger: logging.Logger = logging.getLogger(__name__)

RENEW_S = 20.0  # RocketMQ: rocketmq.client.rebalance.lockInterval
VALID_S = 30.0  # RocketMQ: rocketmq.client.rebalance.lockMaxLiveTime
BROKER_FORGETS_S = 60.0  # RocketMQ: rocketmq.broker.rebalance.lockMaxLiveTime
BROKER_WAITS_S = 0.8  # for a client whose connection broke: queueLockGraceTime is 1 s
LOCK_TIMEOUT_S = 1.0  # as Java asks; the next round is the retry
QUEUES_A_REQUEST = 512  # half of what a broker takes (lockQueuesMax)


class QueueLocks:
    """The locks of one consumer. `renew_wanted` is set when a renewal should not wait for its round."""

    def __init__(self, session: ClientSession, group: str) -> None:
        self.renew_wanted: asyncio.Event = asyncio.Event()
        self._session = session
        self._group = group
        self._namespace = session.namespace
        self._locked_at: dict[MessageQueue, float] = {}
        self._locked_over: dict[MessageQueue, ClientConnection | None] = {}
        self._watched: weakref.WeakSet[ClientConnection] = weakref.WeakSet()

    def holds(self, queue: MessageQueue) -> bool:
        """Whether this client has the queue's lock for certain."""
        locked_at, connection = self._locked_at.get(queue), self._locked_over.get(queue)
        is_fresh = locked_at is not None and time.monotonic() - locked_at < VALID_S
        if is_fresh and (connection is None or not connection.is_closing):
            return True
        self.renew_wanted.set()
        return False

    def locked_at(self, queue: MessageQueue) -> float | None:
        """When the broker last confirmed the lock (time.monotonic()); None without a lock."""
        return self._locked_at.get(queue)

    async def lock(self, queues: Iterable[MessageQueue]) -> tuple[set[MessageQueue], set[MessageQueue]]:
        """Lock those of the queues that can be locked now; return them, and those that another member has."""
        asked_at = time.monotonic()  # the broker counts from no later than its answer, which may be read long after
        locked, answered = await self._ask(queues)
        for queue in locked:
            self._note(queue, asked_at)
        return locked, answered - locked

    async def renew(self) -> set[MessageQueue]:
        """Renew every lock held; return the queues whose lock was lost."""
        asked_at = time.monotonic()
        before = dict(self._locked_at)
        locked, answered = await self._ask(before)
        lost: set[MessageQueue] = set()
        for queue in answered:
            if queue not in self._locked_at:
                continue  # released meanwhile
            if queue in locked and asked_at - before[queue] < BROKER_FORGETS_S and not self._was_away(queue):
                self._note(queue, asked_at)
            else:
                lost.add(queue)
        if lost:
            logger.warning(
                "queue locks lost (group=%s, queues=%s)",
                self._group,
                len(lost),
                extra={"event": "queue_locks_lost", "group": self._group, "queues": len(lost)},
            )
        return lost

    def _note(self, queue: MessageQueue, locked_at: float) -> None:
        address = self._session.routes.address(queue.broker_name)
        connection = self._session.remoting.open_connection(address) if address is not None else None
        self._locked_at[queue] = locked_at
        self._locked_over[queue] = connection
        if connection is not None and connection not in self._watched:
            self._watched.add(connection)
            connection.when_lost(self.renew_wanted.set)

    def _was_away(self, queue: MessageQueue) -> bool:
        """Whether the connection was missing for so long that the broker may have released the lock."""
        connection = self._locked_over.get(queue)
        if connection is None or not connection.is_closing:
            return False
        return connection.lost_at is None or time.monotonic() - connection.lost_at >= BROKER_WAITS_S

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Give locks back. A broker that can't be told forgets them by itself."""
        held = [queue for queue in queues if self._locked_at.pop(queue, None) is not None]
        for queue in held:
            self._locked_over.pop(queue, None)
        answers = (self._call(RequestCode.UNLOCK_BATCH_MQ, address, part) for address, part in self._by_broker(held))
        for outcome in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(outcome, GantryError):
                logger.info("not unlocked: %s", outcome, extra={"event": "not_unlocked", "error": str(outcome)})
            elif isinstance(outcome, BaseException):
                raise outcome

    async def _ask(self, queues: Iterable[MessageQueue]) -> tuple[set[MessageQueue], set[MessageQueue]]:
        """The queues that are locked for this client now, and those whose broker answered at all."""
        parts = self._by_broker(queues)
        answers = (self._call(RequestCode.LOCK_BATCH_MQ, address, part) for address, part in parts)
        locked: set[MessageQueue] = set()
        answered: set[MessageQueue] = set()
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        for (address, part), outcome in zip(parts, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                self._session.outages.failed("locking queues", address, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._session.outages.worked("locking queues", address)
                answered.update(part)
                locked.update(map(self._namespace.unwrap_queue, LockBatchResponse.from_json(outcome).lock_ok_mq_set))
        return locked & answered, answered

    def _by_broker(self, queues: Iterable[MessageQueue]) -> list[tuple[str, list[MessageQueue]]]:
        """The queues as requests name them: each to their master, which alone keeps locks. Those without one are left
        out."""
        parts: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            address = self._session.routes.address(queue.broker_name)
            if address is not None:
                parts.setdefault(address, []).append(queue)
        return [
            (address, part[start : start + QUEUES_A_REQUEST])
            for address, part in parts.items()
            for start in range(0, len(part), QUEUES_A_REQUEST)
        ]

    async def _call(self, code: RequestCode, address: str, queues: list[MessageQueue]) -> bytes:
        whole = [self._namespace.wrap_queue(queue) for queue in queues]
        body = LockBatchRequest(self._namespace.wrap(self._group), self._session.client_id, whole).to_json()
        return (await self._session.calls.call(address, code, None, body, timeout_s=LOCK_TIMEOUT_S)).body
