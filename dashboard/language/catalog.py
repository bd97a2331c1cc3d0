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
    """The entries of a `.po` file, its header (the empty text) first. Raises CatalogError.

    Two people's changes may be merged without a person (`merge=union` in .gitattributes): an entry may follow another
    without an empty line, and one may lack its translation because the next one's is the same line.
    """
    entries: list[Entry] = []
    waiting: list[dict[str, str]] = []  # what has no translation yet, the last of them being read
    key, is_fuzzy = "", False
    for number, line in enumerate(source.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            is_fuzzy = is_fuzzy or (line.startswith("#,") and "fuzzy" in line)
            if line.startswith("#~"):
                raise CatalogError(f"{name}:{number}: an entry that is not used any more")
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None or not (found[1] or key):
            raise CatalogError(f"{name}:{number}: not a line of a catalog: {line}")
        if found[1] in ("msgctxt", "msgid") and key != "msgctxt":
            if key.startswith("msgstr"):
                entries += _entries(waiting, is_fuzzy, f"{name}:{number}")
                waiting, is_fuzzy = [], False
            waiting.append({})
        key = found[1] or key
        if not waiting:
            raise CatalogError(f"{name}:{number}: {key} without a msgid")
        text = json.loads(found[3])
        waiting[-1][key] = text if found[1] else waiting[-1].get(key, "") + text
    return entries + _entries(waiting, is_fuzzy, name)


def write(entries: Iterable[Entry]) -> str:
    """A `.po` file of the entries, sorted; the header comes first by itself."""
    return "\n".join(_block(entry) for entry in sorted(entries, key=lambda entry: entry.message))


def _entries(parts: list[dict[str, str]], is_fuzzy: bool, place: str) -> list[Entry]:
    """Entries that end in one translation: the last one's."""
    if not parts:
        return []
    texts = [parts[-1][key] for key in sorted(parts[-1]) if key.startswith("msgstr")]
    if not texts or any("msgid" not in part for part in parts):
        raise CatalogError(f"{place}: an entry before this line lacks its msgid or msgstr")
    return [
        Entry(Message(part["msgid"], part.get("msgid_plural", ""), part.get("msgctxt", "")), list(texts), is_fuzzy)
        for part in parts
    ]


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
