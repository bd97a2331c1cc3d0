"""What a reader of a queue asks a filter, and the filter by tags.

The questions go from cheap to expensive: the tags code in the consume-queue unit, the unit's extension, the record. A
no is final; a yes leads to the next question. In place of a filter, None means every message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from store.queues.consume_queue_ext import ExtUnit


class Filter(Protocol):
    """Which messages of a queue are wanted. Its methods must not raise: they run in the middle of a read."""

    @property
    def tags_codes(self) -> frozenset[int] | None:
        """The signed 32-bit tags codes of which a wanted message has one; None when the code tells nothing.

        This is data and not a method because a read asks it of up to 800 units.
        """

    @property
    def records_max(self) -> int:
        """How many records one read may look into, since the loop waits meanwhile; 0: the unit tells everything."""

    def may_match(self, extended: ExtUnit) -> bool:
        """Whether the message can match, as far as its unit in the queue's extension tells."""

    def matches(self, properties: bytes) -> bool:
        """Whether a message with these encoded properties is wanted. Asked only when `records_max` is not 0."""


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Wants messages with one of these tags codes. Tags that share a code all pass: the client compares the words."""

    tags_codes: frozenset[int]
    records_max: ClassVar[int] = 0

    def may_match(self, extended: ExtUnit) -> bool:
        """Compare the code that stands in the extension."""
        return may_match_code(self, extended.tags_code)

    def matches(self, properties: bytes) -> bool:
        """Say yes: the code has decided."""
        return True


def may_match_code(wanted: Filter | None, tags_code: int) -> bool:
    """Return whether a message with this tags code (64 bits, of which the low 32 are the hash) can be wanted."""
    if wanted is None or wanted.tags_codes is None:
        return True
    code = tags_code & 0xFFFFFFFF
    return (code - 0x100000000 if code >= 0x80000000 else code) in wanted.tags_codes
