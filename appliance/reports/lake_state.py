"""What the entries of a lake's manifest say together: the files that count, gaps, what was taken out. Pure.

    op          what it says                                     fields beside from, to, last
    append      a range of the log is in the lake                add
    gap         a range that the broker deleted unread, or  damage
                whose bytes are no records any more
    compact     the rows of some files stand in others now       add, remove, at
    expire      the lake's age or size took files out            remove, at
    checkpoint  all that the entries before it said              add, remove, removed, gaps, stored, expired_ms

`add` and `remove` of all entries together are the files that count; `at` is in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

CHECKPOINT = "checkpoint"
REWRITES = ("compact", "expire")  # they leave the lake's end alone


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One committed Parquet file. `path` is relative to the lake; times are store timestamps in ms."""

    path: str
    date: str
    rows: int
    size_bytes: int
    min_store_timestamp: int
    max_store_timestamp: int

    @property
    def span(self) -> tuple[int, int]:
        """The range of the log that its rows are from: its name begins with it."""
        return span_of(self.path)


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
class LakeState:
    """end: of the log that was read; None: nothing yet. last: the mark of the newest record.

    removed: files that no longer count and may still be read, with the time at which they were taken out.
    expired_ms: what was stored before is not whole any more; None: nothing expired.
    """

    end: int | None = None
    last: tuple[int, int, int] | None = None
    files: dict[str, LakeFile] = field(default_factory=dict)
    removed: dict[str, float] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    expired_ms: int | None = None
    entries: int = 0  # since the last checkpoint
    _stored: int | None = None  # when the newest record was
    _is_gap_open: bool = False

    def take(self, entry: Mapping[str, Any]) -> None:
        """Add what an entry says; entries come in their order."""
        self.entries += 1
        if entry["op"] == CHECKPOINT:
            self._begin_anew(entry)
        else:
            if entry["op"] not in REWRITES:
                self._follow(entry)
            if entry["op"] == "expire":
                newest = max((self.files[path].max_store_timestamp for path in entry["remove"]), default=None)
                self.expired_ms = max(filter(None, (self.expired_ms, newest and newest + 1)), default=None)
            for path in entry.get("remove", ()):
                del self.files[path]
                self.removed[path] = float(entry["at"])
            self._add(entry)

    def checkpoint_entry(self) -> dict[str, Any]:
        """An entry that says all that is known."""
        return {
            "op": CHECKPOINT,
            "from": self.end,
            "to": self.end,
            "last": self.last,
            "add": [asdict(file) for file in self.files.values()],
            "remove": [*self.removed],
            "removed": self.removed,
            "gaps": self.gaps,
            "stored": self._stored,
            "is_gap_open": self._is_gap_open,
            "expired_ms": self.expired_ms,
        }

    def _begin_anew(self, entry: Mapping[str, Any]) -> None:
        self.end, self.entries = entry["to"], 0
        self.last = _mark_of(entry)
        self.files, self.removed = {}, dict(entry["removed"])
        gaps = (Gap(*gap) for gap in entry["gaps"])
        self.gaps = [gap.until(gap.to_ms) for gap in gaps]  # older ones may have their times the other way round
        self._stored, self._is_gap_open = entry["stored"], entry["is_gap_open"]
        self.expired_ms = entry["expired_ms"]
        self._add(entry)

    def _follow(self, entry: Mapping[str, Any]) -> None:
        """A range behind the last one: read, or lost."""
        self.end = int(entry["to"])
        if entry["op"] == "gap":
            is_damage = bool(entry.get("damage"))
            goes_on = self._is_gap_open and self.gaps[-1].is_damage == is_damage
            begin = self.gaps.pop().begin if goes_on else int(entry["from"])
            self.gaps.append(Gap(begin, self.end, self._stored, None, is_damage))
            self._is_gap_open = True
        if self._is_gap_open and entry["add"]:
            earliest = min(int(added["min_store_timestamp"]) for added in entry["add"])
            self.gaps = [gap.until(earliest) if gap.to_ms is None else gap for gap in self.gaps]
            self._is_gap_open = False
        if mark := _mark_of(entry):
            self.last, self._stored = mark, mark[1]

    def _add(self, entry: Mapping[str, Any]) -> None:
        for added in entry["add"]:
            file = LakeFile(**added)
            self.files[file.path] = file

    def cut(self, end: int, kept: Mapping[str, LakeFile | None], last: tuple[int, int, int] | None) -> None:
        """Have the log end earlier. kept: what stands in the place of files that reach beyond it, None: nothing."""
        for path, file in kept.items():
            del self.files[path]
            if file is not None:
                self.files[file.path] = file
        self.removed = {path: at for path, at in self.removed.items() if span_of(path)[1] <= end}  # see Lake.cut
        self.gaps = [gap._replace(end=min(gap.end, end)) for gap in self.gaps if gap.begin < end]
        self.end, self.last = end, last
        self._stored = last[1] if last else None
        self._is_gap_open = bool(self.gaps) and self.gaps[-1].end == end


def span_of(path: str) -> tuple[int, int]:
    """The range of the log that a file's name begins with."""
    begin, end = path.rpartition("/")[2].split("-")[:2]
    return int(begin), int(end)


def _mark_of(entry: Mapping[str, Any]) -> tuple[int, int, int] | None:
    if not entry["last"]:
        return None
    offset, stored, crc = entry["last"]
    return int(offset), int(stored), int(crc)
