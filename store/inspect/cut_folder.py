"""Where a repair keeps what it takes out of a store: a folder beside it, with a note that says what came from where."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

from store import file_bytes
from store.inspect.files import data_ranges

NOTE = "cut.json"
COPY_BYTES = 1 << 20


class CutFolder:
    """Made at the first cut. The note is rewritten after each, before the store itself is changed further."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        self.path = self._root.parent / f"{self._root.name}.cut-{stamp}"
        number = 1
        while self.path.exists():
            number += 1
            self.path = self._root.parent / f"{self._root.name}.cut-{stamp}-{number}"
        self.cuts: list[dict[str, str | int]] = []

    def keep_end(self, source: Path, position: int, base: int, reason: str) -> None:
        """Copy a file's bytes from `position` on, holes left out, and make the copy durable."""
        target = self._target(source, suffix=f".from-{position}")
        size = source.stat().st_size
        read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                os.ftruncate(write, size - position)
                for start, end in data_ranges(source, position, size):
                    while start < end:
                        data = os.pread(read, min(COPY_BYTES, end - start), start)
                        file_bytes.write_all(write, data, start - position)
                        start += len(data)
                os.fsync(write)
            finally:
                os.close(write)
        finally:
            os.close(read)
        self._note(source, target, position, base + position, size - position, reason)

    def keep_whole(self, source: Path, base: int, reason: str) -> None:
        """Move a file or folder here."""
        target = self._target(source)
        size = source.stat().st_size if source.is_file() else -1
        shutil.move(source, target)
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
