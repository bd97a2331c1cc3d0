"""Which half messages have ended: the op queue in memory, from where its progress stands to its end.

RocketMQ reads the op queue anew in every check round. Here it is read once, at start, and kept up to date: a commit
knows at once that it is the second one, and a round looks up a number instead of reading records. What a round has
passed is forgotten, so this holds about as much as ends between two rounds.
"""

from __future__ import annotations

from collections import deque


class EndedHalves:
    """Half-queue offsets that have ended. `position`: each half before it has ended, or was written again or away."""

    def __init__(self) -> None:
        self.position = 0
        self._ahead: set[int] = set()  # ended ones from the position on
        self._behind: set[int] = set()  # ended ones before it, as found at start: copies may name them
        self._ops: deque[tuple[int, int]] = deque()  # (op offset, half offset) of op messages not passed yet

    def __contains__(self, half_offset: int) -> bool:
        return half_offset in self._ahead or half_offset in self._behind

    @property
    def count_ahead(self) -> int:
        """How many halves from the position on have ended."""
        return len(self._ahead)

    def is_passed(self, half_offset: int) -> bool:
        """Whether rounds have been there: what is not known to have ended may wait further behind."""
        return half_offset < self.position

    def ended(self, half_offset: int, op_offset: int) -> None:
        """Note an op message."""
        if half_offset >= self.position:
            self._ahead.add(half_offset)
        self._ops.append((op_offset, half_offset))

    def found_at_start(self, half_offset: int, op_offset: int) -> None:
        """Note an op message that another process wrote."""
        self.ended(half_offset, op_offset)
        if half_offset < self.position:
            self._behind.add(half_offset)

    def pass_one(self) -> None:
        """The half at the position is dealt with."""
        self._ahead.discard(self.position)
        self.position += 1

    def skip_to(self, half_offset: int) -> None:
        """Those before are gone: their files were deleted."""
        self._ahead = {offset for offset in self._ahead if offset >= half_offset}
        self.position = half_offset

    def op_progress(self, op_end: int) -> int:
        """Forget op messages of passed halves; return the offset of the first that is still needed, else `op_end`."""
        while self._ops and self._ops[0][1] < self.position:
            self._ops.popleft()
        return self._ops[0][0] if self._ops else op_end

    def round_ended(self) -> None:
        """What was found at start has been looked at."""
        self._behind.clear()
