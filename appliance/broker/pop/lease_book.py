"""All leases of one broker: each change is a record, which is applied here and written to the journal.

A record is a list: what happened, then the key. Applied in order to an empty book, records give the book of now; so
the journal, a start and a slave use what serves. `offsets` has each group's offset: what was done with is behind it.

    ["out", group, topic, queue, offsets, next offset, pop ms, due ms, in order, attempt]    handed out
    ["end", group, topic, queue, offsets]         acknowledged, or stored again elsewhere
    ["due", group, topic, queue, offset, ms]      visible again at another time
    ["at",  group, topic, queue, offset]          all leases are void, the group goes on at `offset`
    ["all", group, topic, queue, next offset, in order, attempt, [[offset, pop ms, due ms, times], ...]]
    ["gone", group, topic, queue]                 topic or group was deleted
    ["left", group, topic, queue]                 pulled since: from here on the file of offsets alone says where it is
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from appliance.broker.pop.leases import Key, Lease, QueueLeases

LEASES_MAX = 300_000  # of a broker: some 60 MB
LEASES_A_QUEUE_MAX = 10_000  # of one group: further messages of the queue wait until some are done with
STALE_DUE_MAX = 4096  # entries of the heap beyond the leases, before it is made anew

Record = list[Any]


class Offsets(Protocol):
    """The table of consumer offsets."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None: ...
    def query(self, group: str, topic: str, queue_id: int) -> int: ...


class Due(NamedTuple):
    """When a lease may be over; it may have ended or moved since."""

    due_ms: int
    key: Key
    offset: int


class LeaseBook:
    """The book. on_record: gets every record once it is applied; on_due: called when something is due earlier."""

    def __init__(self, offsets: Offsets, on_record: Callable[[Record], None]) -> None:
        self._offsets = offsets
        self._on_record = on_record
        self.on_due: Callable[[], None] = _nothing
        self.queues: dict[Key, QueueLeases] = {}  # those with a message out
        self.count = 0
        self.by_group: Counter[str] = Counter()
        self.redelivered: Counter[str] = Counter()  # by group, since the start
        self.redelivered_to_deleted = 0  # groups; the sum must not shrink
        self._watchers: list[set[Key]] = []
        self._emptied: dict[Key, int] = {}  # where records leave the group; the file of offsets may not have it yet
        self._kept: dict[Key, int] = {}  # the same, of those that were emptied before the journal was written anew
        self._set_since: set[Key] = set()  # with an answer, since `emptied`: a file may have what was before
        self._due: list[Due] = []

    # -- changes ------------------------------------------------------------------------------------------------------

    def hand_out(
        self,
        key: Key,
        offsets: Sequence[int],
        next_offset: int,
        pop_ms: int,
        due_ms: int,
        *,
        is_ordered: bool = False,
        attempt: str = "",
        client: str = "",
    ) -> None:
        """Messages go out. next_offset: where to read on; without offsets no member wants those before it."""
        self.do(["out", *key, list(offsets), next_offset, pop_ms, due_ms, is_ordered, attempt])
        if offsets:
            leases = self.queues[key].leases
            for offset in offsets:
                leases[offset].client = client
                if leases[offset].times:  # in order: it was out before
                    self.redelivered[key.group] += 1

    def end(self, key: Key, offsets: Sequence[int]) -> None:
        """These are done with."""
        self.do(["end", *key, list(offsets)])

    def move(self, key: Key, offset: int, due_ms: int) -> None:
        """A message is to be visible again at another time."""
        self.do(["due", *key, offset, due_ms])

    def go_to(self, key: Key, offset: int) -> None:
        """All leases of the queue are void, and the group goes on at an offset."""
        self.do(["at", *key, offset])

    def begin(self, key: Key) -> None:
        """The group stands at the begin of a queue, unless it stands somewhere already."""
        if self._offsets.query(*key) < 0:
            self.go_to(key, 0)

    def do(self, record: Record) -> None:
        """Apply a record and hand it on."""
        self.note(self.apply(record), record)

    def note(self, key: Key, record: Record) -> None:
        """Hand on a record that changes something else."""
        for watcher in self._watchers:
            watcher.add(key)
        self._on_record(record)

    def forget_group(self, group: str) -> None:
        """It was deleted."""
        self.redelivered_to_deleted += self.redelivered.pop(group, 0)

    # -- looks --------------------------------------------------------------------------------------------------------

    def find(self, key: Key, offset: int, pop_ms: int) -> Lease | None:
        """The lease of that delivery, None when it has ended."""
        queue = self.queue(key)
        return queue.find(offset, pop_ms) if queue is not None else None

    def queue(self, key: Key) -> QueueLeases | None:
        """What is out of a queue; None: nothing. An offset that was set by others since makes it void."""
        queue = self.queues.get(key)
        if queue is not None:
            there = self._offsets.query(*key)
            if there != queue.committed:
                self.do(["gone", *key] if there < 0 else ["at", *key, there])
                return None
        return queue

    def take_due(self, now_ms: int, count_max: int) -> Iterator[tuple[Key, int]]:
        """Yield leases whose time is up: key and offset. Each must end or move, or it is not seen again."""
        while count_max and self._due and self._due[0].due_ms <= now_ms:
            _due_ms, key, offset = due = heapq.heappop(self._due)
            lease = self._leased(due)
            if lease is not None:
                count_max -= 1
                yield key, offset

    def next_due_ms(self) -> int | None:
        """When the next lease may be over; None: nothing is out."""
        while self._due and self._leased(self._due[0]) is None:
            heapq.heappop(self._due)
        return self._due[0].due_ms if self._due else None

    def of(self, group: str, *topics: str) -> list[Key]:
        """The queues of some topics of which the group has messages out."""
        return [key for key in self.queues if key.group == group and key.topic in topics]

    def watch(self) -> set[Key]:
        """A set that gets the key of each change; at first of all queues with a message out."""
        watcher = set(self.queues)
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: set[Key]) -> None:
        self._watchers = [each for each in self._watchers if each is not watcher]

    def drop_void(self) -> None:
        """Forget what was leased of queues whose offset was set by others, and put on record where they stand.

        A slave that was away is told of offsets, but not that the leases ended which it was told of before.
        """
        for key in {*self.queues, *self._kept, *self._emptied}:
            self.note_set(key)

    def note_set(self, key: Key) -> None:
        """Others may have set an offset: if records say another, a start would go on there, and pass messages over."""
        if self.queue(key) is None:
            self._set_since.add(key)
            there = self._offsets.query(*key)
            if self._emptied.get(key, self._kept.get(key, there)) != there:
                self.do(self.snapshot(key))

    def emptied(self) -> list[tuple[Key, int]]:
        """Queues and where records leave the group there: those of which a start may have to know."""
        self._set_since.clear()
        return [*self._kept.items(), *self._emptied.items()]

    def has_moved(self, key: Key, offset: int) -> bool:
        """Whether records leave the group at `offset`, and others have set another since."""
        if key in self.queues or key in self._set_since or self._offsets.query(*key) == offset:
            return False
        return self._emptied.get(key, self._kept.get(key)) == offset

    def leave(self, key: Key, offset: int) -> None:
        """Put on record that the file of offsets is right, if `has_moved` still holds; it was written since then."""
        if self.has_moved(key, offset):
            self._on_record(["left", *key])
            self._emptied.pop(key, None)
            self._kept.pop(key, None)

    def records(self) -> list[Record]:
        """What makes an empty book this one, with the offsets of queues that were emptied since the last `kept`."""
        self.drop_void()
        return [self.snapshot(key) for key in (*(self._emptied.keys() - self.queues.keys()), *self.queues)]

    def kept(self) -> None:
        """A file has what `records` gave, and what came since."""
        self._kept, self._emptied = self._emptied, {}

    def cut(self, end_of: Callable[[str, int], int]) -> None:
        """Let no group be beyond a queue's end; after a start. end_of: topic and queue id to the next offset."""
        for key, queue in list(self.queues.items()):
            end = end_of(key.topic, key.queue_id)
            if queue.read_offset > end:
                queue.end([offset for offset in queue.leases if offset >= end])
                queue.read_offset = end
                self.apply(self.snapshot(key))
        for key in self._emptied.keys() - self.queues.keys():
            end = end_of(key.topic, key.queue_id)
            if self._offsets.query(*key) > end:
                self.go_to(key, end)

    def snapshot(self, key: Key) -> Record:
        """The record that makes a queue what it is now."""
        queue = self.queues.get(key)
        if queue is None:
            offset = self._offsets.query(*key)
            return ["gone", *key] if offset < 0 else ["at", *key, offset]
        leases = [[offset, lease.pop_ms, lease.due_ms, lease.times] for offset, lease in queue.leases.items()]
        return ["all", *key, queue.read_offset, queue.is_ordered, queue.attempt, leases]

    # -- records ------------------------------------------------------------------------------------------------------

    def apply(self, record: Record) -> Key:
        """Change the book as a record says; return its key. LookupError, TypeError or ValueError for what is none.

        MessageRejected, and no change, when the table of offsets has no room.
        """
        kind, group, topic, queue_id, *rest = record
        key = Key(group, topic, queue_id)
        queue = self.queues.get(key)
        before = len(queue.leases) if queue is not None else 0
        if queue is None:
            if kind != "gone" and self._offsets.query(*key) < 0:
                self._offsets.commit(*key, 0)
            queue = self.queues[key] = QueueLeases(self._offsets.query(*key))
        _APPLY[kind](self, key, queue, *rest)
        self._settle(key, queue, before, is_gone=kind == "gone")
        return key

    def _settle(self, key: Key, queue: QueueLeases, before: int, *, is_gone: bool) -> None:
        """Count, commit, and keep the queue if something is out of it."""
        count = len(queue.leases)
        self.count += count - before
        self.by_group[key.group] += count - before
        if not self.by_group[key.group]:
            del self.by_group[key.group]
        offset = queue.commit_offset
        if not is_gone and (offset != queue.committed or self._offsets.query(*key) < 0):
            self._offsets.commit(*key, offset)
            queue.committed = offset
        if not count:
            del self.queues[key]
            self._emptied[key] = self._offsets.query(*key)

    def _out(
        self,
        key: Key,
        queue: QueueLeases,
        offsets: list[int],
        next_offset: int,
        pop_ms: int,
        due_ms: int,
        is_ordered: bool,
        attempt: str,
    ) -> None:
        queue.is_ordered, queue.attempt = is_ordered, attempt
        queue.add(offsets, next_offset, pop_ms, due_ms)
        for offset in offsets:
            self._note_due(Due(due_ms, key, offset))

    def _end(self, key: Key, queue: QueueLeases, offsets: list[int]) -> None:
        queue.end(offsets)

    def _move(self, key: Key, queue: QueueLeases, offset: int, due_ms: int) -> None:
        lease = queue.leases.get(offset)
        if lease is not None:
            lease.due_ms = due_ms
            self._note_due(Due(due_ms, key, offset))

    def _at(self, key: Key, queue: QueueLeases, offset: int) -> None:
        queue.end(list(queue.leases))
        queue.read_offset = offset

    def _gone(self, key: Key, queue: QueueLeases) -> None:
        queue.end(list(queue.leases))

    def _all(
        self,
        key: Key,
        queue: QueueLeases,
        read_offset: int,
        is_ordered: bool,
        attempt: str,
        leases: list[tuple[int, int, int, int]],
    ) -> None:
        self._at(key, queue, read_offset)
        queue.is_ordered, queue.attempt = is_ordered, attempt
        for offset, pop_ms, due_ms, times in leases:
            queue.put(offset, Lease(pop_ms, due_ms, times))
            self._note_due(Due(due_ms, key, offset))

    # -- what is due --------------------------------------------------------------------------------------------------

    def _note_due(self, due: Due) -> None:
        if len(self._due) > 2 * self.count + STALE_DUE_MAX:
            self._due = [each for each in self._due if self._leased(each) is not None]
            heapq.heapify(self._due)
        is_first = not self._due or due.due_ms < self._due[0].due_ms
        heapq.heappush(self._due, due)
        if is_first:
            self.on_due()

    def _leased(self, due: Due) -> Lease | None:
        queue = self.queues.get(due.key)
        lease = queue.leases.get(due.offset) if queue is not None else None
        return lease if lease is not None and lease.due_ms == due.due_ms else None


def still_true(records: list[Record]) -> Iterator[Record]:
    """Yield the records without those of groups that have left since."""
    left = {Key(*record[1:]): place for place, record in enumerate(records) if len(record) == 4 and record[0] == "left"}
    for place, record in enumerate(records):
        if not left or len(record) < 4 or place > left.get(Key(*record[1:4]), -1):
            yield record


_APPLY: dict[str, Callable[..., None]] = {
    "out": LeaseBook._out,
    "end": LeaseBook._end,
    "due": LeaseBook._move,
    "at": LeaseBook._at,
    "all": LeaseBook._all,
    "gone": LeaseBook._gone,
}


def _nothing() -> None:
    """Nothing waits for what is due."""
