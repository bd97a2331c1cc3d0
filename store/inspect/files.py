"""Files of a store, opened for reading only, with their holes left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from store.base import file_bytes
from store.inspect.findings import Findings, Level
from store.queues.descriptors import DescriptorCache

CHUNK_BYTES = 1 << 20


class NumberedFile(NamedTuple):
    """A file named by the offset of its first byte."""

    path: Path
    base: int
    size: int

    @property
    def end(self) -> int:
        return self.base + self.size


def numbered_files(folders: list[Path], digits: int, findings: Findings | None = None) -> list[NumberedFile]:
    """Return the files with names of so many digits, oldest first. Other files become findings: they stop RocketMQ."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if path.name.isdecimal() and len(path.name) == digits and path.is_file():
                found.append(NumberedFile(path, int(path.name), path.stat().st_size))
            elif findings is not None:
                text = "does not belong here; Apache RocketMQ would not start with it"
                findings.add(Level.WARNING, "stray_file", path, -1, text)
    return sorted(found, key=lambda file: file.base)


def usual_size(files: Sequence[NumberedFile]) -> int:
    """Return the size that most files have; of several the one that fits the files' names."""
    sizes = Counter(file.size for file in files if file.size)
    return max(sizes, key=lambda size: (sizes[size], not any(file.base % size for file in files)), default=0)


def check_run(files: list[NumberedFile], findings: Findings, what: str) -> bool:
    """Compare the sizes of a run of files with each other, and the names with the sizes; return whether all is well."""
    size, is_well = usual_size(files), True
    for file in files:
        if file.size != size:
            text = f"is {file.size} bytes long, the {what}'s other files {size}" if size else "is empty"
            is_well = False
            findings.add(Level.ERROR, "file_size", file.path, -1, text)
        elif size and file.base % size:
            is_well = False
            findings.add(Level.ERROR, "file_name", file.path, -1, f"its name is not a multiple of its size {size}")
    for before, after in pairwise(files):
        if before.base == after.base:
            is_well = False
            findings.add(Level.ERROR, "file_twice", after.path, -1, f"is in another folder too: {before.path}")
        if size and after.base > before.base + size:
            text = f"{after.base - before.base - size} bytes are missing between {before.path.name} and this file"
            is_well = False
            findings.add(Level.ERROR, "files_missing", after.path, -1, text)
    return is_well


def data_chunks(reader: DescriptorCache, path: Path, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of what is not a hole, in pieces of at most CHUNK_BYTES."""
    for begin, stop in file_bytes.data_ranges(path, start, end):
        position = begin
        while position < stop:
            data = reader.read(path, min(CHUNK_BYTES, stop - position), position)
            if not data:
                return
            yield position, data
            position += len(data)


def first_data(reader: DescriptorCache, path: Path, start: int, end: int) -> int:
    """Return where the first byte stands that is not zero, -1 when there is none."""
    for position, data in data_chunks(reader, path, start, end):
        rest = data.lstrip(b"\0")
        if rest:
            return position + len(data) - len(rest)
    return -1


def last_data(reader: DescriptorCache, path: Path, start: int, end: int) -> int:
    """Return where the last byte stands that is not zero, -1 when there is none."""
    for begin, stop in reversed(list(file_bytes.data_ranges(path, start, end))):
        while stop > begin:
            position = max(begin, stop - CHUNK_BYTES)
            rest = reader.read(path, stop - position, position).rstrip(b"\0")
            if rest:
                return position + len(rest) - 1
            stop = position
    return -1
