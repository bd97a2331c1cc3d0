"""The third field of a consume-queue unit: a tag's hash, or the time at which a delayed message is due."""

from __future__ import annotations

from gantrymq.message import properties as names
from store.base.delay import DelayLevels
from store.base.timer import due_ms_of
from store.queues.topic_slot import TopicSlot

TAGS_CACHED_MAX = 16384
TAGS_MARK = names.TAGS.encode() + b"\x01"
_TAGS = names.TAGS.encode()


class TagsCodes:
    """Hashes of the tags seen lately, and what is made of a message's properties with them."""

    def __init__(self, delay_levels: DelayLevels) -> None:
        self.known: dict[bytes, int] = {}  # bounded; build_batch looks here first
        self._delay_levels = delay_levels

    def code(self, slot: TopicSlot, properties: bytes, timestamp: int) -> int:
        """Return a message's code; `timestamp` is its store time, ms."""
        if slot.is_schedule:
            level = self._delay_levels.level_of(properties)
            if level > 0:
                return timestamp + self._delay_levels.delay_ms(level)
            due_ms = due_ms_of(properties)
            if due_ms:
                return due_ms
        at = properties.rfind(TAGS_MARK)
        if at < 0:
            return 0
        if at and properties[at - 1] != 2:
            tag = names.find_property(properties, _TAGS) or b""
        else:
            at += 5
            stop = properties.find(b"\x02", at)
            tag = properties[at:] if stop < 0 else properties[at:stop]
        code = self.known.get(tag)
        if code is None:
            if len(self.known) >= TAGS_CACHED_MAX:
                self.known.clear()
            code = self.known[tag] = names.string_hash_code(tag.decode("utf-8", "replace"))
        return code
