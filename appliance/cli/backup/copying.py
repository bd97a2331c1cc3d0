"""One file's bytes: read as they are now, hashed, and written without the blocks of zeros that brokers prepare."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20
FILE_MODE, FOLDER_MODE = 0o600, 0o700


def parts_of(descriptor: int, end: int) -> Iterator[bytes]:
    """An open file's bytes up to `end`."""
    position = 0
    while position < end:
        part = os.pread(descriptor, min(CHUNK_BYTES, end - position), position)
        if not part:
            return  # it was cut meanwhile; what is missing counts as zeros
        yield part
        position += len(part)


def hash_of(parts: Iterator[bytes], size_bytes: int) -> str:
    """The hash of a file of this size that begins with these parts, and goes on with zeros."""
    digest, position = hashlib.sha256(), 0
    for part in parts:
        digest.update(part)
        position += len(part)
    while position < size_bytes:
        part = bytes(min(CHUNK_BYTES, size_bytes - position))
        digest.update(part)
        position += len(part)
    return digest.hexdigest()


def write(parts: Iterator[bytes], size_bytes: int, to: Path) -> str:
    """Write a new file of this size; behind the parts it has zeros. Returns its hash."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    descriptor = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        os.ftruncate(descriptor, size_bytes)
        return hash_of(_written(parts, descriptor), size_bytes)
    finally:
        os.close(descriptor)


def _written(parts: Iterator[bytes], descriptor: int) -> Iterator[bytes]:
    position = 0
    for part in parts:
        if part.count(0) != len(part):
            os.pwrite(descriptor, part, position)
        position += len(part)
        yield part


def without_zeros_at_end(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes up to the last one that is not zero."""
    zeros = 0
    for part in parts:
        kept = part.rstrip(b"\0")
        if kept:
            while zeros:
                yield bytes(size := min(CHUNK_BYTES, zeros))
                zeros -= size
            yield kept
        zeros += len(part) - len(kept)
