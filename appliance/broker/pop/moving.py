"""A group that changes between pulling and popping takes along what it will consume again.

A group that pulls consumes again from `%RETRY%group`, one that pops from `%RETRY%group_topic`. Before a group pulls,
what it has out and what waits in the retry topic of its pops goes to the other one, and its offset behind it. While a
group pops, what is left in `%RETRY%group` (some of it comes hours later) follows, unless a member of the group reads it
by pulling, as RocketMQ's Java consumers do. The disk has a message in its new place before its old one counts as done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

from appliance.broker.pop.lease_book import LeaseBook
from appliance.broker.pop.leases import Key
from appliance.broker.pop.modes import Modes
from appliance.broker.pop.redelivery import RETRY_QUEUES, PopServiceParts, Redelivery
from appliance.errors import BrokerError
from appliance.process.cooperative import in_slices, slice_scheduler
from gantrymq.errors import GantryError, MessageRejected, RecordError
from gantrymq.message.properties import RETRY_TOPIC, find_property
from gantrymq.message.record import split_record
from gantrymq.message.topics import pop_retry_topic, retry_topic
from gantrymq.remoting.codes import ResponseCode
from store.base.errors import NotReadableNow
from store.base.running_state import RunningFlags

logger = logging.getLogger(__name__)

LOOK_S = 1.0
A_SLICE = 64  # messages, before others have a turn


class Moving:
    """One broker's. modes: set by the service, before anything moves."""

    modes: Modes

    def __init__(self, parts: PopServiceParts, book: LeaseBook, redelivery: Redelivery) -> None:
        self._parts = parts
        self._book = book
        self._redelivery = redelivery
        self._tasks: set[asyncio.Task[None]] = set()

    # -- to pulling ---------------------------------------------------------------------------------------------------

    def leave_soon(self, topic: str, group: str) -> None:
        """Have a group leave POP in the background."""
        task = asyncio.get_running_loop().create_task(self._leave_or_log(topic, group))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _leave_or_log(self, topic: str, group: str) -> None:
        try:
            await self.leave(topic, group)
        except GantryError as exc:
            facts = {"event": "pop_not_left", "group": group, "topic": topic, "why": str(exc)}
            logger.warning("a group can't change from POP to pulling", extra=facts)

    async def leave(self, topic: str, group: str) -> None:
        """Have a group pull the topic from now on. BrokerError when a message can't be stored now: it still pops."""
        modes, place = self.modes, (topic, group)
        if place in modes.leaving:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"the group {group} is leaving POP of topic {topic} already")
        modes.leaving.add(place)
        modes.popping.setdefault(place, 0.0)
        try:
            await self._move_all(topic, group)
        finally:
            modes.leaving.discard(place)
        modes.popping.pop(place, None)

    async def _move_all(self, topic: str, group: str) -> None:
        target = self._parts.topics.create_retry_topic(retry_topic(group), RETRY_QUEUES).topic_name
        own_retry = pop_retry_topic(group, topic)
        keys = self._book.of(group, topic, own_retry)
        leases = [(key, offset) for key in keys for offset in self._book.queues[key].leases]
        async for key, offset in in_slices(leases, A_SLICE):
            queue = self._book.queue(key)
            lease = queue.leases.get(offset) if queue is not None else None
            if lease is not None and not lease.is_over:  # not acknowledged meanwhile
                self._move(key, offset, target, times=1)
                self._redelivery.end_once_safe(key, offset, lease)
        waiting = list(self._waiting(group, own_retry))
        async for key, offset in in_slices(waiting, A_SLICE):
            self._move(key, offset, target, times=0)
        if not await self._parts.store.until_flushed():
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "the disk is too slow: what was moved may come twice")
        for key, offset in waiting:
            self._book.go_to(key, offset + 1)

    def _move(self, key: Key, offset: int, target: str, *, times: int) -> None:
        if not self._redelivery.give_back(key, offset, int(time.time() * 1000), target=target, times=times):
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"a message of {key.topic} can't be stored in {target} now")

    def _waiting(self, group: str, topic: str) -> Iterator[tuple[Key, int]]:
        """Yield what of a topic the group has not had: key and offset."""
        for key, start in self._starts(group, topic):
            for offset in range(start, self._parts.store.shown_max_offset(topic, key.queue_id)):
                yield key, offset

    def _starts(self, group: str, topic: str) -> Iterator[tuple[Key, int]]:
        """Yield from where on the group has not had a topic's messages, by queue."""
        config = self._parts.topics.configs.get(topic)
        for queue_id in range(config.read_queue_nums if config is not None else 0):
            key = Key(group, topic, queue_id)
            yield key, self._start(key)

    def _start(self, key: Key) -> int:
        queue = self._book.queues.get(key)
        start = queue.read_offset if queue is not None else self._parts.offsets.query(*key)
        return max(start, self._parts.store.min_offset(key.topic, key.queue_id))

    def has_waiting(self, topic: str, group: str) -> bool:
        """Whether messages wait in the retry topic of the group's pops, be they confirmed or not."""
        retry, end_of = pop_retry_topic(group, topic), self._parts.store.max_offset
        return any(start < end_of(retry, key.queue_id) for key, start in self._starts(group, retry))

    # -- to popping ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Bring retries from before to the groups that pop, and forget groups that pop no longer."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                async for topic, group in in_slices(list(self.modes.popping), A_SLICE):
                    if self.modes.pops(topic, group):
                        await self.follow(group)
        finally:
            for task in self._tasks:
                task.cancel()

    async def follow(self, group: str) -> None:
        """Bring what waits in the group's retry topic to those of its pops."""
        old = retry_topic(group)
        if old not in self._parts.topics.configs or self._parts.consumers.find_subscription(group, old) is not None:
            return
        async for key, _start in in_slices(list(self._starts(group, old)), A_SLICE):
            end = self._parts.store.shown_max_offset(old, key.queue_id)
            while await self._follow_slice(key, end):
                await slice_scheduler().next_turn()

    async def _follow_slice(self, key: Key, end: int) -> bool:
        """Bring some of what waits in a queue, up to the first that has to stay; return whether there may be more."""
        offset = start = self._start(key)
        while offset < min(start + A_SLICE, end) and self._bring(key, offset):
            offset += 1
        there = self._parts.offsets.query(*key)
        if offset == start or not await self._are_on_disk() or self._parts.offsets.query(*key) != there:
            return False  # nothing to note, or a tool has set the group meanwhile
        self._book.go_to(key, offset)
        return offset < end

    async def _are_on_disk(self) -> bool:
        """Wait for what was stored, however slow the disk is: from the old offset on all would be stored once more.

        False: the disk has failed, and nothing is stored until a restart.
        """
        store = self._parts.store
        end = store.max_physical_offset
        while not await store.until_flushed(end):
            if store.flags & RunningFlags.SYNC_ERROR:
                return False
        return True

    def _bring(self, key: Key, offset: int) -> bool:
        """Store a retry for the group's pops. False: not now, so what is behind it in its queue waits."""
        topics, group = self._parts.topics, key.group
        try:
            self._book.begin(key)  # so that there is room for its offset
            topic = self._topic_of(key, offset)
            if topic is None:
                return True
            if topic not in topics.configs:  # no client pops it here
                target = topics.create_dlq_topic(group).topic_name
            elif self.modes.pops(topic, group) and (topic, group) not in self.modes.leaving:
                target = self._redelivery.retry_topic(group, topic)
            else:
                return False
        except (NotReadableNow, MessageRejected):
            return False
        return self._redelivery.give_back(key, offset, int(time.time() * 1000), target=target, times=0)

    def _topic_of(self, key: Key, offset: int) -> str | None:
        """What a retry is of; None: it is gone, or does not say. NotReadableNow."""
        record = self._parts.store.message_at(key.topic, key.queue_id, offset)
        try:
            fields = split_record(record) if record is not None else None
        except RecordError:
            return None
        topic = find_property(fields.properties, RETRY_TOPIC.encode()) if fields is not None else None
        return topic.decode(errors="replace") if topic else None
