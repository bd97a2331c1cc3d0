"""What commands print holds texts of strangers: names, bodies, remarks of a server. On a terminal some would act.

Escape sequences move the cursor, rewrite the title or colour over what stands there; marks of direction show a line in
another order than it has. All commands print through one gate that shows such characters as JSON writes them (\\u001b),
so that --json stays what it is.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

# Control characters but for tab and line feed, separators of lines, marks of direction, halves of pairs.
ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    """The text with what would act on a terminal written out."""
    return ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class TerminalText:
    """A stream that writes texts so. Everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
