"""Which messages for a time are not delivered, because their sender has recalled them.

A recall is a message of the timer's topic, as in RocketMQ 5: due when the one that it recalls is due, which
TIMER_DEL_UNIQKEY names. So it is replicated, and survives whatever that one survives. Places of recalls have a negative
size, in memory and in the slots' files; what is due at a moment is compared with the recalls of that moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from appliance.broker.timer.entries import PLACE, Place
from gantrymq.errors import RecordError
from gantrymq.message import properties as names
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.message.record import split_record
from gantrymq.message.topics import TIMER_TOPIC
from store.base.results import StoreMessage
from store.message_store import MessageStore

TAG = "_RECALL_TAG_"
BODY = b"0"
RECORD_BYTES_MAX = 1024  # of a recall; a larger record is not looked at
PROPERTIES_BYTES_MAX = RECORD_BYTES_MAX - 256
SCAN = 1024
_KEY = names.TIMER_DEL_UNIQKEY.encode()
_UNIQ_KEY = names.UNIQ_KEY.encode()
_TOPIC = TIMER_TOPIC.encode()


def recall_properties(handle: RecallHandle, producer_group: str, now_ms: int) -> bytes:
    """A recall's, as RocketMQ's store has them under the timer's topic. ValueError: a text in them is too long, or none
    that properties can have."""
    properties = {
        names.TAGS: TAG,
        names.TIMER_DEL_UNIQKEY: f"{handle.topic}+{handle.msg_id}",
        names.UNIQ_KEY: handle.msg_id,
        names.TIMER_DELIVER_MS: str(handle.due_ms + 1),
        "BORN_TIMESTAMP": str(now_ms),
        **({names.PGROUP: producer_group} if producer_group else {}),
        names.TIMER_OUT_MS: str(handle.due_ms),
        names.REAL_TOPIC: handle.topic,
        names.REAL_QID: "0",
    }
    encoded = names.encode_properties(properties).encode()
    separators = encoded.count(b"\x01") + encoded.count(b"\x02")
    if len(encoded) > PROPERTIES_BYTES_MAX or separators != 2 * len(properties) - 1:
        raise ValueError("that is not an id or a producer group of a message")
    return encoded


def recalled_key(store: MessageStore, physical_offset: int) -> bytes | None:
    """The key of the message that the record there recalls; None when it is no recall."""
    try:
        record = store.message_bytes(physical_offset)
        fields = split_record(record) if record is not None else None
    except RecordError:
        return None  # delivery says so
    return names.find_property(fields.properties, _KEY) if fields is not None and fields.topic == _TOPIC else None


class Recalls:
    """The recalls that are due soon, by their millisecond."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._places: dict[int, list[bytes]] = {}
        self._keys: dict[int, set[bytes]] = {}  # of places that have been read

    @property
    def moments(self) -> set[int]:
        """For which there are recalls in memory."""
        return self._places.keys() | self._keys.keys()

    def add(self, due_ms: int, place: bytes) -> None:
        """Add a recall; `place` is packed (entries.PLACE)."""
        self._places.setdefault(due_ms, []).append(place)

    def read(self, due_ms: int, ends: float) -> bool:
        """Read what is recalled at that moment; False when it is `ends` (of perf_counter) and there is more."""
        places = self._places.get(due_ms)
        while places:
            key = recalled_key(self._store, Place._make(PLACE.unpack(places[-1])).physical_offset)
            if key is not None:
                self._keys.setdefault(due_ms, set()).add(key)
            places.pop()
            if time.perf_counter() > ends:
                return False
        return True

    def covers(self, due_ms: int, message: StoreMessage) -> bool:
        """Whether the message, due then, is recalled, or is a recall itself."""
        keys = self._keys.get(due_ms)
        if keys:
            msg_id = names.find_property(message.properties, _UNIQ_KEY)
            if msg_id is not None and message.topic.encode() + b"+" + msg_id in keys:
                return True
        return names.find_property(message.properties, _KEY) is not None

    def forget_before(self, due_ms: int) -> None:
        """Nothing that was due earlier is delivered any more."""
        for moments in (self._places, self._keys):
            for moment in [moment for moment in moments if moment < due_ms]:
                del moments[moment]

    def scan_below(self, physical_offset: int) -> Iterator[bool]:
        """As DueTable.scan_below; a recall that was read counts no longer, its key is in memory."""
        for places in list(self._places.values()):
            for at in range(0, len(places), SCAN):
                is_below = any(PLACE.unpack(place)[1] < physical_offset for place in places[at : at + SCAN])
                yield is_below
                if is_below:
                    return
