"""The lake of one broker: Parquet files, and a manifest that lists the committed ones; it only grows, but for `cut`.

    <lake>/data/date=YYYY-MM-DD/<from>-<to>-<n>.parquet    rows of the log range [from, to) stored on that UTC day
    <lake>/_log/<20-digit sequence>.json                   one entry a batch: range, files, mark of its last record
    <lake>/_staging/                                       what tasks wrote, before it is moved; nothing here counts
    <lake>/lake.lock                                       flock: one writer at a time
    DATA/reports/gantry.format                             which format all lakes and results there have

Exactly once: a file's name is a function of its range, so writing a range again overwrites the same files. A range is
committed when its entry exists. An entry is created by `os.link`, which fails if the name exists, so only one of two
writers can succeed. The next range begins where the last entry ends. So checkpoint and file list are one atomic object.
Files are synced before their entry, the entry before its name, and the folder after it.

Readers use `files()` and never list the folder, which may contain uncommitted files of a killed run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from appliance.reports.errors import LakeBusy, ReportError

STAGING = "_staging"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """One committed Parquet file. `path` is relative to the lake; times are store timestamps in ms."""

    path: str
    date: str
    rows: int
    size_bytes: int
    min_store_timestamp: int
    max_store_timestamp: int


class Gap(NamedTuple):
    """A range of the log that its broker deleted before it was read.

    Its messages were stored from `from_ms` to `to_ms`, when the records before and after it were; None: not known.
    """

    begin: int
    end: int
    from_ms: int | None
    to_ms: int | None

    def touches(self, begin_ms: int, end_ms: int) -> bool:
        """Whether some of what it held may have been stored in [begin_ms, end_ms)."""
        return (self.from_ms is None or self.from_ms < end_ms) and (self.to_ms is None or self.to_ms >= begin_ms)


class Lake:
    """One broker's lake. Reading needs no lock; everything that writes happens inside `writing()`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broker_name = path.name
        self._log = path / "_log"

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writers' lock while the block runs. Raises LakeBusy at once when another process has it."""
        self._log.mkdir(parents=True, exist_ok=True)
        (self.path / "data").mkdir(exist_ok=True)
        with (self.path / "lake.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(f"{self.path}: another report run is writing it; wait until it has ended") from None
            yield

    def entries(self) -> list[dict[str, Any]]:
        """All entries in order. Raises ReportError when one is missing."""
        return [self._entry(sequence) for sequence in range(self._entry_count())]

    def checkpoint(self) -> int | None:
        """The physical offset up to which the log is in the lake; None before the first entry."""
        count = self._entry_count()
        return int(self._entry(count - 1)["to"]) if count else None

    def last_mark(self) -> tuple[int, int, int] | None:
        """(physical offset, store timestamp, body CRC) of the last record in the lake."""
        for sequence in reversed(range(self._entry_count())):
            last = self._entry(sequence)["last"]
            if last:
                offset, stored, crc = last
                return int(offset), int(stored), int(crc)
        return None

    def files(self, begin_ms: int | None = None, end_ms: int | None = None) -> list[LakeFile]:
        """The committed files that may have rows stored in [begin_ms, end_ms)."""
        every = [LakeFile(**added) for entry in self.entries() for added in entry["add"]]
        return [
            file
            for file in every
            if (begin_ms is None or file.max_store_timestamp >= begin_ms)
            and (end_ms is None or file.min_store_timestamp < end_ms)
        ]

    def commit(
        self, begin: int, end: int, added: Sequence[LakeFile], last: tuple[int, int, int] | None, *, op: str = "append"
    ) -> None:
        """Commit a range; its files must be in place and synced. Raises ReportError when it does not follow the last.

        last: the mark of the range's last record. op: "append", or "gap" for a range without files.
        """
        checkpoint = self.checkpoint()
        if checkpoint is not None and checkpoint != begin:
            raise ReportError(f"{self.path}: range {begin}..{end} does not follow {checkpoint}")
        entry = {"op": op, "from": begin, "to": end, "last": last, "add": [asdict(file) for file in added]}
        # A crash before the link leaves a .tmp that no reader looks at; a crash after it leaves a complete entry.
        temporary = self._log / f"{os.getpid()}.tmp"
        write_synced(temporary, json.dumps(entry, indent=1).encode())
        try:
            os.link(temporary, self._log / _entry_name(self._entry_count()))  # fails when the name is taken: one winner
        finally:
            temporary.unlink()
        sync_folder(self._log)

    def commit_gap(self, begin: int, end: int) -> None:
        """Record that the broker has deleted this range of its log before it was read."""
        self.commit(begin, end, [], None, op="gap")

    def cut(self, end: int, kept: Sequence[LakeFile], last: tuple[int, int, int] | None) -> None:
        """Have the lake end at an offset. kept: files in place, synced, of what stays of the entry that reaches beyond.

        The newest entry goes first, so a crash leaves a whole lake that ends later. Call it inside `writing()`.
        """
        for sequence in reversed(range(self._entry_count())):
            entry = self._entry(sequence)
            path = self._log / _entry_name(sequence)
            if entry["from"] >= end:
                path.unlink()
            elif entry["to"] > end:
                entry |= {"to": end, "last": last, "add": [asdict(file) for file in kept]}
                temporary = self._log / f"{os.getpid()}.tmp"
                write_synced(temporary, json.dumps(entry, indent=1).encode())
                temporary.replace(path)
            else:
                break
            sync_folder(self._log)

    def remove_leftovers(self) -> int:
        """Delete what a killed run has left: staged files, Parquet files and entries that no entry lists.

        They must go before others get the same names. Call it inside `writing()`: then they belong to no other run.
        """
        shutil.rmtree(self.path / STAGING, ignore_errors=True)
        (self.path / STAGING).mkdir()
        listed = {self.path / file.path for file in self.files()}
        unlisted = [path for path in (self.path / "data").glob("*/*.parquet") if path not in listed]
        unlisted += self._log.glob("*.tmp")
        for path in unlisted:
            path.unlink()
        return len(unlisted)

    def gaps(self) -> list[Gap]:
        """What the broker deleted unread, gaps that follow each other as one."""
        gaps: list[Gap] = []
        stored = None  # when the last record so far was
        is_open = False
        for entry in self.entries():
            if entry["op"] == "gap":
                begin = gaps.pop().begin if is_open else int(entry["from"])
                gaps.append(Gap(begin, int(entry["to"]), stored, None))
                is_open = True
            if is_open and entry["add"]:
                gaps[-1] = gaps[-1]._replace(to_ms=min(int(added["min_store_timestamp"]) for added in entry["add"]))
                is_open = False
            if entry["last"]:
                stored = int(entry["last"][1])
        return gaps

    def _entry_count(self) -> int:
        """The number of entries. Raises ReportError when one is missing."""
        if not self._log.is_dir():
            return 0
        names = sorted(path.name for path in self._log.glob("*.json"))
        if names and names[-1] != _entry_name(len(names) - 1):
            raise ReportError(f"{self._log}: manifest entries are missing; restore them, or move the lake away")
        return len(names)

    def _entry(self, sequence: int) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self._log / _entry_name(sequence)).read_bytes())
        return value


def lakes_in(folder: Path) -> list[Lake]:
    """All lakes, sorted by the brokers' names."""
    if not folder.is_dir():
        return []
    return [Lake(path) for path in sorted(folder.iterdir()) if (path / "_log").is_dir()]


def write_synced(path: Path, data: bytes) -> None:
    """Write the file and sync it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in the folder durable."""
    sync_file(path)


def _entry_name(sequence: int) -> str:
    return f"{sequence:020}.json"
