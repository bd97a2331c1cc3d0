"""A run of mapped files as one space of physical offsets: load, find, append, cut, delete."""

from __future__ import annotations

import logging
from pathlib import Path

from store import file_bytes
from store.errors import StoreDamaged
from store.mapped_file import MappedFile

logger = logging.getLogger(__name__)

NAME_DIGITS = 20


class MappedFileQueue:
    """The files of one folder, oldest first, without gaps between them."""

    def __init__(self, folder: Path, file_bytes_each: int) -> None:
        self.folder = folder
        self.file_bytes_each = file_bytes_each
        self.files: list[MappedFile] = []

    def load(self) -> None:
        """Take in what the folder holds. Strangers are named in the log and left alone; a wrong size is an error."""
        self.files = []
        paths: list[Path] = []
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.iterdir()):
            if not (path.name.isdecimal() and len(path.name) == NAME_DIGITS and path.is_file()):
                logger.warning("stray file ignored", extra={"event": "stray_file", "path": str(path)})
                continue
            paths.append(path)
        if paths and paths[-1].stat().st_size == 0:  # a crash came between making the file and giving it its length
            logger.warning("empty file removed", extra={"event": "empty_file", "path": str(paths[-1])})
            paths.pop().unlink()
        for path in paths:
            self._check_size(path)
            self.files.append(MappedFile(path, self.file_bytes_each))
        for before, after in zip(self.files, self.files[1:], strict=False):
            if before.end != after.base:
                raise StoreDamaged(str(after.path), f"files are missing between {before.path.name} and this one")

    def find(self, physical_offset: int) -> MappedFile | None:
        """Return the file that holds the offset, None when it is deleted or not written yet."""
        files = self.files
        if not files:
            return None
        index = (physical_offset - files[0].base) // self.file_bytes_each
        return files[index] if 0 <= index < len(files) else None

    def path_of(self, base: int) -> Path:
        return self.folder / f"{base:0{NAME_DIGITS}d}"

    def cut_after(self, physical_offset: int) -> None:
        """Delete the files that start at or behind the offset; erase the rest of the one that contains it."""
        doomed = [file for file in self.files if file.base >= physical_offset]
        self.files = [file for file in self.files if file.base < physical_offset]
        for file in doomed:
            file.delete()
        if self.files and self.files[-1].end > physical_offset:
            self.files[-1].zero_from(physical_offset - self.files[-1].base)
        if doomed:
            file_bytes.sync_folder(self.folder)

    def close(self) -> None:
        for file in self.files:
            file.close()

    def _check_size(self, path: Path) -> None:
        size = path.stat().st_size
        if size != self.file_bytes_each:
            raise StoreDamaged(
                str(path),
                f"is {size} bytes long, mappedFileSizeCommitLog says {self.file_bytes_each}; set that to the file's "
                "length, or move the file away",
            )
