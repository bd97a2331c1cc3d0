"""What was acknowledged, and whether a store has it: each message once, in its place, in order, without gaps.

A transaction's message may be in the half queue and, once it is committed, in its real one; rolled back, never there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.service import TransactionService
from gantrymq.message import record
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import TRANSACTION_CHECK_TIMES
from gantrymq.message.topics import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from store import MessageStore
from tests.faults.kit.traffic import COMMITTED, ROLLED_BACK, Acknowledged

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
        self._prepared: dict[str, Acknowledged] = {}
        self._rolled_back: set[str] = set()
        self._has_copies = False  # a broker asked about transactions, and wrote their halves again
        self.still_open = 0  # transactions without an end, at the last check
        self.ends_lost = 0  # of these, committed: the crash came between the message and the note of its end

    def check(self, store: MessageStore, latest: list[Acknowledged]) -> None:
        """Check what the last round may have changed. `check_all` begins from the start."""
        for topic in sorted(store.topics()):
            for queue_id in store.queue_ids(topic):
                self._check_queue(store, topic, queue_id)
        self._check_ends(store, latest)
        for each in latest:
            if each.queue_offset in (COMMITTED, ROLLED_BACK):
                continue
            if each.queue_offset >= 0:
                found = self._copies_of(each.topic).get(each.key)
                assert found == each, f"{each} is lost: {found}"
            else:
                stored = store.look_message_by_offset(each.physical_offset)
                assert stored is not None and stored.keys == [each.key], f"{each} is lost"
        earlier = self._chance.sample(self.acknowledged, min(INDEX_ASKED, len(self.acknowledged)))
        for each in latest + earlier:
            if each.queue_offset != ROLLED_BACK:
                check_index(store, self._seen[each.key] if each.queue_offset == COMMITTED else each)
        self.acknowledged += latest

    def check_all(self, store: MessageStore) -> None:
        """Check everything again that was ever acknowledged."""
        everything, self.acknowledged = self.acknowledged, []
        self._checked.clear()
        self._positions.clear()
        self._numbers.clear()
        self._seen.clear()
        self._prepared.clear()
        self.check(store, everything)

    def seen(self, key: str) -> Acknowledged | None:
        """Where consumers find the message with the key."""
        return self._seen.get(key)

    def _copies_of(self, topic: str) -> dict[str, Acknowledged]:
        return self._prepared if topic == TRANS_HALF_TOPIC else self._seen

    def _check_ends(self, store: MessageStore, latest: list[Acknowledged]) -> None:
        """Committed is there, rolled back never is, and a broker that starts on this store knows which have ended."""
        transactions = TransactionService(store, EndedHalves.load(store, -1, -1), b"")
        ends = [each for each in latest if each.queue_offset in (COMMITTED, ROLLED_BACK)]
        for each in ends:
            place = self._seen.get(each.key)
            if each.queue_offset == COMMITTED:
                assert place is not None and place[:2] == each[:2], f"committed {each} is lost: {place}"
            assert transactions.has_ended(self._prepared[each.key].queue_offset), f"the end of {each} is lost"
        self._rolled_back |= {each.key for each in ends if each.queue_offset == ROLLED_BACK}
        assert not self._rolled_back & self._seen.keys(), "rolled back, and there"
        if not self._has_copies:
            still_open = [each for each in self._prepared.values() if not transactions.has_ended(each.queue_offset)]
            assert transactions.pending == len(still_open), "not all open transactions would be asked about"
            self.still_open = len(still_open)
            self.ends_lost = sum(each.key in self._seen for each in still_open)

    def _check_queue(self, store: MessageStore, topic: str, queue_id: int) -> None:
        queue = topic, queue_id
        start = self._checked.get(queue, 0)
        assert store.max_offset(topic, queue_id) >= start, f"{queue} has lost what was read before"
        index = start
        for stored in messages(store, topic, queue_id, start):
            place = f"{queue} at {index}"
            assert (stored.topic, stored.queue_id, stored.queue_offset) == (topic, queue_id, index), place
            assert stored.physical_offset > self._positions.get(queue, -1), f"{place}: not in the log's order"
            self._positions[queue] = stored.physical_offset
            index += 1
            if topic == TRANS_OP_HALF_TOPIC:
                continue
            if TRANSACTION_CHECK_TIMES in stored.properties and topic == TRANS_HALF_TOPIC:
                self._has_copies = True
                continue
            (key,) = stored.keys
            seen = self._copies_of(topic)
            assert key not in seen, f"{place}: {key} is there twice, {seen[key]}"
            seen[key] = Acknowledged(topic, queue_id, index - 1, stored.physical_offset, key)
            sender, _, number = key.rpartition(".")
            if TRANSACTION_CHECK_TIMES in stored.properties:
                continue  # committed when the broker asked, whenever that was
            assert int(number) > self._numbers.get((*queue, sender), -1), f"{place}: {key} came too early"
            self._numbers[*queue, sender] = int(number)
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
