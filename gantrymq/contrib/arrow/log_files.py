"""The files of a commit log, in one or more folders, while a broker may add and delete some."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from gantrymq.contrib.arrow.record_blocks import LogFile
from gantrymq.errors import GantryError

LOOKS = 5  # a broker that deletes files while they are listed leaves a hole in the list, not in the log

_FILE_NAME = re.compile(r"\d{20}")


class LogUnreadable(GantryError):
    """The commit log's folder, or a file in the middle of the log, is missing."""


def log_files(folders: Sequence[Path]) -> list[LogFile]:
    """All files in order. Raises LogUnreadable when all folders, or a file in the middle, are missing.

    A broker creates a folder with its first file, so some of several folders may not exist yet.
    """
    present = [folder for folder in folders if folder.is_dir()]
    if not present:
        raise LogUnreadable(f"{', '.join(map(str, folders))}: no such commit-log folder")
    for look in range(1, LOOKS + 1):
        found = sorted((file for folder in present for file in _files_of(folder)), key=lambda file: file.start)
        hole = next(((file, after) for file, after in pairwise(found) if file.end != after.start), None)
        if hole is None:
            return found
        if look == LOOKS:
            file, after = hole
            raise LogUnreadable(f"{file.path}: the next commit-log file is {after.path.name}, not {file.end:020}")
    raise AssertionError("the last look returns or raises")


def _files_of(folder: Path) -> Iterator[LogFile]:
    for path in folder.iterdir():
        if _FILE_NAME.fullmatch(path.name):
            with contextlib.suppress(FileNotFoundError):  # the broker deletes its oldest file just now
                yield LogFile(path, int(path.name), path.stat().st_size)
