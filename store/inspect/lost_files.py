"""Commit-log files that are missing, empty or of a wrong size, and how a store goes on without what they had.

No start accepts such a folder: a lost file looks like a disk that is not mounted. A repair that is asked to
(`--skip-lost`) puts a file with nothing but a blank record where one is missing, so that what stands behind it stays in
its place. RocketMQ reads such files as well.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from gantrymq.message import record
from store.base import file_bytes
from store.base.cut_folder import CutFolder
from store.inspect.files import NumberedFile, usual_size
from store.inspect.folder import LOG_DIGITS, StoreFolder
from store.inspect.log_reader import LogBreak

MISSING_MAX = 4096  # more between two files: the second is no file of this log
MISSING_FEW = 16  # more, and the second does not begin with a record of its place: it is none either


class LostFile(NamedTuple):
    """A file of the log that is not as it should be; `size` is -1 when there is none."""

    path: Path
    base: int
    size: int

    def text(self, size: int) -> str:
        if self.size < 0:
            return f"{self.path.name} is missing"
        return f"{self.path.name} is empty" if not self.size else f"{self.path.name} is {self.size} bytes, not {size}"


def lost_files(files: Sequence[NumberedFile]) -> list[LostFile]:
    """Return the files that are missing between others, or have another size than most."""
    size = usual_size(files)
    found = []
    end = files[0].base if files else 0
    for file in files:
        if size and (file.base - end) // size <= MISSING_MAX:
            found += [
                LostFile(file.path.with_name(f"{base:0{LOG_DIGITS}d}"), base, -1)
                for base in range(end, file.base, size)
            ]
        if file.size != size:
            found.append(LostFile(file.path, file.base, file.size))
        end = file.base + size
    return found


def foreign_file(folder: StoreFolder) -> str:
    """Name a file so far behind the others that it hardly belongs to this log; "" when there is none."""
    files = folder.log.files
    size = usual_size(files)
    for before, file in pairwise(files):
        missing = (file.base - before.base) // size - 1 if size else 0
        if missing > MISSING_MAX or (
            missing > MISSING_FEW and isinstance(folder.log.record_at(file.base, check_crc=False), str)
        ):
            return f"{file.path} stands {missing} files behind {before.path.name}"
    return ""


def put_blank_files(folder: StoreFolder, kept: CutFolder) -> None:
    """Bring all lost files to the usual size; what was not there becomes one blank record."""
    size = usual_size(folder.log.files)
    for lost in lost_files(folder.log.files):
        if lost.size > size:
            kept.keep_end(lost.path, size, lost.base, "longer than the log's files")
        with file_bytes.closed_after(os.open(lost.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)) as fd:
            os.ftruncate(fd, size)
            if lost.size <= 0:
                file_bytes.write_all(fd, record.BLANK.pack(size, record.BLANK_MAGIC), 0)
            os.fsync(fd)
        file_bytes.sync_folder(lost.path.parent)


def skip_to_next_file(damage: LogBreak, size: int, kept: CutFolder) -> None:
    """Close a file whose end is damaged with a blank record; keep what stood there."""
    kept.keep_end(damage.path, damage.position, damage.physical_offset - damage.position, "damaged to the file's end")
    modified_ns = damage.path.stat().st_mtime_ns
    with file_bytes.closed_after(os.open(damage.path, os.O_RDWR | os.O_CLOEXEC)) as fd:
        file_bytes.zero_range(fd, damage.position, size)
        file_bytes.write_all(fd, record.BLANK.pack(size - damage.position, record.BLANK_MAGIC), damage.position)
        os.fdatasync(fd)
    os.utime(damage.path, ns=(modified_ns, modified_ns))  # retention goes by it
