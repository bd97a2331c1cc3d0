"""A properties file edited by both people and processes: single values change, everything else stays.

Comments, order, blank lines, unknown keys and the file's mode are kept. Only the effective line of a key is rewritten
(the last one, when it occurs twice); a new key goes to the end. A write replaces the file atomically: after a crash it
is the old file or the new one, and when `change` returns it is on disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from appliance.settings.replaced_file import replace_file

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class PropertiesFile:
    """The file at `path`; a symbolic link stays one. All methods block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keys(self) -> frozenset[str]:
        """The keys that stand in it; none while there is no file. Raises OSError, UnicodeDecodeError."""
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                text = file.read()
        except FileNotFoundError:
            return frozenset()
        return frozenset(key for line in lines_of(text) if (key := key_of(line)) is not None)

    def change(self, values: Mapping[str, str]) -> None:
        """Set these keys. Raises OSError; the file is then unchanged."""
        target = self.path.resolve()
        with target.open(encoding="utf-8", newline="") as file:  # newline="": line ends stay as they are
            text = file.read()
        replace_file(target, with_values(text, values))


def with_values(text: str, values: Mapping[str, str]) -> str:
    """The text of a properties file with other values for some keys."""
    lines = lines_of(text)
    line_of = {key: number for number, line in enumerate(lines) if (key := key_of(line)) is not None}
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for key, value in values.items():
        if key in line_of:
            line = lines[line_of[key]]
            end = line[len(line.rstrip("\r\n")) :]
            lines[line_of[key]] = f"{key}={value}{end}"
            continue
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += ending
        lines.append(f"{key}={value}{ending}")
    return "".join(lines)


def lines_of(text: str) -> list[str]:
    """The lines with their ends, as Java reads them: str.splitlines would end lines at form feeds and the like."""
    return _LINE.findall(text)


def key_of(line: str) -> str | None:
    """The key of one line, None for comments and blank lines."""
    stripped = line.strip()
    if not stripped or stripped[0] in "#!":
        return None
    return stripped.partition("=")[0].strip()
