"""Groups that read from far behind the log's end are suspended, if that is switched on (RocketMQ: protectBroker).

Reading what has long left memory costs disk time that all others need. Every three minutes the guard looks
how far behind the log's end each group's last pulls were, in bytes (GROUP_GET_FALL_SIZE); a group beyond
`consumerFallbehindThreshold` gets consumeEnable=false, so its pulls are refused with NO_PERMISSION.

RocketMQ never lifts that again. Here the guard does, for groups that it suspended itself, once the offsets they have
committed are near enough: after an operator moved them forward, or when retention has deleted what was too old. What
is suspended is known in memory only, there and here: a restart lifts it, and so does setting the group by request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from appliance.process.cooperative import Slices

if TYPE_CHECKING:
    from appliance.broker.delivery.consume_lag import StoreTimes
    from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
    from appliance.broker.groups.subscription_group import SubscriptionGroupManager
    from appliance.settings.roles import BrokerConfig
    from store.message_store import MessageStore

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 180.0
PLACES_A_SLICE = 64  # looked at before others have a turn: each may take a read of its queue's file
READS_KEPT = 100_000  # places in queues that groups read since the last look; further ones wait for the next


class Place(NamedTuple):
    """A group's place in one queue."""

    group: str
    topic: str
    queue_id: int


class SlowConsumerGuard:
    """Watches how far behind groups read. note_read() is called by pulls while the setting is on."""

    def __init__(
        self,
        config: BrokerConfig,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetManager,
        store: MessageStore,
        times: StoreTimes,
    ) -> None:
        self._config = config
        self._groups = groups
        self._offsets = offsets
        self._store = store
        self._times = times
        self._reads: dict[Place, int] = {}
        self.behind_bytes_max = 0  # of any group, at the last look

    def note_read(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """A group was given messages up to `next_offset`."""
        place = Place(group, topic, queue_id)
        if place in self._reads or len(self._reads) < READS_KEPT:
            self._reads[place] = next_offset

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            await self.look()

    async def look(self) -> None:
        """Suspend who reads from too far behind, resume who no longer does."""
        reads, self._reads = self._reads, {}
        if not self._config.disable_slow_consumers:
            for group in self._groups.suspended:
                self._resume(group, "the protection is switched off")
            self.behind_bytes_max = 0
            return
        slices = Slices(PLACES_A_SLICE)
        behind: dict[Place, int] = {}
        for place, offset in reads.items():
            behind[place] = self._behind_bytes(place, offset)
            await slices.step()
        self.behind_bytes_max = max(behind.values(), default=0)
        for group in self._groups.suspended:
            if await self._is_near(group, slices) and group in self._groups.suspended:
                self._resume(group, "it is near the log's end again")
        for place, size_bytes in behind.items():
            if size_bytes > self._config.consumer_fall_behind_bytes and self._groups.suspend(place.group):
                stored_ms = self._times.at(place.topic, place.queue_id, reads[place])
                logger.warning(
                    "group suspended: it reads from too far behind",
                    extra={
                        "event": "group_suspended",
                        "group": place.group,
                        "topic": place.topic,
                        "queue_id": place.queue_id,
                        "behind_bytes": size_bytes,
                        "behind_seconds": int(time.time() - stored_ms / 1000) if stored_ms > 0 else None,
                    },
                )

    def _behind_bytes(self, place: Place, offset: int) -> int:
        """How much was stored, in all queues together, since the next message that the group will read."""
        first = max(offset, self._store.min_offset(place.topic, place.queue_id))
        units = self._store.consume_queue_units(place.topic, place.queue_id, first, 1)
        return self._store.max_physical_offset - units[0].physical_offset if units else 0

    async def _is_near(self, group: str, slices: Slices) -> bool:
        """False for a group without offsets too: where its members are is not known here."""
        limit = self._config.consumer_fall_behind_bytes
        is_anywhere = False
        for topic in self._offsets.topics_of(group):
            for queue_id, offset in self._offsets.offsets(topic, group).items():
                is_anywhere = True
                if self._behind_bytes(Place(group, topic, queue_id), offset) > limit:
                    return False
                await slices.step()
        return is_anywhere

    def _resume(self, group: str, why: str) -> None:
        self._groups.resume(group)
        logger.info("group resumed", extra={"event": "group_resumed", "group": group, "why": why})
