"""The master's tables on their way to its slaves, between brokers of GantryMQ: what changed, four times a second.

The slave acknowledges each: a SYNC_MASTER answers a changed topic or group when the slaves in sync have it.

A state goes out behind the log that it speaks of: a slave never has progress of messages that it does not have. It
has consumer offsets that changed, messages that POP has out, the progress of delayed and timed messages, topics and
groups that changed, and the versions of both tables: the slave asks for all of a table whose version is not its own.
A changed topic or group goes out at once, since messages follow it. Offsets that are removed go from a slave as well:
with RocketMQ's they stay, but there no master asks its slaves for theirs.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import orjson

from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.leases import Key
from appliance.broker.pop.service import PopService
from appliance.broker.replication.ha_frames import FrameError
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.config_table import ConfigTable
from appliance.process.json_file import StateFileError
from gantrymq.errors import BodyError
from gantrymq.remoting.admin_bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.json_body import Body

logger = logging.getLogger(__name__)

C = TypeVar("C", bound=Body)

INTERVAL_S = 0.25  # a master with automatic failover takes commits for OFFSETS_S after it (copied_offsets.py)
SOON_S = 0.05  # between states that tell of topics or groups
KEYS_MAX = 2000  # in one state: about two milliseconds on the slave
ENTRIES_MAX = 200  # of topics and of groups; a slave that is told of more asks for the whole table meanwhile
WRITE_S = 1.0  # at most so often progress is written on a slave


@dataclass(frozen=True, slots=True, eq=False)
class Untold:
    """What one slave has not been told yet, by name."""

    offsets: set[str]
    topics: set[str]
    groups: set[str]
    leases: set[Key]

    @property
    def is_urgent(self) -> bool:
        return bool(self.topics or self.groups)

    @property
    def has_any(self) -> bool:
        return bool(self.offsets or self.leases) or self.is_urgent


class StateParts(Protocol):
    """The tables of a broker, at both ends."""

    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    schedule: ScheduleMessageService
    timer: TimerService
    pop: PopService


class StateSource:
    """One master's tables."""

    def __init__(self, parts: StateParts) -> None:
        self._parts = parts

    def watch(self) -> Untold:
        """What a new slave is to be told: all offsets, and what changes from now on."""
        return Untold(
            self._parts.offsets.watch(), self._parts.topics.watch(), self._parts.groups.watch(), self._parts.pop.watch()
        )

    @property
    def versions(self) -> list[list[int]]:
        """Of topics and groups as they are now."""
        return versions(self._parts.topics, self._parts.groups)

    def leave(self, untold: Untold) -> None:
        self._parts.offsets.unwatch(untold.offsets)
        self._parts.topics.unwatch(untold.topics)
        self._parts.groups.unwatch(untold.groups)
        self._parts.pop.book.unwatch(untold.leases)

    def let_offsets_move(self, until: float) -> None:
        """See ConsumerOffsetManager.moves_until."""
        self._parts.offsets.moves_until = until

    async def take(self, untold: Untold, in_sync: InSyncRecord) -> bytes:
        """Return a state as of now; what it tells leaves `untold`."""
        parts = self._parts
        await parts.offsets.note_changes()
        keys = [] if parts.offsets.may_be_old else _some_of(untold.offsets, KEYS_MAX)
        table = parts.offsets.table
        seen, delivered_ms = parts.timer.reached
        state = {
            "offsets": {key: table[key] for key in keys if key in table},
            "removedOffsets": [key for key in keys if key not in table],
            "areAllOffsets": not untold.offsets and not parts.offsets.may_be_old,  # from the connection's begin on
            "leases": parts.pop.take_records(untold.leases),
            "delays": parts.schedule.offsets,
            "timer": [seen, delivered_ms],
            "topics": _entries(parts.topics.configs, untold.topics),
            "groups": _entries(parts.groups.configs, untold.groups),
            "versions": versions(parts.topics, parts.groups),
            "inSync": in_sync.to_dict(),
            "at": time.monotonic(),
        }
        return orjson.dumps(state, option=orjson.OPT_NON_STR_KEYS)


class MasterClock:
    """When states were taken, told by the slave's clock: what waited in a socket while the slave stood still is old.

    The state that came quickest since the connection began is taken for one that was not on its way at all.
    """

    def __init__(self, true_at: float | None = None) -> None:
        self.true_at = true_at
        self._apart = math.inf

    def heard(self, taken_at: float, came_at: float) -> None:
        """A state that was taken at that time of the master's clock came now."""
        self._apart = min(self._apart, came_at - taken_at)
        self.true_at = taken_at + self._apart


class StateSink:
    """A slave's end: tables in memory at once, progress on disk each second and at the end."""

    def __init__(
        self,
        parts: StateParts,
        *,
        in_sync: InSyncFile,
        ask_tables: Callable[[], None],
        show: Callable[[InSyncRecord], None],
    ) -> None:
        """show: has consumers of confirmed messages see what is confirmed by this record."""
        self._parts = parts
        self._ask_tables = ask_tables
        self._show = show
        self._in_sync = in_sync
        self.in_sync = in_sync.record  # as the master told of it last
        self._versions: list[list[int]] | None = None  # the master's, when it last told them
        self._progress = (0, 0)
        self._written = (0, 0)
        self._is_unsaved = False
        self.taken_at = 0.0  # monotonic: when the last state came
        self._clock = MasterClock()
        self._told: set[str] | None = set()  # keys of offsets, of this connection; None: since, all were

    def show(self) -> None:
        """What is on record is shown, before a master has told of it: behind that a master of before may have had it
        alone, and it is cut."""
        self._show(self.in_sync)

    def connected(self) -> None:
        """A connection to a master begins: what follows is of another clock."""
        self._clock = MasterClock(self._clock.true_at)
        self._told = set()

    @property
    def told_at(self) -> float | None:
        """Monotonic: as of when the last state was true; None: none has come that says so."""
        return self._clock.true_at

    @property
    def has_tables(self) -> bool:
        """Whether topics and groups are those that the master told of last."""
        return self._versions is None or self._versions == versions(self._parts.topics, self._parts.groups)

    def take(self, body: bytes) -> bool:
        """Take over a state; return whether topics and groups are the master's. FrameError."""
        try:
            state: dict[str, Any] = orjson.loads(body)
            offsets = {str(key): _numbers(queues) for key, queues in state["offsets"].items()}
            removed = list(map(str, state.get("removedOffsets", ())))
            delays = _numbers(state["delays"])
            seen, delivered_ms = map(int, state["timer"])
            topics = _read_entries(TopicConfig, state.get("topics", {}))
            groups = _read_entries(SubscriptionGroupConfig, state.get("groups", {}))
            in_sync = InSyncRecord.from_dict(state["inSync"]) if "inSync" in state else self.in_sync
            at = float(state["at"]) if "at" in state else None
            self._versions = [list(map(int, version)) for version in state["versions"]]
        except (LookupError, TypeError, ValueError, AttributeError, BodyError) as exc:
            raise FrameError(f"no state of tables: {exc!r}") from exc
        _take_entries(self._parts.topics, topics)
        _take_entries(self._parts.groups, groups)
        for key, queues in offsets.items():
            self._parts.offsets.replace(key, queues)
        self._parts.offsets.remove(removed)
        are_all = state.get("areAllOffsets") is True
        if are_all:
            self._parts.offsets.are_new()
        if self._told is not None:
            self._told |= offsets.keys()
            if are_all:  # what it has forgotten before this connection it does not tell
                self._parts.offsets.keep_only(self._told)
        try:
            self._parts.pop.put_records(state.get("leases", []))
        except (LookupError, TypeError, ValueError) as exc:
            raise FrameError(f"no leases: {exc!r}") from exc
        if self._told is not None and are_all:
            self._parts.pop.book.drop_void()
            self._told = None
        self._parts.schedule.offsets = delays
        self._progress = (seen, delivered_ms)
        self.in_sync = in_sync
        self._show(in_sync)
        self.taken_at = time.monotonic()
        if at is not None:
            self._clock.heard(at, self.taken_at)
        has_tables = self.has_tables
        if not has_tables:
            self._ask_tables()
        return has_tables

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
            self._parts.schedule.persist()
            progress = self._progress
            if progress != self._written:
                self._parts.timer.put_progress(*progress)
                self._written = progress
            if self.in_sync != self._in_sync.record:
                self._in_sync.keep(self.in_sync)
        except StateFileError as exc:
            if not self._is_unsaved:  # once: a disk that is full is tried each second
                facts = {"event": "state_file_not_written", "why": str(exc)}
                logger.error("progress of a master not saved", extra=facts)
            self._is_unsaved = True
            return
        if self._is_unsaved:
            logger.warning("progress of a master saved again", extra={"event": "state_file_written"})
        self._is_unsaved = False


def versions(topics: TopicConfigManager, groups: SubscriptionGroupManager) -> list[list[int]]:
    """Of both tables, as numbers."""
    return [_version(topics.data_version), _version(groups.data_version)]


def _version(version: DataVersion) -> list[int]:
    return [version.timestamp, version.counter]


def _some_of(names: set[str], count: int) -> list[str]:
    """Take so many out of a set."""
    return [names.pop() for _ in range(min(len(names), count))]


def _entries(table: Mapping[str, Body], changed: set[str]) -> dict[str, Any]:
    """Changed entries as they are now, None where one is gone."""
    return {name: table[name].to_dict() if name in table else None for name in _some_of(changed, ENTRIES_MAX)}


def _read_entries(kind: type[C], entries: Mapping[str, Any]) -> dict[str, C | None]:
    return {name: None if entry is None else kind.from_dict(entry) for name, entry in entries.items()}


def _take_entries(table: ConfigTable[C], entries: Mapping[str, C | None]) -> None:
    for name, config in entries.items():
        table.take_entry(name, config)


def _numbers(table: dict[str, int]) -> dict[int, int]:
    return {int(key): int(value) for key, value in table.items()}
