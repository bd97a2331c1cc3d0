"""Where a repair or a start keeps what it takes out of a store, with a note that says what came from where.

The folder lies beside the store, or in it where beside it is another disk (a mount) or a folder without write access.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path

from store.base import file_bytes

NOTE = "cut.json"
COPY_BYTES = 1 << 20


class CutFolder:
    """Made at the first cut. The note is rewritten after each, before the store itself is changed further."""

    def __init__(self, root: Path, kind: str = "cut") -> None:
        self._root = root.absolute()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        stem = _stem(self._root, kind) + stamp
        self.path = Path(stem)
        number = 1
        while self.path.exists():
            number += 1
            self.path = Path(f"{stem}-{number}")
        self.cuts: list[dict[str, str | int]] = []

    def keep_end(
        self,
        source: Path,
        position: int,
        base: int,
        reason: str,
        bytes_max: int | None = None,
        *,
        is_in_place: bool = False,
    ) -> None:
        """Copy a file's bytes from `position` on, up to `bytes_max`, holes left out, and make the copy durable.

        is_in_place: under the file's own name, behind a hole, so that what reads a store reads the copy.
        """
        target = self._target(source, suffix="" if is_in_place else f".from-{position}")
        begin = 0 if is_in_place else position
        size = source.stat().st_size
        if bytes_max is not None:
            size = min(size, position + bytes_max)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with (
            file_bytes.closed_after(os.open(source, os.O_RDONLY | os.O_CLOEXEC)) as read,
            file_bytes.closed_after(os.open(target, flags, 0o644)) as write,
        ):
            os.ftruncate(write, size - begin)
            for start, end in file_bytes.data_ranges(source, position, size):
                while start < end:
                    data = os.pread(read, min(COPY_BYTES, end - start), start)
                    file_bytes.write_all(write, data, start - begin)
                    start += len(data)
            os.fsync(write)
        self._note(source, target, position, base + position, size - position, reason)

    def keep_whole(self, source: Path, base: int, reason: str) -> None:
        """Move a file or folder here."""
        target = self._target(source)
        size = source.stat().st_size if source.is_file() else -1
        try:
            source.rename(target)
        except OSError as exc:
            if exc.errno != errno.EXDEV:
                raise
            _move_to_other_disk(source, target)
        file_bytes.sync_folder(source.parent)
        self._note(source, target, 0, base, size, reason)

    def _target(self, source: Path, suffix: str = "") -> Path:
        source = source.absolute()
        inside = source.relative_to(self._root) if source.is_relative_to(self._root) else Path("commitlog", source.name)
        target = self.path / inside.with_name(inside.name + suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _note(self, source: Path, target: Path, position: int, offset: int, size: int, reason: str) -> None:
        self.cuts.append(
            {
                "source": str(source),
                "kept": str(target.relative_to(self.path)),
                "position": position,
                "offset": offset,
                "bytes": size,
                "reason": reason,
            }
        )
        note = {"store": str(self._root), "time_ms": int(time.time() * 1000), "cuts": self.cuts}
        draft = self.path / f"{NOTE}.tmp"
        with draft.open("w", encoding="utf-8") as file:
            json.dump(note, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path / NOTE)
        file_bytes.sync_folder(self.path)


def forget_oldest(root: Path, kind: str, keep: int) -> None:
    """Delete all but the newest folders of a kind."""
    stem = Path(_stem(root.absolute(), kind))
    found = sorted((path for path in stem.parent.glob(stem.name + "*") if path.is_dir()), key=lambda path: path.name)
    for path in found[: max(len(found) - keep, 0)]:
        shutil.rmtree(path, ignore_errors=True)


def _stem(root: Path, kind: str) -> str:
    """Return how the folders of a kind begin; their stamp follows."""
    beside = root.parent
    if os.access(beside, os.W_OK) and beside.stat().st_dev == root.stat().st_dev:
        return f"{beside}/{root.name}.{kind}-"
    return f"{root}/{kind}-"


def _move_to_other_disk(source: Path, target: Path) -> None:
    """Nothing is taken away before its copy is on the disk."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
    file_bytes.sync_file_system(target.parent)
    shutil.rmtree(source) if source.is_dir() else source.unlink()
