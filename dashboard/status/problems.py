"""What a check finds: how bad, what, the evidence, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad; the words are what a person reads beside the colour."""

    GOOD = 0
    WARN = 1
    BAD = 2

    @property
    def word(self) -> str:
        return {Level.GOOD: "good", Level.WARN: "attention", Level.BAD: "problem"}[self]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not fine: what, the evidence, what to do."""

    level: Level
    title: str
    evidence: str
    action: str
    name: str = ""  # the same for the same problem, where the title counts seconds
    link: str = ""  # the page of what it is about

    @property
    def identity(self) -> str:
        return self.name or self.title
