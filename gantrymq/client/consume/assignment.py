"""Assignment: the queues a consumer holds, kept equal to its share of the group's topics.

Rebalancing takes and releases queues; a taken queue gets a process queue and a pull loop, a released one's offset is
written. One change at a time: taking, releasing and resetting never overlap.

An ordered consumer takes a queue only with the broker's lock, and hands it over when its last listener call has ended:
the next owner must not begin before. Its lock is kept up meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.callbacks import tell
from gantrymq.client.connection.session import MISSING_MAX_S, REJOIN_S, ClientSession
from gantrymq.client.consume.offset_store import OffsetStore, start_offset
from gantrymq.client.consume.options import ConsumerOptions
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.queue_locks import QueueLocks
from gantrymq.client.consume.rebalance import share_of
from gantrymq.client.consume.subscription import MessageModel
from gantrymq.errors import ConnectError, GantryError, ResponseError, RouteNotFound
from gantrymq.message.model import MessageQueue

logger: logging.Logger = logging.getLogger(__name__)

TAKE = "taking a queue"
REBALANCE_S = 20.0  # RocketMQ: rocketmq.client.rebalance.waitInterval
SOON_S = 1.0  # until the next try when a round of rebalancing could not finish; doubles each time


ShareOf = Callable[[str], Awaitable[list[MessageQueue] | None]]


def finished_offset(process_queue: ProcessQueue) -> int | None:
    """The offset to write for a push consumer: the smallest one that is not finished."""
    return process_queue.commit_offset


class GroupShare:
    """This client's share of a topic: all of it when broadcasting, else what the strategy makes of the members.

    `not_registered` is called with the address of a broker that does not list this client as a member.
    """

    def __init__(
        self,
        session: ClientSession,
        options: ConsumerOptions,
        not_registered: Callable[[str], None],
    ) -> None:
        self._session = session
        self._group = options.group
        self._model = options.model
        self._strategy = options.strategy
        self._not_registered = not_registered
        self._members: frozenset[str] = frozenset()  # when this client's share was said last

    async def __call__(self, topic: str) -> list[MessageQueue] | None:
        """This client's queues of the topic, None when that can't be said now."""
        route = await self._session.routes.to_read(topic)
        self._session.meet_brokers()
        if self._model is MessageModel.BROADCASTING:
            return list(route.readable)
        addresses = [found for name in route.addresses if (found := self._session.routes.address_to_read(name))]
        if not addresses:
            raise ConnectError(topic, "no broker of this topic has an address")
        known_long = [found for found in addresses if not self._session.is_just_back(found[0])]
        address, _is_master = random.choice(known_long or addresses)
        try:
            members = await self._session.calls.consumer_ids(address, self._group)
        except ResponseError:
            members = []  # the group is unknown to this broker, and so is this client
        if self._session.client_id not in members:
            self._not_registered(address)  # which asks for another round
            return None
        if self._session.is_just_back(address, MISSING_MAX_S) and not self._members.issubset(members):
            return None  # the others know newer offsets of their queues than the broker, and are about to come back
        self._members = frozenset(members)
        return share_of(self._session.client_id, route.readable, members, self._strategy)


class Assignment:
    """The queues of one consumer. `share` says which they should be, `keep_pulling` is the pull loop of one of them,
    started in `background`; `commit_offset` says what to write of one, None for nothing. `locks`: only when ordered.

    `rebalance_wanted` wakes the consumer's rebalance loop.
    """

    def __init__(
        self,
        session: ClientSession,
        options: ConsumerOptions,
        *,
        share: ShareOf,
        offsets: OffsetStore,
        background: Background,
        keep_pulling: Callable[[ProcessQueue], Coroutine[Any, Any, None]],
        commit_offset: Callable[[ProcessQueue], int | None] = finished_offset,
        locks: QueueLocks | None = None,
    ) -> None:
        self.held: dict[MessageQueue, ProcessQueue] = {}
        self.rebalance_wanted: asyncio.Event = asyncio.Event()
        self._session = session
        self._options = options
        self._share = share
        self._offsets = offsets
        self._background = background
        self._keep_pulling = keep_pulling
        self._commit_offset = commit_offset
        self._locks = locks
        self._leaving: dict[MessageQueue, ProcessQueue] = {}  # ordered: their last listener call lasts
        self._unlocked: dict[MessageQueue, ProcessQueue] = {}  # ordered: the broker lost their locks
        self._pulls: dict[MessageQueue, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        self._rounds = asyncio.Lock()
        self._told = asyncio.Event()  # that of its new queues the application knows
        self._told.set()
        self._again_s = SOON_S
        self._is_closed = False
        session.before_greeting = self._tell_again
        session.when_routes_changed = self.rebalance_wanted.set

    async def rebalance(self, topics: Iterable[str]) -> None:
        """Take and release queues until those held are this client's share of each topic. One round at a time: the
        application hears of changes before they happen, so no other round may come between."""
        async with self._rounds:
            await self._rebalance(topics)

    async def _rebalance(self, topics: Iterable[str]) -> None:
        wanted = list(topics)
        is_complete = True
        for topic in wanted:
            try:
                share = await self._share(topic)
                is_complete &= share is not None and await self._hold(topic, share)
                self._session.outages.worked("rebalance", topic)
            except RouteNotFound:
                is_complete = False  # no message was sent to it yet
            except GantryError as exc:
                is_complete = False
                self._look_for_brokers(topic, exc)
                self._session.outages.failed("rebalance", topic, exc)
        for topic in {queue.topic for queue in self.held}.difference(wanted):
            await self._hold(topic, [])
        if is_complete:
            self._again_s = SOON_S
        elif self._again_s < REBALANCE_S:
            asyncio.get_running_loop().call_later(self._again_s, self.rebalance_wanted.set)
            self._again_s *= 2  # what is missing for long is looked for at the usual pace

    def _look_for_brokers(self, topic: str, failure: GantryError) -> None:
        """After a lost broker: the topic may be elsewhere by now, and its route is not refreshed for half a minute."""
        if isinstance(failure, ConnectError):
            self._session.look_again_soon(topic, changed=self.rebalance_wanted.set)

    async def restart(self, offsets: dict[MessageQueue, int], *, persist: bool = True) -> None:
        """Forget what is held of these queues and go on at the given offsets. Queues that are not held are left alone.

        persist: write the offsets as the group's."""
        async with self._changing:
            if self._is_closed:
                return
            self._forget_unlocked(offsets)
            held = [queue for queue in offsets if queue in self.held]
            former = {queue: self._let_go(queue) for queue in held}
            for queue in held:
                former[queue].drop()
                if persist:
                    self._offsets.replace(queue, offsets[queue])
            if persist:
                await self._offsets.persist(held)
            for queue in held:
                self._pull_from(queue, offsets[queue], after=former[queue] if self._locks else None)

    async def renew_locks(self) -> None:
        """Keep the locks of an ordered consumer. Queues whose lock was lost are released: another member may have
        them. When the lock can be had again, and before another member had it, they go on where they were."""
        assert self._locks is not None
        lost = await self._locks.renew()
        if not lost:
            return
        async with self._changing:
            taken = [queue for queue in lost if queue in self.held]
            self._offsets.doubt(taken)  # no other client has the locks before they are given back below
            for queue in taken:
                process_queue = self._unlocked[queue] = self._let_go(queue)
                self._note_offset(queue, process_queue)
                process_queue.is_leaving = True  # a call in progress counts, if the lock comes back
            await self._offsets.persist(taken)
            for queue in taken:
                self._offsets.forget(queue)
            for queue in lost & self._leaving.keys():
                self._leaving[queue].drop()
            await self._locks.unlock(lost)
        await tell(self._options.on_revoked, sorted(taken), "on_revoked")
        self.rebalance_wanted.set()

    async def persist(self) -> None:
        """Write how far the held queues have come."""
        for queue, process_queue in self.held.items():
            self._note_offset(queue, process_queue)
        await self._offsets.persist(list(self.held))

    def may_commit(self, process_queue: ProcessQueue) -> bool:
        """Whether a pull may tell the broker how far the queue has come; otherwise `persist` looks first."""
        return not self._offsets.is_doubted(process_queue.queue)

    async def _tell_again(self, address: str) -> None:
        """The broker there was connected to again: it may have been started anew, and have lost the newest offsets.

        They are told before this client joins its group again, because other members go by them."""
        queues = [queue for queue in self.held if self._is_read_at(address, queue)]
        self._offsets.doubt(queues)
        for queue in queues:
            self._note_offset(queue, self.held[queue])
        await self._offsets.persist(queues)

    def _is_read_at(self, address: str, queue: MessageQueue) -> bool:
        found = self._session.routes.address_to_read(queue.broker_name)
        return found is not None and found[0] == address

    async def persist_offsets(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Write these offsets of held queues, whatever was finished."""
        for queue, offset in offsets.items():
            self._offsets.replace(queue, offset)
        await self._offsets.persist(list(offsets))

    def close(self) -> None:
        """Take nothing more; what is held stays, for `leave`."""
        self._is_closed = True

    async def leave(self) -> None:
        """Write how far the queues have come, and give back the locks. Nothing is consumed any more."""
        await tell(self._options.on_revoked, sorted(self.held), "on_revoked")
        for queue, process_queue in self._leaving.items():
            self._note_offset(queue, process_queue)
        await self._offsets.persist(list(self._leaving))
        await self.persist()
        if self._locks is not None:
            await self._locks.unlock([*self.held, *self._leaving])

    async def _hold(self, topic: str, share: Iterable[MessageQueue]) -> bool:
        """Release queues of the topic that are not in the share, take new ones; return whether all could be taken."""
        wanted = set(share)
        going = sorted(queue for queue in self.held if queue.topic == topic and queue not in wanted)
        await tell(self._options.on_revoked, going, "on_revoked")
        async with self._changing:
            released = [queue for queue in self.held if queue.topic == topic and queue not in wanted]
            self._forget_unlocked([queue for queue in self._unlocked if queue.topic == topic and queue not in wanted])
            taken = sorted(wanted - self.held.keys())
            if released:
                await self._release(released)
            may_take = await self._free_ones(taken)
            self._told.clear()
            try:
                outcomes = await asyncio.gather(*map(self._take, may_take), return_exceptions=True)
            except BaseException:
                self._told.set()
                raise
        try:
            await tell(self._options.on_assigned, [queue for queue in may_take if queue in self.held], "on_assigned")
        finally:
            self._told.set()
        for queue, outcome in zip(may_take, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                self._look_for_brokers(topic, outcome)
                self._session.outages.failed(TAKE, queue.broker_name, outcome, member=f"{topic}/{queue.queue_id}")
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._session.outages.worked(TAKE, queue.broker_name, member=f"{topic}/{queue.queue_id}")
        if released or may_take:
            logger.info(
                "queues changed (group=%s, topic=%s, taken=%s, released=%s, share=%s)",
                self._options.group,
                topic,
                len(may_take),
                len(released),
                len(wanted),
                extra={
                    "event": "queues_changed",
                    "group": self._options.group,
                    "topic": topic,
                    "taken": len(may_take),
                    "released": len(released),
                    "share": len(wanted),
                },
            )
        return len(may_take) == len(taken) and all(outcome is None for outcome in outcomes)

    async def _free_ones(self, queues: list[MessageQueue]) -> list[MessageQueue]:
        """Those of the queues that may be taken now; rebalancing looks for the others again."""
        free = [queue for queue in queues if not self._belongs_to_another(queue)]
        if len(free) < len(queues):
            asyncio.get_running_loop().call_later(REJOIN_S, self.rebalance_wanted.set)
        return free if self._locks is None else await self._lock(self._locks, free)

    def _belongs_to_another(self, queue: MessageQueue) -> bool:
        """Whether the queue may be another member's whose broker has just been started: that member joins again in a
        moment, with a newer offset than the broker's."""
        return queue not in self._unlocked and self._session.is_just_back(
            self._session.routes.address(queue.broker_name)
        )

    def _forget_unlocked(self, queues: Iterable[MessageQueue]) -> None:
        for queue in list(queues):
            if (former := self._unlocked.pop(queue, None)) is not None:
                former.drop()

    async def _lock(self, locks: QueueLocks, queues: list[MessageQueue]) -> list[MessageQueue]:
        """The queues that could be locked. A queue that is being handed over is not asked for before that is done."""
        wanted = [queue for queue in queues if queue not in self._leaving]
        locked, refused = await locks.lock(wanted) if wanted else (set(), set())
        self._forget_unlocked(refused)
        return [queue for queue in wanted if queue in locked]

    async def _take(self, queue: MessageQueue) -> None:
        """Go on at the group's offset, or further where this member's own calls have come since it lost the lock."""
        offset = await start_offset(self._session, self._offsets, queue, self._options)
        former = self._unlocked.pop(queue, None)
        self._pull_from(queue, offset if former is None else max(offset, former.commit_offset), after=former)

    def _pull_from(self, queue: MessageQueue, offset: int, *, after: ProcessQueue | None = None) -> None:
        process_queue = self.held[queue] = ProcessQueue(queue, offset, after=after)
        self._pulls[queue] = self._background.start(
            self._pull(process_queue), f"pull {queue.topic}/{queue.broker_name}/{queue.queue_id}"
        )

    async def _pull(self, process_queue: ProcessQueue) -> None:
        await self._told.wait()
        while not process_queue.was_dropped():
            try:
                await self._keep_pulling(process_queue)
                return
            except Exception:  # a held queue must not stay unread
                queue = str(process_queue.queue)
                logger.exception("pulling failed (queue=%s)", queue, extra={"event": "pulling_failed", "queue": queue})
            await asyncio.sleep(SOON_S)

    def _let_go(self, queue: MessageQueue) -> ProcessQueue:
        self._pulls.pop(queue).cancel()
        return self.held.pop(queue)

    async def _release(self, queues: Iterable[MessageQueue]) -> None:
        """Give queues up: their offsets are written, and nothing of them counts from now on; when ordered, from the
        end of the last listener call on."""
        released = {queue: self._let_go(queue) for queue in queues}
        busy = {queue: held for queue, held in released.items() if self._locks is not None and held.is_waited_for()}
        for queue, process_queue in busy.items():
            process_queue.is_leaving = True
            self._leaving[queue] = released.pop(queue)
            self._background.start(self._hand_over(queue, process_queue), "release queue")
        await self._write_and_forget(released)

    async def _hand_over(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        await process_queue.unused()
        async with self._changing:
            del self._leaving[queue]
            if not process_queue.was_dropped():
                await self._write_and_forget({queue: process_queue})

    async def _write_and_forget(self, queues: dict[MessageQueue, ProcessQueue]) -> None:
        for queue, process_queue in queues.items():
            self._note_offset(queue, process_queue)
            process_queue.drop()
        await self._offsets.persist(list(queues))
        for queue in queues:
            self._offsets.forget(queue)
        if self._locks is not None:
            await self._locks.unlock(queues)

    def _note_offset(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        offset = self._commit_offset(process_queue)
        if offset is not None and not process_queue.was_dropped():
            self._offsets.update(queue, offset)
