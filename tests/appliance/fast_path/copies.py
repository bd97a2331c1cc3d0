"""Two stores that copy the same log: one feeds queues and index with the compiled twin, one in Python alone."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from store.base.errors import CopyRefused
from store.index.service import PENDING_MAX
from store.message_store import MessageStore
from store.startup.dispatch import Arrived
from tests.store.conftest import Clock, small_config

Heard = list[tuple[str, int, int, list[int]]]


class CountingFeed:
    """A twin that counts all that it takes."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed
        self.total = 0

    @property
    def count(self) -> int:
        return int(self._feed.count)

    def feed(
        self, view: memoryview, base: int, position: int, last: int, check_crc: bool, arrived: Arrived | None, /
    ) -> int:
        end = int(self._feed.feed(view, base, position, last, check_crc, arrived))
        self.total += self.count
        assert position <= end <= len(view)
        return end


class Copy:
    """One store that is a copy."""

    def __init__(self, root: Path, compiled: ModuleType | None, settings: dict[str, Any]) -> None:
        self._config = small_config(root, **settings)
        self._compiled = compiled
        self.heard: Heard = []
        self.refused = ""
        self.store = self.open()

    def open(self) -> MessageStore:
        """Open the folder; what a start reads is fed in the same way."""
        clock = Clock()
        self.store = store = MessageStore(self._config, is_copy=True, clock=clock, monotonic=clock)
        compiled = self._compiled
        self.counting = CountingFeed(compiled.FastDispatch(store.parts, PENDING_MAX)) if compiled is not None else None
        store.parts.dispatcher.plain_feed = self.counting
        store.load()
        store.start()
        store.arrival_listener = lambda topic, queue_id, first, codes: self.heard.append(
            (topic, queue_id, first, list(codes))
        )
        return store

    def append(self, position: int, piece: bytes) -> None:
        """Append; what is refused, and why, is part of the state."""
        try:
            self.store.copy.append_raw(position, piece)
        except CopyRefused as exc:
            self.refused = str(exc)

    def state(self) -> dict[str, Any]:
        """All that copying leaves behind."""
        store, parts = self.store, self.store.parts
        parts.dispatcher.put_pending()
        log = parts.log
        return {
            "refused": self.refused,
            "ends": (store.max_physical_offset, store.copy.end),
            "log": (log.store_timestamp, [file.peek(0, file.size) for file in log.queue.files]),
            "heard": self.heard,
            "queues": {
                (queue.topic, queue.queue_id): (queue.min_index, queue.next_index, bytes(queue.tail), queue.dirty)
                for queue in parts.queues
            },
            "dirty": [(queue.topic, queue.queue_id) for queue in parts.queues.dirty],
            "index": [bytes(file.map[: file.entries_at + 20 * file.count]) for file in parts.index.files],
            "index fields": [
                (file.count, file.used_slots, file.begin_ms, file.end_ms, file.begin_offset, file.end_offset)
                for file in parts.index.files
            ],
            "stats": (store.stats.put_times, store.stats.put_bytes),
        }


class Copies:
    """Both, fast and plain."""

    def __init__(self, fast: Copy, plain: Copy) -> None:
        self.fast, self.plain = fast, plain

    @property
    def fed_fast(self) -> int:
        """How many records the twin took since the folder was opened."""
        assert self.fast.counting is not None
        return self.fast.counting.total

    def append(self, piece: bytes) -> None:
        for each in (self.fast, self.plain):
            each.append(each.store.copy.end, piece)

    def append_all(self, pieces: Sequence[bytes]) -> None:
        """What follows a piece that is refused does not come any more."""
        for piece in pieces:
            if not self.plain.refused:
                self.append(piece)

    def crash(self) -> None:
        """Both are killed, and started again."""
        for each in (self.fast, self.plain):
            each.store.abandon()
            each.open()

    def check(self) -> None:
        fast, plain = self.fast.state(), self.plain.state()
        for name, value in plain.items():
            assert fast[name] == value, name


@contextlib.contextmanager
def two_copies(folder: Path, compiled: ModuleType, **settings: Any) -> Iterator[Copies]:
    fast = Copy(folder / "fast", compiled, settings)
    plain = Copy(folder / "plain", None, settings)
    try:
        yield Copies(fast, plain)
    finally:
        fast.store.abandon()  # nothing is flushed: that would take most of a test's time
        plain.store.abandon()


def cut_at_random(data: bytes, largest: int, seed: int = 1) -> Iterator[bytes]:
    dice, position = random.Random(seed), 0
    while position < len(data):
        size = dice.randint(1, largest)
        yield data[position : position + size]
        position += size
