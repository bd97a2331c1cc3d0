"""What one group has out of one queue: a value, no I/O.

The group's offset is that of the oldest message that is out, else of the next to be read: behind it nothing is left to
do, so a consumer that begins there misses nothing. In order, a message whose time is up stays, and is handed out again
before any later one; otherwise it leaves the queue for the retry topic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Key(NamedTuple):
    """Whose leases, of which queue. The topic may be a retry topic."""

    group: str
    topic: str
    queue_id: int


class Lease:
    """One message that is out. pop_ms names the delivery; until due_ms no other member gets it. Ms since the epoch.

    times: how often it was handed out before, in order. is_over: the message is stored again elsewhere, and the lease
    ends once the disk has it. client: who has it, for people; a start forgets that.
    """

    __slots__ = ("client", "due_ms", "is_over", "pop_ms", "times")

    def __init__(self, pop_ms: int, due_ms: int, times: int = 0) -> None:
        self.pop_ms = pop_ms
        self.due_ms = due_ms
        self.times = times
        self.is_over = False
        self.client = ""


class QueueLeases:
    """The leases of one key. read_offset: the next message that no member has had yet."""

    __slots__ = ("_oldest", "attempt", "committed", "is_ordered", "leases", "read_offset")

    def __init__(self, read_offset: int) -> None:
        self.read_offset = read_offset
        self.committed = read_offset  # as it stands in the table of offsets
        self.is_ordered = False
        self.attempt = ""  # in order: who has the last batch, as it named its try
        self.leases: dict[int, Lease] = {}
        self._oldest: deque[int] = deque()  # offsets that were leased, rising; ended ones leave when they are first

    @property
    def commit_offset(self) -> int:
        """The group's offset, as described above."""
        while self._oldest and self._oldest[0] not in self.leases:
            self._oldest.popleft()
        return self._oldest[0] if self._oldest else self.read_offset

    @property
    def oldest_pop_ms(self) -> int | None:
        """When the message was delivered that is longest in flight; None: none is."""
        return next((lease.pop_ms for lease in self.leases.values() if not lease.is_over), None)

    def add(self, offsets: Iterable[int], next_offset: int, pop_ms: int, due_ms: int) -> None:
        """Messages are handed out: new ones from read_offset on, or, in order, some that were out before."""
        for offset in offsets:
            lease = self.leases.get(offset)
            if lease is not None:
                lease.pop_ms, lease.due_ms, lease.times = pop_ms, due_ms, lease.times + 1
            else:
                self.put(offset, Lease(pop_ms, due_ms))
        self.read_offset = max(self.read_offset, next_offset)

    def put(self, offset: int, lease: Lease) -> None:
        """A lease behind all others."""
        self.leases[offset] = lease
        self._oldest.append(offset)

    def find(self, offset: int, pop_ms: int) -> Lease | None:
        """The lease of that very delivery, None when it has ended."""
        lease = self.leases.get(offset)
        return lease if lease is not None and lease.pop_ms == pop_ms and not lease.is_over else None

    def end(self, offsets: Sequence[int]) -> None:
        """These are done with; those that are not out are left alone."""
        for offset in offsets:
            self.leases.pop(offset, None)

    def is_blocked(self, now_ms: int, attempt: str) -> bool:
        """In order: whether another try has a message whose time is not up."""
        if not self.is_ordered or (attempt and attempt == self.attempt):
            return False
        return any(lease.due_ms > now_ms for lease in self.leases.values())

    def again(self, count_max: int) -> list[int]:
        """In order: what is to be handed out before anything new, oldest first."""
        return list(self.leases)[:count_max] if self.is_ordered else []
