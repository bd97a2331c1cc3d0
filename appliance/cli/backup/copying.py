"""One file's copy: with its hash, without the blocks of zeros that brokers prepare, and on the way back compared."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from appliance.cli.backup.manifest import Entry

CHUNK_BYTES = 1 << 20
FILE_MODE, FOLDER_MODE = 0o600, 0o700


def copy_open(source: int, to: Path, *, end: int | None = None) -> Entry:
    """Copy an open file as it is now. end: from there on the copy has zeros, up to the file's length."""
    facts = os.fstat(source)
    whole, kept = facts.st_size, facts.st_size if end is None else min(end, facts.st_size)
    return Entry(whole, _write(_parts_of(source, kept), whole, to), facts.st_mtime_ns)


def copy(source: Path, to: Path) -> Entry:
    """Copy a file as it is now."""
    descriptor = os.open(source, os.O_RDONLY)
    try:
        return copy_open(descriptor, to)
    finally:
        os.close(descriptor)


def link(source: Path, to: Path) -> None:
    """Have the same file twice: what is in a backup is never written again."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    os.link(source, to)


def _parts_of(descriptor: int, end: int) -> Iterator[bytes]:
    position = 0
    while position < end:
        part = os.pread(descriptor, min(CHUNK_BYTES, end - position), position)
        if not part:
            return  # it was cut meanwhile; what is missing counts as zeros
        yield part
        position += len(part)


def _write(parts: Iterator[bytes], size_bytes: int, to: Path) -> str:
    """Returns the hash of what the file has then."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    digest, position = hashlib.sha256(), 0
    descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        os.ftruncate(descriptor, size_bytes)
        for part in parts:
            digest.update(part)
            if part.count(0) != len(part):
                os.pwrite(descriptor, part, position)
            position += len(part)
    finally:
        os.close(descriptor)
    while position < size_bytes:
        part = bytes(min(CHUNK_BYTES, size_bytes - position))
        digest.update(part)
        position += len(part)
    return digest.hexdigest()
