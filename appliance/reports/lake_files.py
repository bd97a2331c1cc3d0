"""Where the Parquet files of a lake are, and how new ones get there. A task of Spark gets such an object along.

`FolderFiles` is a folder that all processes see under one path: on this machine, or a network's file system. What is
new is written beside the others, synced, and moved when its range is committed. places/object_store.py is for stores
that know no moving.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

STAGING = "_staging"


class LakeFiles(Protocol):
    """Paths are relative to the lake: data/date=YYYY-MM-DD/NAME.parquet."""

    def stage(self, table: pa.Table, date: str, span: tuple[int, int], how: Mapping[str, Any]) -> tuple[str, int]:
        """Write a new file, which does not count yet; its name and its bytes. span: of the log; how: to write."""

    def keep(self, name: str, path: str) -> str:
        """Have a staged file where it can count: at this path, or at the one that is returned."""

    def settle(self, paths: Collection[str]) -> None:
        """Make sure that these stay where they are, whatever happens."""

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A file's rows."""

    def url(self, path: str) -> str:
        """What Spark and others call the file."""

    def paths(self) -> Iterator[str]:
        """Every file below data/, those that do not count too."""

    def delete(self, path: str) -> None: ...

    def clear(self) -> None:
        """Delete what was staged and never kept, where that is told apart from the rest."""

    def claim(self, entries: Path) -> None:
        """Begin to write: have the manifest's entries there as they are in this folder. Raises ReportError."""

    def publish(self, name: str, data: bytes) -> None:
        """Give others a new entry of the manifest."""

    def retract(self, name: str) -> None:
        """Take an entry away again, which a checkpoint has made needless."""


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """A folder, in which the manifest is, too: there is nothing to publish."""

    root: Path

    def stage(self, table: pa.Table, date: str, span: tuple[int, int], how: Mapping[str, Any]) -> tuple[str, int]:
        import pyarrow.parquet as pq

        path = self.root / STAGING / f"{secrets.token_hex(8)}.parquet"
        pq.write_table(table, path, **how)
        sync_file(path)
        return path.name, path.stat().st_size

    def keep(self, name: str, path: str) -> str:
        target = self.root / path
        target.parent.mkdir(exist_ok=True)
        (self.root / STAGING / name).replace(target)
        return path

    def settle(self, paths: Collection[str]) -> None:
        for folder in {(self.root / path).parent for path in paths}:
            sync_folder(folder)
        sync_folder(self.root / "data")

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.root / path).read(columns=columns)

    def url(self, path: str) -> str:
        return str(self.root / path)

    def paths(self) -> Iterator[str]:
        for path in (self.root / "data").glob("date=*/*.parquet"):
            yield path.relative_to(self.root).as_posix()

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def clear(self) -> None:
        shutil.rmtree(self.root / STAGING, ignore_errors=True)
        (self.root / STAGING).mkdir()

    def claim(self, entries: Path) -> None:
        (self.root / "data").mkdir(exist_ok=True)

    def publish(self, name: str, data: bytes) -> None:
        pass

    def retract(self, name: str) -> None:
        pass


def is_full(refusal: OSError) -> bool:
    """Whether a disk took no more bytes, of any account or of this one."""
    return refusal.errno in (errno.ENOSPC, errno.EDQUOT)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in the folder durable."""
    sync_file(path)
