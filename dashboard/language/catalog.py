"""A catalog of translated texts as a `.po` file: what gettext's tools read and write, without comments of places.

Entries are sorted by their English text and each text stands on one line, so that two people's changes of one file
rarely meet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[(\d)\])?)\s+)?("(?:[^"\\]|\\.)*")')


class CatalogError(ValueError):
    """A catalog that can not be read; the text names file and line."""


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """An English text as programs ask for it. plural: the text for many, "" for a text without number."""

    text: str
    plural: str = ""
    context: str = ""


@dataclass(slots=True)
class Entry:
    """A message and what it is in the other language: one text, or one for each plural form."""

    message: Message
    texts: list[str] = field(default_factory=list)
    is_fuzzy: bool = False


def read(source: str, name: str = "catalog") -> list[Entry]:
    """The entries of a `.po` file, its header (the empty text) first. Raises CatalogError."""
    entries: list[Entry] = []
    for block_start, block in _blocks(source):
        entries.append(_entry(block, f"{name}:{block_start}"))
    return entries


def write(entries: Iterable[Entry]) -> str:
    """A `.po` file of the entries, sorted; the header comes first by itself."""
    return "\n".join(_block(entry) for entry in sorted(entries, key=lambda entry: entry.message))


def _blocks(source: str) -> Iterable[tuple[int, list[str]]]:
    """Line number and lines of each entry. A merge of two people's entries may have no empty line between them."""
    block: list[str] = []
    start = 1
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        is_next = line.startswith(("msgctxt ", "msgid ")) and any(before.startswith("msgstr") for before in block)
        if block and (is_next or not line.strip()):
            yield start, block
            block = []
        if line.strip():
            start = start if block else number
            block.append(line)


def _entry(lines: list[str], place: str) -> Entry:
    parts: dict[str, str] = {}
    key = ""
    is_fuzzy = False
    for line in lines:
        if line.startswith("#~"):
            raise CatalogError(f"{place}: an entry that is not used any more")
        if line.startswith("#"):
            is_fuzzy = is_fuzzy or (line.startswith("#,") and "fuzzy" in line)
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise CatalogError(f"{place}: not a line of a catalog: {line}")
        if found[1]:
            key = found[1]
            if key in parts:
                raise CatalogError(f"{place}: {key} comes twice")
            parts[key] = ""
        elif not key:
            raise CatalogError(f"{place}: a text without a word before it")
        parts[key] += json.loads(found[3])
    if "msgid" not in parts:
        raise CatalogError(f"{place}: no msgid")
    message = Message(parts["msgid"], parts.get("msgid_plural", ""), parts.get("msgctxt", ""))
    return Entry(message, [parts[name] for name in sorted(parts) if name.startswith("msgstr")], is_fuzzy)


def _block(entry: Entry) -> str:
    message = entry.message
    lines = [f"msgctxt {_quoted(message.context)}"] if message.context else []
    lines.append(f"msgid {_quoted(message.text)}")
    if message.plural:
        lines.append(f"msgid_plural {_quoted(message.plural)}")
        lines += [f"msgstr[{number}] {_quoted(text)}" for number, text in enumerate(entry.texts)]
    elif message.text:
        lines.append(f"msgstr {_quoted(entry.texts[0])}")
    else:  # the header: a line for each field
        lines += ['msgstr ""', *(_quoted(line) for line in entry.texts[0].splitlines(keepends=True))]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
