"""A run of mapped files as one space of physical offsets: load, find, append, cut, delete.

The files may lie in several folders, on several disks. RocketMQ chooses the folder of a new file by turns, by the
file's number; here, a folder that can't take it is passed over.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from store.base import file_bytes
from store.base.config import NAME_DIGITS
from store.base.errors import StoreDamaged
from store.log.mapped_file import MappedFile

logger = logging.getLogger(__name__)

HOW = "restore what is missing, or skip it: `gantry store repair --skip-lost`"
UNSYNCED_FILES_MAX = 3  # at the log's end a crash may leave files that have a name and no length yet


class MappedFileQueue:
    """The files of the folders, oldest first, without gaps between them. Read-only folders get no new ones."""

    def __init__(self, folders: Sequence[Path], file_bytes_each: int, read_only: Collection[Path] = ()) -> None:
        self.folders = tuple(folders)
        self.full_folders: set[Path] = set()  # set by Cleaner, which looks at the disks
        self.file_bytes_each = file_bytes_each
        self.files: list[MappedFile] = []
        self.empty: list[Path] = []  # of the last files, those without length: not to be read yet
        self._read_only = frozenset(read_only)

    @property
    def folder(self) -> Path:
        """The first folder: it stands for the log in messages."""
        return self.folders[0]

    def load(self) -> None:
        """Open the files of the folders. Others are logged and left alone. StoreDamaged: a wrong size, a gap."""
        self.files = []
        paths: list[Path] = []
        folders = [folder for folder in self.folders if folder.is_dir()]
        if folders:
            for folder in set(self.folders).difference(folders):
                logger.warning("commit log folder missing", extra={"event": "folder_missing", "path": str(folder)})
        for path in sorted((path for folder in folders for path in folder.iterdir()), key=lambda path: path.name):
            if not (path.name.isdecimal() and len(path.name) == NAME_DIGITS and path.is_file()):
                logger.warning("stray file ignored", extra={"event": "stray_file", "path": str(path)})
                continue
            paths.append(path)
        self.empty = [path for path in paths[-UNSYNCED_FILES_MAX:] if path.stat().st_size == 0]
        for path in paths:
            if path not in self.empty:
                self._check_size(path)
            self.files.append(MappedFile(path, self.file_bytes_each))
        for before, after in zip(self.files, self.files[1:], strict=False):
            if before.base == after.base:
                raise StoreDamaged(str(after.path), f"is in another folder too: {before.path}; move one of them away")
            if before.end != after.base:
                raise StoreDamaged(str(after.path), f"files are missing between {before.path.name} and this one; {HOW}")

    def give_lengths(self) -> None:
        """Give the last files the length that a crash kept from them; recovery removes those behind the log's end."""
        for path in self.empty:
            logger.warning("empty file", extra={"event": "empty_file", "path": str(path)})
            os.truncate(path, self.file_bytes_each)
        self.empty = []

    def find(self, physical_offset: int) -> MappedFile | None:
        """Return the file that holds the offset, None when it is deleted or not written yet."""
        files = self.files
        if not files:
            return None
        index = (physical_offset - files[0].base) // self.file_bytes_each
        return files[index] if 0 <= index < len(files) else None

    def next_start(self, physical_offset: int) -> int:
        """Return where the file begins that follows the offset's, or the first kept file if that is further on."""
        each = self.file_bytes_each
        return max(physical_offset - physical_offset % each + each, self.files[0].base if self.files else 0)

    def create(self, base: int, allocate_bytes: int) -> MappedFile:
        """Make the file that starts at `base`, with disk blocks for its first bytes; not yet part of the run.

        OSError, the last folder's, when no folder can take it.
        """
        error: OSError | None = None
        for folder in self._candidates(base // self.file_bytes_each):
            made = MappedFile(folder / f"{base:0{NAME_DIGITS}d}", self.file_bytes_each)
            try:
                made.allocate(allocate_bytes)
            except OSError as exc:
                error = exc
                with contextlib.suppress(OSError):  # what can't be removed either was not made
                    made.delete()
                continue
            return made
        raise error or OSError("every folder of the commit log is read-only")

    def cut_after(self, physical_offset: int) -> None:
        """Delete the files that start at or behind the offset; erase the rest of the one that contains it."""
        behind = [file for file in self.files if file.base >= physical_offset]
        self.files = [file for file in self.files if file.base < physical_offset]
        for file in reversed(behind):  # the last one first, each synced: a crash in between leaves no gap
            file.delete()
            file_bytes.sync_folder(file.path.parent)
        if self.files and self.files[-1].end > physical_offset:
            self.files[-1].zero_from(physical_offset - self.files[-1].base)

    def close(self) -> None:
        for file in self.files:
            file.close()

    def _candidates(self, number: int) -> list[Path]:
        """Return the folders that may get a new file, the one whose turn it is first, nearly full ones last."""
        writable = sorted(folder for folder in self.folders if folder not in self._read_only)
        roomy = [folder for folder in writable if folder not in self.full_folders]
        first = roomy or writable
        turn = number % len(first) if first else 0
        return first[turn:] + first[:turn] + [folder for folder in writable if folder not in first]

    def _check_size(self, path: Path) -> None:
        size = path.stat().st_size
        if not size:
            raise StoreDamaged(str(path), f"is empty; {HOW}")
        if size != self.file_bytes_each:
            raise StoreDamaged(
                str(path),
                f"is {size} bytes long, mappedFileSizeCommitLog says {self.file_bytes_each}; set that to the file's "
                "length, or move the file away",
            )
