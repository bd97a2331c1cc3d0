"""What was acknowledged, and whether a store has it: each message once, in its place, in order, without gaps."""

from __future__ import annotations

import random
from collections.abc import Iterator

from gantrymq.message import record
from gantrymq.message.model import MessageExt
from store import MessageStore
from tests.faults.traffic import Acknowledged

INDEX_ASKED = 40  # keys of earlier rounds
QUERY_MAX = 64
Queue = tuple[str, int]


class Ledger:
    """Keeps the books over many crashes of one folder."""

    def __init__(self, chance: random.Random) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._chance = chance
        self._checked: dict[Queue, int] = {}  # queue offset up to which a queue was seen to be right
        self._positions: dict[Queue, int] = {}  # physical offset of the last message seen in a queue
        self._numbers: dict[tuple[str, int, str], int] = {}  # the last number a sender has in a queue
        self._seen: dict[str, Acknowledged] = {}

    def check(self, store: MessageStore, latest: list[Acknowledged]) -> None:
        """Check what the last round may have changed. `check_all` begins from the start."""
        for topic in sorted(store.topics()):
            for queue_id in store.queue_ids(topic):
                self._check_queue(store, topic, queue_id)
        for each in latest:
            if each.queue_offset >= 0:
                assert self._seen.get(each.key) == each, f"{each} is lost: {self._seen.get(each.key)}"
            else:
                stored = store.look_message_by_offset(each.physical_offset)
                assert stored is not None and stored.keys == [each.key], f"{each} is lost"
        earlier = self._chance.sample(self.acknowledged, min(INDEX_ASKED, len(self.acknowledged)))
        for each in latest + earlier:
            check_index(store, each)
        self.acknowledged += latest

    def check_all(self, store: MessageStore) -> None:
        """Check everything again that was ever acknowledged."""
        everything, self.acknowledged = self.acknowledged, []
        self._checked.clear()
        self._positions.clear()
        self._numbers.clear()
        self._seen.clear()
        self.check(store, everything)

    def _check_queue(self, store: MessageStore, topic: str, queue_id: int) -> None:
        queue = topic, queue_id
        start = self._checked.get(queue, 0)
        assert store.max_offset(topic, queue_id) >= start, f"{queue} has lost what was read before"
        index = start
        for stored in messages(store, topic, queue_id, start):
            place = f"{queue} at {index}"
            assert (stored.topic, stored.queue_id, stored.queue_offset) == (topic, queue_id, index), place
            assert stored.physical_offset > self._positions.get(queue, -1), f"{place}: not in the log's order"
            (key,) = stored.keys
            assert key not in self._seen, f"{place}: {key} is there twice, {self._seen[key]}"
            self._seen[key] = Acknowledged(topic, queue_id, index, stored.physical_offset, key)
            sender, _, number = key.rpartition(".")
            assert int(number) > self._numbers.get((*queue, sender), -1), f"{place}: {key} came too early"
            self._numbers[*queue, sender] = int(number)
            self._positions[queue] = stored.physical_offset
            index += 1
        assert index == store.max_offset(topic, queue_id), f"{queue}: a gap at {index}"
        self._checked[queue] = index


def messages(store: MessageStore, topic: str, queue_id: int, start: int) -> Iterator[MessageExt]:
    """Read a queue as a consumer does, up to its end or the first gap; bodies are checked by their CRC."""
    offset = start
    while offset < store.max_offset(topic, queue_id):
        result = store.get_message("ledger", topic, queue_id, offset, 32)
        if not result.message_count:
            return
        yield from record.decode_records(b"".join(result.buffers))
        offset = result.next_begin_offset


def check_index(store: MessageStore, wanted: Acknowledged) -> None:
    """Ask the index for a message's key."""
    raws = store.query_message(wanted.topic, wanted.key, QUERY_MAX, 0, 1 << 62).buffers
    places = [record.decode_record(raw).physical_offset for raw in raws]
    assert wanted.physical_offset in places or len(places) == QUERY_MAX, f"the index does not know {wanted}"
    assert places.count(wanted.physical_offset) <= 1, f"the index has {wanted} twice"
