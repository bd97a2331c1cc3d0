"""What a check of this machine found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One sentence, with the exact fix if there is something to fix. is_fatal: nothing starts so. is_good: all is well,
    which only `gantry doctor` shows."""

    sentence: str
    is_fatal: bool = True
    is_good: bool = False

    @property
    def mark(self) -> str:
        return "✓" if self.is_good else "✗" if self.is_fatal else "!"


def good(sentence: str) -> Finding:
    return Finding(sentence, is_fatal=False, is_good=True)


def warning(sentence: str) -> Finding:
    return Finding(sentence, is_fatal=False)
