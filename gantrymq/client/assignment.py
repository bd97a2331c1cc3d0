"""Assignment: the queues a consumer holds, kept equal to its share of the group's topics.

Rebalancing takes and releases queues; a taken queue gets a process queue and a pull loop, a released one's offset is
written. One change at a time: taking, releasing and resetting never overlap.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from gantrymq.client.background import Background
from gantrymq.client.offset_store import OffsetStore
from gantrymq.client.process_queue import ProcessQueue
from gantrymq.client.rebalance import AllocateStrategy, share_of
from gantrymq.client.session import ClientSession
from gantrymq.client.start_offset import StartAt, start_offset
from gantrymq.client.subscription import MessageModel
from gantrymq.errors import ConnectError, GantryError, ResponseError, RouteNotFound
from gantrymq.message.model import MessageQueue

logger = logging.getLogger(__name__)

REBALANCE_S = 20.0  # RocketMQ: rocketmq.client.rebalance.waitInterval
SOON_S = 1.0  # until the next try when a round of rebalancing could not finish; doubles each time


class Assignment:
    """The queues of one consumer. `keep_pulling` is the pull loop of a process queue, started in `background`.

    `rebalance_wanted` wakes the consumer's rebalance loop; `not_registered` is called when brokers don't know us.
    """

    def __init__(
        self,
        session: ClientSession,
        group: str,
        *,
        model: MessageModel,
        strategy: AllocateStrategy,
        start_at: StartAt,
        offsets: OffsetStore,
        background: Background,
        keep_pulling: Callable[[ProcessQueue], Coroutine[Any, Any, None]],
        not_registered: Callable[[], None],
    ) -> None:
        self.held: dict[MessageQueue, ProcessQueue] = {}
        self.rebalance_wanted = asyncio.Event()
        self._session = session
        self._group = group
        self._model = model
        self._strategy = strategy
        self._start_at = start_at
        self._offsets = offsets
        self._background = background
        self._keep_pulling = keep_pulling
        self._not_registered = not_registered
        self._pulls: dict[MessageQueue, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        self._again_s = SOON_S
        self._is_closed = False

    async def rebalance(self, topics: Iterable[str]) -> None:
        """Take and release queues until those held are our share of every one of the topics."""
        wanted = list(topics)
        is_complete = True
        for topic in wanted:
            try:
                share = await self._share(topic)
                if share is not None:
                    is_complete &= await self._hold(topic, share)
            except RouteNotFound:
                is_complete = False  # nobody has sent to it yet
            except GantryError as exc:
                is_complete = False
                logger.warning(
                    "rebalance failed", extra={"event": "rebalance_failed", "topic": topic, "error": str(exc)}
                )
        for topic in {queue.topic for queue in self.held}.difference(wanted):
            await self._hold(topic, [])
        if is_complete:
            self._again_s = SOON_S
        elif self._again_s < REBALANCE_S:
            asyncio.get_running_loop().call_later(self._again_s, self.rebalance_wanted.set)
            self._again_s *= 2  # what is missing for long is looked for at the usual pace

    async def restart(self, offsets: dict[MessageQueue, int]) -> None:
        """Forget what is held of these queues and go on at the given offsets; others' queues are left alone."""
        async with self._changing:
            if self._is_closed:
                return
            mine = [queue for queue in offsets if queue in self.held]
            for queue in mine:
                self.held.pop(queue).drop()
                self._pulls.pop(queue).cancel()
                self._offsets.update(queue, offsets[queue])
            await self._offsets.persist(mine)
            for queue in mine:
                self._pull_from(queue, offsets[queue])

    async def persist(self) -> None:
        """Write how far the held queues have come."""
        for queue, process_queue in self.held.items():
            self._offsets.update(queue, process_queue.commit_offset)
        await self._offsets.persist(list(self.held))

    def close(self) -> None:
        """Take nothing more; what is held stays, for a last `persist`."""
        self._is_closed = True

    async def _share(self, topic: str) -> list[MessageQueue] | None:
        """Our queues of the topic, None when that can't be said now."""
        route = await self._session.routes.to_read(topic)
        self._session.meet_brokers()
        if self._model is MessageModel.BROADCASTING:
            return list(route.readable)
        addresses = [found for name in route.addresses if (found := self._session.routes.address_to_read(name))]
        if not addresses:
            raise ConnectError(topic, "no broker of this topic has an address")
        try:
            members = await self._session.calls.consumer_ids(random.choice(addresses)[0], self._group)
        except ResponseError:
            members = []  # the group is unknown to this broker: so are we
        if self._session.client_id not in members:
            self._not_registered()  # which asks for another round
            return None
        return share_of(self._session.client_id, route.readable, members, self._strategy)

    async def _hold(self, topic: str, share: Iterable[MessageQueue]) -> bool:
        """Release what is not in the share, take what is new; say if all could be taken."""
        wanted = set(share)
        async with self._changing:
            released = [queue for queue in self.held if queue.topic == topic and queue not in wanted]
            taken = sorted(wanted - self.held.keys())
            if released:
                await self._release(released)
            outcomes = await asyncio.gather(*map(self._take, taken), return_exceptions=True)
        for queue, outcome in zip(taken, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                logger.warning(
                    "queue not taken",
                    extra={"event": "queue_not_taken", "queue": str(queue), "error": str(outcome)},
                )
            elif isinstance(outcome, BaseException):
                raise outcome
        if released or taken:
            logger.info(
                "queues changed",
                extra={
                    "event": "queues_changed",
                    "group": self._group,
                    "topic": topic,
                    "taken": len(taken),
                    "released": len(released),
                    "held": len(wanted),
                },
            )
        return all(outcome is None for outcome in outcomes)

    async def _take(self, queue: MessageQueue) -> None:
        self._pull_from(queue, await start_offset(self._session, self._offsets, queue, self._start_at))

    def _pull_from(self, queue: MessageQueue, offset: int) -> None:
        process_queue = self.held[queue] = ProcessQueue(queue, offset)
        self._pulls[queue] = self._background.start(
            self._keep_pulling(process_queue), f"pull {queue.topic}/{queue.broker_name}/{queue.queue_id}"
        )

    async def _release(self, queues: Iterable[MessageQueue]) -> None:
        """Give queues up: nothing of them counts from now on, what was done is written."""
        released = list(queues)
        for queue in released:
            process_queue = self.held.pop(queue)
            self._offsets.update(queue, process_queue.commit_offset)
            process_queue.drop()
            self._pulls.pop(queue).cancel()
        await self._offsets.persist(released)
        for queue in released:
            self._offsets.forget(queue)
