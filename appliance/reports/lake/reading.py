"""How far a broker's log is read into the lake, and what is missing from it. Pure.

Each commit of the table of messages that moves a position carries it, as application transactions of Delta: numbers by
name, the newest of which counts. Delta keeps them through its checkpoints.

    BROKER                    the physical offset up to which the log is read
    BROKER/last, /stored, /crc    the last record: its offset, its store timestamp in ms, the CRC of its body
    BROKER/gaps               how many gaps there are
    BROKER/gap/N/begin, /end, /from, /to, /damage     a gap; times in ms; -1: not known
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

PREFIX = "gantrymq/"
NOTHING = -1  # in the place of None


class Gap(NamedTuple):
    """A range of the log that its broker deleted before it was read, or that is_damage.

    Its messages were stored from `from_ms` to `to_ms`, when the records before and after it were; None: not known. Of
    these the earlier one is `from_ms`, also when the broker's clock was put back in between.
    """

    begin: int
    end: int
    from_ms: int | None
    to_ms: int | None
    is_damage: bool = False

    def until(self, to_ms: int | None) -> Gap:
        """The gap with the time of what comes after it."""
        if self.from_ms is None or to_ms is None:
            return self._replace(to_ms=to_ms)
        return self._replace(from_ms=min(self.from_ms, to_ms), to_ms=max(self.from_ms, to_ms))

    def touches(self, begin_ms: int, end_ms: int) -> bool:
        """Whether some of what it held may have been stored in [begin_ms, end_ms)."""
        return (self.from_ms is None or self.from_ms < end_ms) and (self.to_ms is None or self.to_ms >= begin_ms)


@dataclass(slots=True)
class Reading:
    """end: of the log that was read; None: nothing yet. last: the newest record: (offset, store timestamp, CRC)."""

    end: int | None = None
    last: tuple[int, int, int] | None = None
    gaps: list[Gap] = field(default_factory=list)

    def read(self, end: int, last: tuple[int, int, int] | None, earliest_ms: int | None) -> None:
        """A range was read. earliest_ms: when the first of its messages was stored; None: it has none."""
        if earliest_ms is not None:
            self.gaps = [gap.until(earliest_ms) if gap.to_ms is None else gap for gap in self.gaps]
        self.end, self.last = end, last or self.last

    def lose(self, begin: int, end: int, *, is_damage: bool) -> None:
        """A range is lost. Gaps of one kind that follow each other are one."""
        if self.gaps and self.gaps[-1].to_ms is None and self.gaps[-1].is_damage == is_damage:
            begin = self.gaps.pop().begin
        self.gaps.append(Gap(begin, end, self.last[1] if self.last else None, None, is_damage))
        self.end = end

    def cut(self, end: int, last: tuple[int, int, int] | None) -> None:
        """The log ends earlier than what was read."""
        gaps = [gap._replace(end=min(gap.end, end)) for gap in self.gaps if gap.begin < end]
        self.gaps = [gap._replace(to_ms=None) if gap.end == end else gap for gap in gaps]
        self.end, self.last = end, last

    def numbers(self, broker: str) -> dict[str, int]:
        """All that is known, as application transactions."""
        own = PREFIX + broker
        offset, stored, crc = self.last or (NOTHING, NOTHING, NOTHING)
        found = {own: self.end or 0, f"{own}/last": offset, f"{own}/stored": stored, f"{own}/crc": crc}
        found[f"{own}/gaps"] = len(self.gaps)
        for at, gap in enumerate(self.gaps):
            found |= {f"{own}/gap/{at}/{name}": number(value) for name, value in zip(_GAP, gap, strict=True)}
        return found


_GAP = ("begin", "end", "from", "to", "damage")


def reading_of(broker: str, number_of: Callable[[str], int | None]) -> Reading:
    """What the numbers say. number_of: the newest with a name; None: there is none."""
    own = PREFIX + broker
    end = number_of(own)
    if end is None:
        return Reading()
    last = tuple(number_of(f"{own}/{name}") for name in ("last", "stored", "crc"))
    gaps = []
    for at in range(number_of(f"{own}/gaps") or 0):
        begin, gap_end, from_ms, to_ms, damage = (number_of(f"{own}/gap/{at}/{name}") for name in _GAP)
        assert begin is not None and gap_end is not None, f"{own}: the commit of gap {at} is not whole"
        gaps.append(Gap(begin, gap_end, known(from_ms), known(to_ms), bool(damage)))
    return Reading(end, None if last[0] in (None, NOTHING) else last, gaps)  # type: ignore[arg-type]


def number(value: int | None) -> int:
    return NOTHING if value is None else int(value)


def known(value: int | None) -> int | None:
    return None if value == NOTHING else value
