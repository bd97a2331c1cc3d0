"""The shape of what a command printed: its labels, headings, columns and keys, with the values taken away.

Lines that look alike once the values are gone count once: the number of queues of a broker is not a shape. Tables come
in the order of some hash table of Java's, so lines and keys are compared as sets; the headings' words keep their order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_STACK = re.compile(
    r"^\s*at [\w.$/]+\(.*\)$|^\s*\.\.\. \d+ (more|common frames omitted)$"  # of an exception
    r"|^\S+ +[\w.$@/]+\([\w. :]+\)$|^\S+ +TID: \d+ STATE: \w+$"  # of consumerStatus -s: the consumer's own threads
)
_ADVICE = re.compile(r"^(For more information, please visit the url|See) ?,? ?http.*$")
_BARE_KEY = re.compile(r"(?<=[{,])(\s*)(\d+)(\s*:)")  # fastjson writes numbers as keys without quotes
_VALUES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:.]\d{3})?"), "<time>"),
    (re.compile(r"[\w.:-]+@(\d+(@[\w.-]+)?#\d+|MonitorService_-?\d+)"), "<client>"),
    (re.compile(r"(?<![0-9A-F])[0-9A-F]{32,60}(?![0-9A-F])"), "<id>"),
    (re.compile(r"\$\$Lambda\$[\w/]+"), "$$Lambda"),
    (re.compile(r"\b\d+(\.\d+)? [KMGT]?i?B\b"), "<size>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b"), "<address>"),
    (re.compile(r"\bnull:0\b"), "<address>"),
    (re.compile(r"V[45]_\d_\d(_SNAPSHOT)?"), "<version>"),
    (re.compile(r"@[0-9a-f]{5,8}\b"), "@<hash>"),
    (re.compile(r"(?<![\w.])(?<!CODE: )-?\d[\d.]*(E-?\d+)?"), "<n>"),
    (re.compile(r"(?<!CODE: )(?<!CODE: \d)(?<!CODE: \d\d)\d+"), "<n>"),  # a response's code is no value
)
_LIKE = ", like "
_LESS, _MORE = "less ", "more "


def shape(text: str, names: Mapping[str, str]) -> list[str]:
    """The lines of the shape, sorted. `names` are texts that differ from run to run, with what stands for them."""
    for value, name in sorted(names.items(), key=lambda item: -len(item[0])):
        text = text.replace(value, name)
    parsed = _as_json(text)
    lines = _paths(parsed) if parsed is not None else map(_line, text.splitlines())
    return sorted({line for line in lines if line})


def _line(line: str) -> str:
    if _STACK.match(line) or _ADVICE.match(line):
        return ""
    for pattern, name in _VALUES:
        line = pattern.sub(name, line)
    return " ".join(line.split())


def _as_json(text: str) -> object:
    """What stands in a JSON text, else None."""
    try:
        return json.loads(_BARE_KEY.sub(r'\1"\2"\3', text))
    except ValueError:
        return None


def _paths(value: object, path: str = "") -> Iterable[str]:
    """Each leaf as its keys and its kind of value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{_line(key)}")
        if not value:
            yield f"{path} {{}}"
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")
        if not value:
            yield f"{path} []"
    else:
        yield f"{path} {type(value).__name__ if not isinstance(value, str) else _line(value)}"


class ShapeFile:
    """Shapes by command, kept as text: a command after "== ", and its lines below.

    A shape much like that of a command above it stands as what it has less and more: "== command, like other command".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shapes: dict[str, list[str]] | None = None

    def read(self) -> dict[str, list[str]]:
        if self._shapes is None:
            sections = re.split(r"^== ", self.path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
            self._shapes = {}
            for section in sections:
                heading, *lines = section.splitlines()
                command, _, other = heading.partition(_LIKE)
                self._shapes[command] = _applied(self._shapes[other], lines) if other else lines
        return self._shapes

    def write(self, shapes: Mapping[str, Sequence[str]]) -> None:
        """Add or replace these commands' shapes."""
        kept = (self.read() if self.path.exists() else {}) | {name: list(lines) for name, lines in shapes.items()}
        names = sorted(kept)
        sections = (
            _section(name, kept[name], {other: kept[other] for other in names[:at]}) for at, name in enumerate(names)
        )
        self.path.write_text("".join(f"{line}\n" for section in sections for line in section), encoding="utf-8")
        self._shapes = kept


def _section(name: str, lines: Sequence[str], above: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The shape whole, or its differences from one above it where they are a third as long at most."""
    told = {other: _differences(theirs, lines) for other, theirs in above.items()}
    nearest = min(told, key=lambda other: len(told[other]), default="")
    if nearest and 3 * len(told[nearest]) <= len(lines):
        return [f"== {name}{_LIKE}{nearest}", *told[nearest]]
    return [f"== {name}", *lines]


def _differences(theirs: Sequence[str], ours: Sequence[str]) -> list[str]:
    less = [_LESS + line for line in theirs if line not in ours]
    return less + [_MORE + line for line in ours if line not in theirs]


def _applied(theirs: Sequence[str], differences: Sequence[str]) -> list[str]:
    less = {line.removeprefix(_LESS) for line in differences if line.startswith(_LESS)}
    more = {line.removeprefix(_MORE) for line in differences if line.startswith(_MORE)}
    return sorted({*theirs} - less | more)


SHAPES = ShapeFile(Path(__file__).with_name("shapes.txt"))
ARE_WRITTEN = os.environ.get("GANTRY_WRITE_SHAPES") == "1"
