"""Compiles the catalogs when the web process starts: gettext reads `.mo` files, people write `.po` files.

The `.mo` files lie in the data folder, so no checkout holds one that is older than its source, and no program beside
Python is needed to install. A text that is not translated is left out: gettext answers with the English one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from dashboard.language.catalog import Entry, read

logger = logging.getLogger(__name__)

MAGIC = 0x950412DE
HEADER_BYTES = 28
SOURCES = Path(__file__).resolve().parent.parent / "locale"


def compiled(entries: Iterable[Entry]) -> bytes:
    """A `.mo` file: a table of the texts, sorted by their bytes, one of the translations, then both."""
    pairs = sorted(
        (_key(entry), "\0".join(entry.texts).encode()) for entry in entries if all(entry.texts) and not entry.is_fuzzy
    )
    texts_at, translations_at = HEADER_BYTES, HEADER_BYTES + 8 * len(pairs)
    place = translations_at + 8 * len(pairs)
    tables: list[bytes] = []
    for column in (0, 1):
        for pair in pairs:
            tables.append(struct.pack("<II", len(pair[column]), place))
            place += len(pair[column]) + 1
    body = b"".join(pair[column] + b"\0" for column in (0, 1) for pair in pairs)
    head = struct.pack("<7I", MAGIC, 0, len(pairs), texts_at, translations_at, 0, place)
    return head + b"".join(tables) + body


def _key(entry: Entry) -> bytes:
    message = entry.message
    text = f"{message.text}\0{message.plural}" if message.plural else message.text
    return (f"{message.context}\4{text}" if message.context else text).encode()


def compile_catalogs(folder: Path) -> Path:
    """Write the `.mo` of each catalog below `folder`, where it is not the same already; returns `folder`.

    A disk that takes no file leaves the pages as they were before: older words are better than no dashboard.
    """
    for source in sorted(SOURCES.glob("*/LC_MESSAGES/*.po")):
        target = folder / source.relative_to(SOURCES).with_suffix(".mo")
        data = compiled(read(source.read_text(encoding="utf-8"), source.name))
        try:
            _put(target, data)
        except OSError as exc:
            logger.warning("catalog not written", extra={"event": "catalog_not_written", "why": str(exc)})
    return folder


def words_version() -> str:
    """What changes with the texts of the scripts: a part of their address."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*/LC_MESSAGES/djangojs.po")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _put(target: Path, data: bytes) -> None:
    if target.is_file() and target.read_bytes() == data:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f"{target.name}.{os.getpid()}")
    made.write_bytes(data)
    made.replace(target)
