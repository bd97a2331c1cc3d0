"""The master's tables on their way to its slaves, between brokers of GantryMQ: what changed, twice a second.

A state goes out behind the log that it speaks of: a slave never has progress of messages that it does not have. It has
consumer offsets that changed, the progress of delayed and timed messages, and the versions of topics and groups, which
the slave asks for when they are not its own. Removed offsets stay on a slave, as with RocketMQ's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import orjson

from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.replication.ha_frames import FrameError
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.json_file import StateFileError
from gantrymq.remoting.bodies import DataVersion

logger = logging.getLogger(__name__)

INTERVAL_S = 0.5
KEYS_MAX = 2000  # in one state: about two milliseconds on the slave
WRITE_S = 1.0  # at most so often progress is written on a slave


class StateSource:
    """One master's tables. A slave's connection has a set of the offsets' keys that it has not been told."""

    def __init__(
        self,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetManager,
        schedule: ScheduleMessageService,
        timer: TimerService,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._schedule = schedule
        self._timer = timer

    def watch(self) -> set[str]:
        """A set that gets the keys of offsets that change; at first it has all."""
        return self._offsets.watch()

    def leave(self, untold: set[str]) -> None:
        self._offsets.unwatch(untold)

    async def take(self, untold: set[str]) -> bytes:
        """Return a state as of now; what it tells leaves `untold`."""
        await self._offsets.note_changes()
        keys = [untold.pop() for _ in range(min(len(untold), KEYS_MAX))]
        table = self._offsets.table
        seen, delivered_ms = self._timer.on_record
        state = {
            "offsets": {key: table[key] for key in keys if key in table},
            "delays": self._schedule.offsets,
            "timer": [seen, delivered_ms],
            "versions": versions(self._topics, self._groups),
        }
        return orjson.dumps(state, option=orjson.OPT_NON_STR_KEYS)


class StateSink:
    """A slave's end: tables in memory at once, progress on disk each second and at the end."""

    def __init__(
        self,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetManager,
        schedule: ScheduleMessageService,
        timer: TimerService,
        *,
        ask_tables: Callable[[], None],
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._schedule = schedule
        self._timer = timer
        self._ask_tables = ask_tables
        self._versions: list[list[int]] | None = None  # the master's, when it last told them
        self._progress = (0, 0)
        self._written = (0, 0)
        self.taken_at = 0.0  # monotonic: when the last state came

    @property
    def has_tables(self) -> bool:
        """Whether topics and groups are those that the master told of last."""
        return self._versions is None or self._versions == versions(self._topics, self._groups)

    def take(self, body: bytes) -> None:
        """Take over a state. FrameError."""
        try:
            state: dict[str, Any] = orjson.loads(body)
            offsets = {str(key): _numbers(queues) for key, queues in state["offsets"].items()}
            delays = _numbers(state["delays"])
            seen, delivered_ms = map(int, state["timer"])
            self._versions = [list(map(int, version)) for version in state["versions"]]
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            raise FrameError(f"no state of tables: {exc!r}") from exc
        for key, queues in offsets.items():
            self._offsets.put(key, queues)
        self._schedule.offsets = delays
        self._progress = (seen, delivered_ms)
        self.taken_at = time.monotonic()
        if not self.has_tables:
            self._ask_tables()

    async def run(self) -> None:
        """Write progress until cancelled, and once more then."""
        try:
            while True:
                await asyncio.sleep(WRITE_S)
                await asyncio.to_thread(self._write)
        finally:
            self._write()

    def _write(self) -> None:
        try:
            self._schedule.persist()
            progress = self._progress
            if progress != self._written:
                self._timer.put_progress(*progress)
                self._written = progress
        except StateFileError as exc:
            logger.error("a master's progress not written", extra={"event": "state_file_not_written", "why": str(exc)})


def versions(topics: TopicConfigManager, groups: SubscriptionGroupManager) -> list[list[int]]:
    """Of both tables, as numbers."""
    return [_version(topics.data_version), _version(groups.data_version)]


def _version(version: DataVersion) -> list[int]:
    return [version.timestamp, version.counter]


def _numbers(table: dict[str, int]) -> dict[int, int]:
    return {int(key): int(value) for key, value in table.items()}
