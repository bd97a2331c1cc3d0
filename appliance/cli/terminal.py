"""Protects the terminal from untrusted text in the output: names, bodies, remarks of a server.

Escape sequences could move the cursor, change the title or overwrite text; direction marks could change the order of a
line. All commands print through TerminalText, which writes such characters as JSON escapes (\\u001b), so the output of
--json keeps its meaning.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

# Control characters but for tab and line feed, separators of lines, marks of direction, halves of pairs.
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """The text with control characters replaced by escapes."""
    return ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class TerminalText:
    """A stream whose `write` replaces control characters. Everything else is delegated to the stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
