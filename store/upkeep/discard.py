"""Deleting whole folders without keeping the loop: they are renamed at once, and deleted by a thread.

A topic may be created again right after it was deleted, so its folders must be gone when the call returns. Renamed
folders that a stop or a crash leaves are deleted at the next start.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path


class Discard:
    """A folder beside the others for folders that are to be deleted. RocketMQ ignores it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(time.time_ns())

    def empty(self) -> None:
        """Delete what the last run left. Blocks."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def folders(self, paths: Sequence[Path], executor: Executor) -> None:
        """Take these folders away, those that exist, before this returns; a thread deletes their files."""
        for path in paths:
            if not path.exists():
                continue
            waiting = self._folder / str(next(self._numbers))
            try:
                self._folder.mkdir(exist_ok=True)
                path.rename(waiting)
            except OSError:  # on another disk, or a full one
                shutil.rmtree(path, ignore_errors=True)
                continue
            executor.submit(shutil.rmtree, waiting, ignore_errors=True)
