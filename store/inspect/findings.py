"""What an inspection found: each thing with its place, equal things counted once too many have been shown."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

SHOWN_OF_A_KIND = 50  # a damaged queue can have millions of equal findings


class Level(enum.IntEnum):
    """How bad it is; also the exit code of `gantry store`."""

    NOTE = 0  # worth knowing, nothing to do
    WARNING = 1  # the next start puts it right, or a person should look
    ERROR = 2  # damage


class Finding(NamedTuple):
    """One thing at one place. `position` counts bytes from the file's start; -1 when the whole file is meant."""

    level: Level
    code: str
    path: str
    position: int
    text: str

    def as_json(self) -> dict[str, str | int | None]:
        return {
            "level": self.level.name.lower(),
            "code": self.code,
            "path": self.path,
            "position": self.position if self.position >= 0 else None,
            "text": self.text,
        }

    def __str__(self) -> str:
        at = f":{self.position}" if self.position >= 0 else ""
        return f"{self.level.name.lower():<8} {self.path}{at}  {self.text}"


class Findings:
    """All findings of one run. `on_finding` sees each that is kept, at once."""

    def __init__(self, on_finding: Callable[[Finding], None] | None = None) -> None:
        self._items: list[Finding] = []
        self._on_finding = on_finding
        self.counts: Counter[str] = Counter()
        self.worst = Level.NOTE

    def add(self, level: Level, code: str, path: object, position: int, text: str) -> None:
        self.counts[code] += 1
        self.worst = max(self.worst, level)
        if self.counts[code] <= SHOWN_OF_A_KIND:
            finding = Finding(level, code, str(path), position, text)
            self._items.append(finding)
            if self._on_finding is not None:
                self._on_finding(finding)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def of(self, code: str) -> list[Finding]:
        return [finding for finding in self._items if finding.code == code]

    def withheld(self) -> dict[str, int]:
        """How many findings of each kind were counted but not kept."""
        return {code: count - SHOWN_OF_A_KIND for code, count in self.counts.items() if count > SHOWN_OF_A_KIND}
