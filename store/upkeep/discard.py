"""Getting rid of whole folders without making anybody wait: renamed at once, deleted by a thread.

A topic may be made anew the moment it was deleted, so its folders must be out of the way when the call returns. What a
crash leaves renamed is deleted at the next start.
"""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path


class Discard:
    """A folder beside the others where folders wait for their end. RocketMQ takes no notice of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(time.time_ns())

    def empty(self) -> None:
        """Delete what the last run left. Blocks."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def folders(self, paths: Sequence[Path], executor: Executor) -> None:
        """Have these folders gone when this returns, and their files deleted soon. Missing ones don't matter."""
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
