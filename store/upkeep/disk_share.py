"""Whose bytes fill the disks: this store's or others'. Young messages are given up for the first alone.

A disk is judged as if others held no more than they held at some time while the kept messages came: the store's bytes
now, and of the others' bytes the fewest that were seen while any kept file of the commit log was written
(OthersBytes). What others wrote on top of that is their doing, and no reason to delete what was acknowledged. What
others held all the time is as if the disk were smaller: there the store has to make its own room.

A store's bytes are the disk blocks of all files in its folders. Counting them means to look at each, so it is done
seldom enough to take at most COUNTING_PART of a thread's time. Everything here blocks and runs on a thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import DiskSpace, disk_space, existing

logger = logging.getLogger(__name__)

BLOCK_BYTES = 512  # of st_blocks, whatever the file system's are
COUNT_EVERY_S = 10.0
COUNTING_PART = 0.01
SAVE_DROP_BYTES = 64 << 20  # a smaller difference waits for the next file of the log
NOTES_NAME = "othersBytes.json"


class DiskUse(NamedTuple):
    """One disk of a store, as it was when the store's bytes were counted."""

    space: DiskSpace
    store_bytes: int
    others_floor: int  # what others have held all the time, bytes

    @property
    def others_bytes(self) -> int:
        return max(self.space.used_bytes - self.store_bytes, 0)

    @property
    def own_ratio(self) -> float:
        """How full the disk would be without what others added since the kept messages came."""
        others = min(self.others_bytes, self.others_floor)
        return DiskSpace(min(self.store_bytes, self.space.used_bytes) + others, self.space.total_bytes).ratio


class DiskShares(NamedTuple):
    """The disks of a store: of each commit-log folder that can get new files, and of its other files."""

    by_folder: Mapping[Path, DiskUse]
    own_ratio: float  # as the ratio that decides, by the own ratios of the disks
    store_bytes: int  # on all disks together, which are these, what is free, and what is reserved
    others_bytes: int
    free_bytes: int
    reserved_bytes: int
    devices: tuple[int, ...]  # their numbers, as the system has them


class OthersBytes:
    """For each kept file of the commit log: the fewest bytes that others held while it was written, by folder.

    What is not known counts as nothing, so that in doubt a message stays: so it is for files of a store that comes from
    elsewhere. Kept in a small file of the store, which RocketMQ takes no notice of.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._notes: dict[int, dict[str, int]] = {}
        self._saved: dict[int, dict[str, int]] = {}
        self._last: dict[str, int] = {}

    def load(self, bases: Sequence[int]) -> None:
        """Take in what is noted of these files; nothing is of those without a note, now and later."""
        try:
            saved = json.loads(self._path.read_bytes())
            notes = {int(base): {str(k): int(v) for k, v in note.items()} for base, note in saved["files"].items()}
        except FileNotFoundError:
            notes = {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
            logger.warning(
                "what others stored is unknown", extra={"event": "others_bytes_unreadable", "error": str(exc)}
            )
            notes = {}
        self._notes = {base: notes.get(base, {}) for base in bases}
        self._saved = {base: dict(note) for base, note in notes.items()}

    def note(self, bases: Sequence[int], others: Mapping[str, int]) -> None:
        """Take a reading; `bases` are the starts of the kept files, the last one is being written."""
        lowest = {folder: min(count, self._last.get(folder, count)) for folder, count in others.items()}
        notes = {base: self._notes[base] if base in self._notes else dict(lowest) for base in bases}
        if bases:
            newest = notes[bases[-1]]
            for folder in newest:
                newest[folder] = min(newest[folder], others.get(folder, newest[folder]))
        self._notes, self._last = notes, dict(others)

    def floor(self, folder: str, otherwise: int) -> int:
        """Return the fewest bytes that others held there since the oldest kept message; `otherwise` without any."""
        return min((note.get(folder, 0) for note in self._notes.values()), default=otherwise)

    def save(self) -> None:
        """Write the notes down if they say something else than the file does. OSError."""
        if not self._is_worth_saving():
            return
        temporary = self._path.with_name(self._path.name + ".tmp")
        text = json.dumps({"files": {str(base): note for base, note in self._notes.items()}}, indent=1)
        temporary.write_text(text + "\n", encoding="ascii")
        temporary.replace(self._path)
        self._saved = {base: dict(note) for base, note in self._notes.items()}

    def _is_worth_saving(self) -> bool:
        if self._notes.keys() != self._saved.keys():
            return True
        return any(
            count + SAVE_DROP_BYTES < self._saved[base].get(folder, 0)
            for base, note in self._notes.items()
            for folder, count in note.items()
        )


class ShareCounter:
    """Counts now and then, and remembers."""

    def __init__(self, config: MessageStoreConfig) -> None:
        self._config = config
        self._others = OthersBytes(config.root / NOTES_NAME)
        self._next_at = 0.0
        self._can_save = True
        self.last: DiskShares | None = None

    def begin(self, bases: Sequence[int]) -> None:
        """Before the store takes its first message: read what is noted of the files that are there."""
        self._others.load(bases)

    def look(self, bases: Sequence[int], *, at_once: bool = False) -> DiskShares:
        """Count the store's bytes when it is time to, or at once. `bases`: of the kept files. OSError."""
        started = time.monotonic()
        if self.last is not None and not at_once and started < self._next_at:
            return self.last
        shares = self.last = self._count(bases)
        took = time.monotonic() - started
        self._next_at = started + max(COUNT_EVERY_S, took / COUNTING_PART)
        self._save()
        return shares

    def _count(self, bases: Sequence[int]) -> DiskShares:
        config = self._config
        log_folders = list(config.commit_log_folders)
        folders = [*log_folders, config.root / "consumequeue"]
        stored = bytes_by_disk([config.root, *log_folders, *config.stores_beside_paths])
        devices = {folder: existing(folder).stat().st_dev for folder in folders}
        spaces = {folder: disk_space(folder) for folder in folders}
        others = {str(folder): max(space.used_bytes - stored[devices[folder]], 0) for folder, space in spaces.items()}
        self._others.note(bases, others)
        uses = {
            folder: DiskUse(space, stored[devices[folder]], self._others.floor(str(folder), others[str(folder)]))
            for folder, space in spaces.items()
        }
        own_ratio = max(min(uses[folder].own_ratio for folder in log_folders), uses[folders[-1]].own_ratio)
        each_disk = {devices[folder]: use for folder, use in uses.items()}.values()
        return DiskShares(
            uses, own_ratio, sum(use.store_bytes for use in each_disk), sum(use.others_bytes for use in each_disk),
            sum(use.space.free_bytes for use in each_disk), sum(use.space.reserved_bytes for use in each_disk),
            tuple(sorted(set(devices.values()))),
        )  # fmt: skip

    def _save(self) -> None:
        try:
            self._others.save()
        except OSError as exc:  # a full disk: a restart then takes the unknown for nothing, which keeps messages
            if self._can_save:
                logger.warning("notes not saved", extra={"event": "others_bytes_not_saved", "error": str(exc)})
            self._can_save = False
        else:
            self._can_save = True


def bytes_by_disk(folders: Iterable[Path]) -> Counter[int]:
    """Add up the disk blocks of all files in these folders, by device. What goes away meanwhile is left out."""
    found: Counter[int] = Counter()
    seen: set[tuple[int, int]] = set()
    waiting: list[str | Path] = list(folders)
    while waiting:
        folder = waiting.pop()
        # What only root may read, as a file system's lost+found, counts as others'.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            about = Path(folder).stat()
            if (about.st_dev, about.st_ino) in seen:
                continue
            seen.add((about.st_dev, about.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        file = entry.stat(follow_symlinks=False)
                        found[file.st_dev] += file.st_blocks * BLOCK_BYTES
    return found
