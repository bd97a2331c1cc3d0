"""How far each consumer group has come in each queue; kept in consumerOffset.json.

The last commit wins, even if it is smaller than the one before: consumers may rewind. Commits come thousands a
second, so they touch two dictionaries; only the entries that changed since the last write are rendered again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Container, Iterable, Set
from pathlib import Path

from appliance.errors import BrokerError
from appliance.process.awake import awake_s
from appliance.process.cooperative import in_slices
from appliance.process.json_file import (
    Document,
    JsonFile,
    SavedTable,
    StateWriter,
    document_body,
    member_text,
)
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message import topics as names
from gantrymq.remoting.admin_bodies import ConsumerOffsetTable
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import wait_for_event

NO_OFFSET = -1
FAILOVER_INTERVAL_MS = 500  # and what the write takes: below a second's commits
KEYS_A_SLICE = 256  # rendered before others have a turn: about a millisecond
WRITE_SHARE_MAX = 0.05  # of the time: the whole table is written, and a large one less often
KEYS_MAX = 1_000_000  # a client may commit for topics and queues that don't exist
QUEUES_MAX = 16_384  # of a topic: more is a slip of the finger, and many answers list every queue
ENTRIES_MAX = 4_000_000  # offsets in all
NOT_AT_A_SLAVE = "no offsets are kept here: this broker is a slave, its master keeps them"
KNOWN_S = 3.0  # that a question waits for offsets that may be old; then its client asks again
NOT_COPIED = "no offsets are kept now: a broker that may become the master has not confirmed them for a second"
SEPARATOR = "@"  # of topic and group in the file's keys


class ConsumerOffsetManager(SavedTable):
    """The offset table. load() before anything else; run() writes the file each flushConsumerOffsetInterval."""

    def __init__(self, path: Path, config: BrokerConfig) -> None:
        self._file = JsonFile(path)
        self._writer = StateWriter(
            self._file,
            self._render,
            delay_s=min(config.flush_consumer_offset_interval_ms, _interval_ms_max(config)) / 1000,
            prepare=self._render_in_slices,
            share_max=WRITE_SHARE_MAX,
        )
        self._lines: dict[str, str] = {}  # "topic@group" to its entry in the file, as of the last rendering
        self._unrendered: set[str] = set()
        self._watchers: list[set[str]] = []  # each gets the keys that are rendered
        self._topics_of_group: dict[str, set[str]] = {}
        self._groups_of_topic: dict[str, set[str]] = {}
        self.entry_count = 0  # offsets in all
        self.moves_until = -math.inf if config.automatic_failover else math.inf  # of awake_s
        self._is_automatic = config.automatic_failover
        self._known = asyncio.Event()
        if not config.automatic_failover:
            self._known.set()
        self._is_slave = config.is_slave
        self._why_not = NOT_AT_A_SLAVE if config.is_slave else NOT_COPIED
        self.table: dict[str, dict[int, int]] = {}  # "topic@group" to queue id to the next offset to consume

    # -- life ---------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read consumerOffset.json, a real broker's included. Raises StateFileError."""
        stored = self._file.load_as(ConsumerOffsetTable.from_dict, "a table of consumer offsets")
        if stored is None:
            return
        for key, queues in stored.offset_table.items():
            topic, separator, group = key.partition(SEPARATOR)
            if separator:
                self._add(topic, group, key, queues)

    # -- the hot two --------------------------------------------------------------------------------------------------

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set the group's next offset in a queue. Raises MessageRejected when topic or group can't be such a name."""
        key = f"{topic}{SEPARATOR}{group}"
        queues = self.table.get(key)
        if queues is None:
            if len(self.table) >= KEYS_MAX:
                raise MessageRejected(f"{KEYS_MAX} pairs of topic and group have offsets already")
            self._check_room()
            names.check_topic(topic)
            names.check_group(group)
            self._add(topic, group, key, {queue_id: offset})
        elif queues.get(queue_id) == offset:
            return
        else:
            if queue_id not in queues:
                if len(queues) >= QUEUES_MAX:
                    raise MessageRejected(f"{QUEUES_MAX} queues of topic {topic} have an offset already")
                self._check_room()
                self.entry_count += 1
            queues[queue_id] = offset
            self._unrendered.add(key)
        self._writer.changed()

    @property
    def may_move(self) -> bool:
        """Whether consumers may commit now. With automatic failover a slave takes no commits, which its master would
        not know of, and a master as copied_offsets.py says, and not while these may be old."""
        return not self.may_be_old and (self.moves_until == math.inf or awake_s() < self.moves_until)

    @property
    def may_be_old(self) -> bool:
        """Whether these are of the file, and other members may know newer ones (replication/master/newest_offsets.py).

        Only with automatic failover: from the start of the process on, until `are_new`."""
        return not self._known.is_set()

    def are_new(self) -> None:
        """No other member can know newer ones."""
        self._known.set()

    @property
    def has_to_wait(self) -> bool:
        """Whether consumers can't be told any now. A slave tells what it has."""
        return self.may_be_old and not self._is_slave

    async def until_new(self) -> bool:
        """Wait while they may be old, KNOWN_S at most; say if they are new then."""
        await wait_for_event(self._known, KNOWN_S)
        return not self.may_be_old

    def commit_of_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """What a pull brings along: nothing is answered for it, and it comes again with the next one."""
        if self.may_move:
            self.commit(group, topic, queue_id, offset)

    def check_may_move(self) -> None:
        """BrokerError when consumers may not commit now: clients that can commit again elsewhere, or later."""
        if not self.may_move:
            raise BrokerError(ResponseCode.SERVICE_NOT_AVAILABLE, self._why_not)

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the group's next offset in a queue, NO_OFFSET if it never committed one."""
        queues = self.table.get(f"{topic}{SEPARATOR}{group}")
        return NO_OFFSET if queues is None else queues.get(queue_id, NO_OFFSET)

    # -- for administrators -------------------------------------------------------------------------------------------

    def offsets(self, topic: str, group: str) -> dict[int, int]:
        """Return queue id to next offset; a copy."""
        return dict(self.table.get(f"{topic}{SEPARATOR}{group}", ()))

    def topics_of(self, group: str) -> set[str]:
        """Return the topics in which the group has an offset; a copy."""
        return set(self._topics_of_group.get(group, ()))

    def groups_of(self, topic: str) -> set[str]:
        """Return the groups that have an offset in the topic; a copy."""
        return set(self._groups_of_topic.get(topic, ()))

    def remove_group(self, group: str) -> None:
        """Forget all offsets of a group."""
        for topic in self.topics_of(group):
            self._remove(topic, group)

    def remove_topic(self, topic: str) -> None:
        """Forget all offsets in a topic, so that one of the same name starts afresh."""
        for group in self.groups_of(topic):
            self._remove(topic, group)

    def forget(self, group: str, topic: str, queue_id: int) -> None:
        """The group stands nowhere in a queue."""
        key = f"{topic}{SEPARATOR}{group}"
        queues = self.table.get(key, {})
        if queues.pop(queue_id, None) is not None:
            self.entry_count -= 1
            self._unrendered.add(key)
            self._writer.changed()
            if not queues:
                self._remove(topic, group)

    def end_at(self, end_of: Callable[[str, int], int]) -> None:
        """Let no group be further than a queue's end; after a cut or a crash: the table is on disk before
        the log's end. end_of: topic and queue id to the next offset."""
        for key, queues in self.table.items():
            topic = key.partition(SEPARATOR)[0]
            for queue_id, offset in queues.items():
                if offset > (end := end_of(topic, queue_id)):
                    queues[queue_id] = end
                    self._unrendered.add(key)
                    self._writer.changed()

    def begin_again(self, topic: str, queue_id: int) -> None:
        """A queue has begun again, at 0: so do the groups that stand in it, which would pass over what it gets."""
        for group in self.groups_of(topic):
            if self.query(group, topic, queue_id) > 0:
                self.commit(group, topic, queue_id, 0)

    async def put_all(self, theirs: ConsumerOffsetTable) -> None:
        """Put a master's offsets over these; what it does not have stays, as in RocketMQ. For its slave."""
        async for key, queues in in_slices(list(theirs.offset_table.items()), KEYS_A_SLICE):
            self.put(key, queues)

    def put(self, key: str, queues: dict[int, int]) -> None:
        """Put a master's offsets of one key over these."""
        topic, separator, group = key.partition(SEPARATOR)
        known = self.table.get(key)
        if known is None:
            if separator:
                self._add(topic, group, key, queues)
                self._writer.changed()
        elif any(known.get(queue_id) != offset for queue_id, offset in queues.items()):
            self.entry_count += len(queues.keys() - known.keys())
            known.update(queues)
            self._unrendered.add(key)
            self._writer.changed()

    def replace(self, key: str, queues: dict[int, int]) -> None:
        """Have a master's offsets of one key, and no others: a topic may have been created again."""
        known = self.table.get(key)
        if known is not None:
            for queue_id in known.keys() - queues.keys():
                del known[queue_id]
                self.entry_count -= 1
                self._unrendered.add(key)
                self._writer.changed()
        self.put(key, queues)

    def remove(self, keys: Iterable[str]) -> None:
        """Forget what a master has forgotten."""
        for key in keys:
            if key in self.table:
                topic, _separator, group = key.partition(SEPARATOR)
                self._remove(topic, group)

    def keep_only(self, keys: Set[str]) -> None:
        """Forget what a master does not have, if it has asked the others for theirs before: with automatic failover.

        Without, what the master does not have stays, as in RocketMQ.
        """
        if self._is_automatic:
            self.remove(self.table.keys() - keys)

    def put_further(
        self, theirs: ConsumerOffsetTable, topics: Container[str], end_of: Callable[[str, int], int]
    ) -> None:
        """Put those offsets of another member over these that are larger, or not here; only of these topics.

        end_of: topic and queue id to the next offset. What is further was of an earlier topic of the name.
        """
        for key, queues in theirs.offset_table.items():
            topic = key.partition(SEPARATOR)[0]
            if topic in topics:
                known = self.table.get(key, {})
                further = {
                    queue_id: offset
                    for queue_id, offset in queues.items()
                    if known.get(queue_id, NO_OFFSET) < offset <= end_of(topic, queue_id)
                }
                if further:
                    self.put(key, further)

    def watch(self) -> set[str]:
        """A set that gets the keys whose offsets change, with the next `note_changes` or write; at first all keys."""
        watcher = set(self.table)
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: set[str]) -> None:
        self._watchers = [each for each in self._watchers if each is not watcher]

    async def note_changes(self) -> None:
        """Have watchers know of every change so far. It costs what the next write then need not do."""
        await self._render_in_slices()

    async def body(self) -> bytes:
        """The whole table as the body of 43."""
        await self._render_in_slices()
        self._render_rest()
        return await document_body({"offsetTable": self._lines.values()})

    # -- entries ------------------------------------------------------------------------------------------------------

    def _check_room(self) -> None:
        if self.entry_count >= ENTRIES_MAX:
            raise MessageRejected(f"{ENTRIES_MAX} offsets are kept already")

    def _add(self, topic: str, group: str, key: str, queues: dict[int, int]) -> None:
        self.table[key] = queues
        self.entry_count += len(queues)
        self._topics_of_group.setdefault(group, set()).add(topic)
        self._groups_of_topic.setdefault(topic, set()).add(group)
        self._unrendered.add(key)

    def _remove(self, topic: str, group: str) -> None:
        key = f"{topic}{SEPARATOR}{group}"
        self.entry_count -= len(self.table.pop(key))
        self._lines.pop(key, None)
        self._unrendered.discard(key)
        for watcher in self._watchers:
            watcher.add(key)
        _discard(self._topics_of_group, group, topic)
        _discard(self._groups_of_topic, topic, group)
        self._writer.changed()

    async def _render_in_slices(self) -> None:
        """Render what changed, a millisecond at a time; what changes meanwhile is left for the next time."""
        async for key in in_slices(list(self._unrendered), KEYS_A_SLICE):
            if key in self._unrendered:  # not removed meanwhile
                self._render_key(key)
                self._unrendered.discard(key)

    def _render_rest(self) -> None:
        for key in self._unrendered:
            self._render_key(key)
        self._unrendered.clear()

    def _render(self) -> Document:
        self._render_rest()
        return Document({"offsetTable": self._lines.values()})

    def _render_key(self, key: str) -> None:
        offsets = ",".join([f'"{queue_id}":{offset}' for queue_id, offset in self.table[key].items()])
        self._lines[key] = member_text(key, f"{{{offsets}}}")
        for watcher in self._watchers:
            watcher.add(key)


def _interval_ms_max(config: BrokerConfig) -> float:
    """With automatic failover a master that was killed may go on, with the file."""
    return FAILOVER_INTERVAL_MS if config.automatic_failover else math.inf


def _discard(index: dict[str, set[str]], key: str, member: str) -> None:
    members = index[key]
    members.discard(member)
    if not members:
        del index[key]
