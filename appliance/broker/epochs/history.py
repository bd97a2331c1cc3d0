"""Epochs: whose log this is, and from where on. Each promotion begins one; decisions only, no I/O.

Two logs agree up to the end of the newest epoch that both have. An epoch is known by number, start and a random id: two
slaves that were promoted apart from each other have both begun epoch 2, and it is not the same.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

EPOCHS_MAX = 256  # remembered: of older ones the bytes themselves are compared
ID_CHARS = 16


class Epoch(NamedTuple):
    """number: 1 and more; start: where its first byte stands in the log; id: random, of who began it."""

    number: int
    start: int
    id: str


@dataclass(frozen=True, slots=True)
class Epochs:
    """A log's epochs, the oldest first. highest: the highest number heard of, of any log; a lower one is over.

    highest_id: who began that one; "": not known.
    """

    history: tuple[Epoch, ...] = ()
    highest: int = 0
    highest_id: str = ""

    @property
    def current(self) -> int:
        """The number of the epoch in which the log ends; 0: not known."""
        return self.history[-1].number if self.history else 0

    @property
    def current_id(self) -> str:
        """Its id; "" while no epoch is known."""
        return self.history[-1].id if self.history else ""

    @property
    def is_current(self) -> bool:
        """No later epoch than this log's is known."""
        return bool(self.history) and self.current == self.highest

    def begun(self, end: int, above: int = 0, epoch_id: str = "") -> Epochs:
        """With a new epoch, which begins where the log ends. above: its number is higher than this, too. epoch_id: the
        one that the register gave it; "": a random one."""
        number = max(self.highest, self.current, above) + 1
        if epoch_id and epoch_id == self.highest_id and epoch_id != self.current_id:  # it was heard of on another way
            number = self.highest
        kept = self.until(end).history[1 - EPOCHS_MAX :]
        epoch = Epoch(number, end if kept else 0, epoch_id or secrets.token_hex(ID_CHARS // 2))
        return Epochs((*kept, epoch), number, epoch.id)

    def is_overtaken(self, number: int, epoch_id: str) -> bool:
        """Whether an epoch that the register gave out is over before it began: a later one was heard of meanwhile."""
        return bool(epoch_id) and self.highest >= number and self.highest_id != epoch_id

    def until(self, end: int) -> Epochs:
        """Without the epochs that begin behind the log's end; they stay heard of."""
        return Epochs(tuple(each for each in self.history if each.start <= end), self.highest, self.highest_id)

    def heard(self, number: int, epoch_id: str = "") -> Epochs:
        """With an epoch that was heard of: its number, and who began it as far as that is known."""
        if number > self.highest:
            return Epochs(self.history, number, epoch_id)
        return Epochs(self.history, self.highest, self.highest_id or (epoch_id if number == self.highest else ""))

    def is_rival(self, number: int, epoch_id: str) -> bool:
        """Whether another began the highest number that is known here: neither log goes before the other."""
        return 0 < number == self.highest and bool(epoch_id and self.highest_id) and epoch_id != self.highest_id

    def shares(self, theirs: Epochs) -> bool:
        """Whether both are epochs of one log."""
        return self._newest_common(theirs) is not None

    def joint(self, end: int, theirs: Epochs, their_end: int) -> int | None:
        """Up to where a log of these epochs that ends at `end` is theirs; None when they share no epoch."""
        common = self._newest_common(theirs)
        if common is None:
            return None
        return min(self._end_of(common, end), theirs._end_of(common, their_end))

    def parted(self, theirs: Epochs) -> bool:
        """Whether either log has gone on in an epoch that the other does not have: then what lies behind the joint is
        another log's. In the same epoch a shorter log has lost something."""
        common = self._newest_common(theirs)
        return common is not None and (common.number != self.current or common.number != theirs.current)

    def _newest_common(self, theirs: Epochs) -> Epoch | None:
        known = set(theirs.history)
        return next((each for each in reversed(self.history) if each in known), None)

    def _end_of(self, epoch: Epoch, log_end: int) -> int:
        following = next((each.start for each in self.history if each.number > epoch.number), log_end)
        return min(following, log_end)

    # -- as JSON ------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        rows = [[each.number, each.start, each.id] for each in self.history]
        return {"epochs": rows, "highest": self.highest, "highestId": self.highest_id}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Epochs:
        """Raise ValueError for what can't be a history."""
        rows, highest = document.get("epochs", []), document.get("highest", 0)
        if not isinstance(rows, list) or not _is_number(highest):
            raise ValueError("epochs is not a list, or highest no number")
        history = tuple(_epoch(row) for row in rows)
        for before, after in itertools.pairwise(history):
            if after.number <= before.number or after.start < before.start:
                raise ValueError(f"epoch {after.number} follows epoch {before.number}, or begins before it")
        if history and highest < history[-1].number:
            raise ValueError(f"epoch {history[-1].number} is higher than {highest}")
        known = history[-1].id if history and history[-1].number == highest else str(document.get("highestId", ""))
        return cls(history, highest, known)


def _epoch(row: Any) -> Epoch:
    if not isinstance(row, list) or len(row) != len(Epoch._fields):
        raise ValueError(f"{row!r} is not an epoch")
    number, start, text = row
    if not _is_number(number) or not _is_number(start) or not isinstance(text, str) or not number or not text:
        raise ValueError(f"{row!r} is not an epoch")
    return Epoch(number, start, text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
