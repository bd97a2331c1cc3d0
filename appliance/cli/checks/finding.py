"""What a check of this machine found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """One sentence, with the exact fix if there is something to fix. is_fatal: nothing starts so. is_good: all is well,
    which `gantry up` does not print.

    facts: what the text has as %(name)s. The dashboard translates the text, so what it shows has its facts apart.
    """

    text: str
    is_fatal: bool = True
    is_good: bool = False
    facts: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def sentence(self) -> str:
        return self.text % self.facts if self.facts else self.text

    @property
    def mark(self) -> str:
        return "✓" if self.is_good else "✗" if self.is_fatal else "!"


def good(text: str, **facts: object) -> Finding:
    return Finding(text, is_fatal=False, is_good=True, facts=facts)


def warning(text: str, **facts: object) -> Finding:
    return Finding(text, is_fatal=False, facts=facts)
