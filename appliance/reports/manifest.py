"""The lake of one broker: Parquet files, and a manifest that lists the committed ones.

    <lake>/data/date=YYYY-MM-DD/<from>-<to>-<n>.parquet    rows of the log range [from, to) stored on that UTC day
    <lake>/data/date=YYYY-MM-DD/<from>-<to>-c<n>.parquet   the rows of several others (compaction.py)
    <lake>/_log/<20-digit sequence>.json                   one entry a batch: range, files, mark of its last record
    <lake>/_staging/                                       what tasks wrote, before it is moved; nothing here counts
    <lake>/lake.lock                                       flock: one writer at a time
    DATA/reports/gantry.format                             which format all lakes and results there have

Exactly once: a file's name is a function of its range, so writing a range again overwrites the same files. A range is
committed when its entry exists. An entry is created by `os.link`, which fails if the name exists, so only one of two
writers can succeed. The next range begins where the last entry ends. So checkpoint and file list are one atomic object.
Files are synced before their entry, the entry before its name, and the folder after it.

The Parquet files may be at another place than the manifest (lake_files.py). Entries are published there, one behind the
other: who reads them there sees the lake as it is, or as it was some entries ago.

Readers use `files()` and never list the folder, which may contain uncommitted files of a killed run. What an entry
takes out (lake_state.py has the kinds) stays on the disk for GARBAGE_S, for those who still read it. After some entries
one is a checkpoint: it says all that those before it said, and they go, the oldest first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from appliance.reports.errors import LakeBusy, LakeFull, ReportError
from appliance.reports.lake_files import FolderFiles, LakeFiles, is_full, sync_folder
from appliance.reports.lake_state import CHECKPOINT, Gap, LakeFile, LakeState

ENTRIES_MAX = 64  # then a checkpoint; reading that many takes some milliseconds
READS_MAX = 5  # looks at a manifest that changes meanwhile
GARBAGE_S = 6 * 3600.0  # what was taken out is deleted then: no run takes that long


class OpenTable(Protocol):
    """The lake for other engines; open_tables/delta.py."""

    @property
    def is_behind(self) -> bool:
        """Whether it may still list what the manifest has taken out."""

    def follow(self, state: LakeState, sequence: int, op: str = "") -> None:
        """List the files that count. sequence, op: of the newest entry; op is empty when it may be an older one."""


class Lake:
    """One broker's lake. Reading needs no lock; everything that writes happens inside `writing()`.

    path: of the manifest. place: of the Parquet files, beside it if it is not said. table: which follows the manifest.
    """

    def __init__(self, path: Path, place: LakeFiles | None = None, table: OpenTable | None = None) -> None:
        self.path = path
        self.table = table
        self.place: LakeFiles = place if place is not None else FolderFiles(path)
        self.broker_name = path.name
        self._log = path / "_log"

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writers' lock while the block runs. Raises LakeFull, and LakeBusy when another process has it."""
        try:
            with self._lock():
                yield
        except OSError as refusal:
            if is_full(refusal):
                raise LakeFull(self.path) from refusal
            raise

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        self._log.mkdir(parents=True, exist_ok=True)
        with (self.path / "lake.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LakeBusy(f"{self.path}: another report run is writing it; wait until it has ended") from None
            self.place.claim(self._log)
            self._have_table_follow()
            yield

    def state(self) -> LakeState:
        """What all entries say together. Raises ReportError when one is missing."""
        for _ in range(READS_MAX - 1):
            with contextlib.suppress(FileNotFoundError):  # a checkpoint took the place of those that were listed
                return self._read()
        return self._read()

    def checkpoint(self) -> int | None:
        """The physical offset up to which the log is in the lake; None before the first entry."""
        return self.state().end

    def last_mark(self) -> tuple[int, int, int] | None:
        """(physical offset, store timestamp, body CRC) of the last record in the lake."""
        return self.state().last

    def files(self, begin_ms: int | None = None, end_ms: int | None = None) -> list[LakeFile]:
        """The committed files that may have rows stored in [begin_ms, end_ms)."""
        return [
            file
            for file in self.state().files.values()
            if (begin_ms is None or file.max_store_timestamp >= begin_ms)
            and (end_ms is None or file.min_store_timestamp < end_ms)
        ]

    def commit(self, begin: int, end: int, added: Sequence[LakeFile], last: tuple[int, int, int] | None) -> None:
        """Commit a range; its files must be in place and synced. Raises ReportError when it does not follow the last.

        last: the mark of the range's last record.
        """
        self._follow(begin, end, {"op": "append", "last": last, "add": [asdict(file) for file in added]})

    def commit_gap(self, begin: int, end: int, *, is_damage: bool = False) -> None:
        """Record that the broker has deleted this range of its log before it was read, or that it is damaged."""
        self._follow(begin, end, {"op": "gap", "damage": is_damage, "last": None, "add": []})

    def replace(self, op: str, removed: Sequence[LakeFile], added: Sequence[LakeFile] = ()) -> None:
        """Take files out, and others in, which are in place and synced. op: "compact" or "expire"."""
        end = self.checkpoint()
        paths = [file.path for file in removed]
        rest = {"add": [asdict(file) for file in added], "remove": paths, "at": time.time()}
        self._write({"op": op, "from": end, "to": end, "last": None, **rest})

    def cut(self, end: int, kept: Mapping[str, LakeFile | None], last: tuple[int, int, int] | None) -> None:
        """Have the lake end at an offset. kept: files that reach beyond it, and what stands in their place.

        That is a checkpoint at once: the same names may come again, so none of them waits to be deleted. Call it inside
        `writing()`, and `remove_leftovers` after it.
        """
        state = self.state()
        state.cut(end, kept, last)
        self._write(state.checkpoint_entry())
        self._forget_old_entries()

    def tidy(self) -> None:
        """Write a checkpoint when it is time, delete entries from before one. Call it inside `writing()`."""
        state = self.state()
        if state.entries >= ENTRIES_MAX:
            there = set(self.place.paths())
            state.removed = {path: at for path, at in state.removed.items() if path in there}
            self._write(state.checkpoint_entry())
        self._forget_old_entries()

    def remove_leftovers(self) -> int:
        """Delete what a killed run has left, and what was taken out long enough ago. Returns how many files.

        Staged files, Parquet files that no entry lists, unfinished entries: they must go before others get the same
        names. Call it inside `writing()`: then they belong to no other run.
        """
        self.place.clear()
        state, now = self.state(), time.time()
        kept_s = GARBAGE_S if self.table is None or not self.table.is_behind else float("inf")
        listed = {*state.files, *(path for path, at in state.removed.items() if now - at < kept_s)}
        unlisted = [path for path in self.place.paths() if path not in listed]
        for path in unlisted:
            self.place.delete(path)
        unfinished = [*self._log.glob("*.tmp")]
        for entry in unfinished:
            entry.unlink()
        return len(unlisted) + len(unfinished)

    def gaps(self) -> list[Gap]:
        """What the broker deleted unread, and what is damaged; gaps of one kind that follow each other are one."""
        return self.state().gaps

    def next_sequence(self) -> int:
        """The number of the next entry, which no other one has had."""
        names = self._names()
        return _sequence(names[-1]) + 1 if names else 0

    def _read(self) -> LakeState:
        """Raises FileNotFoundError when an entry went between the look and the reading."""
        names = self._names()
        found: list[dict[str, Any]] = []
        for name in reversed(names):
            entry: dict[str, Any] = json.loads((self._log / name).read_bytes())
            found.append(entry)
            if entry["op"] == CHECKPOINT:
                break
        if found:
            first = _sequence(names[-1]) - len(found) + 1
            is_whole = first == _sequence(names[-len(found)])
            if not is_whole or (first != 0 and found[-1]["op"] != CHECKPOINT):
                raise ReportError(f"{self._log}: manifest entries are missing; restore them, or move the lake away")
        state = LakeState()
        for entry in reversed(found):
            state.take(entry)
        return state

    def _follow(self, begin: int, end: int, entry: Mapping[str, Any]) -> None:
        checkpoint = self.checkpoint()
        if checkpoint is not None and checkpoint != begin:
            raise ReportError(f"{self.path}: range {begin}..{end} does not follow {checkpoint}")
        self._write({"from": begin, "to": end, **entry})

    def _write(self, entry: Mapping[str, Any]) -> None:
        # A crash before the link leaves a .tmp that no reader looks at; a crash after it leaves a complete entry.
        temporary, name = self._log / f"{os.getpid()}.tmp", _entry_name(self.next_sequence())
        data = json.dumps(entry, indent=1).encode()
        write_synced(temporary, data)
        try:
            os.link(temporary, self._log / name)  # fails when taken: one winner
        finally:
            temporary.unlink()
        sync_folder(self._log)
        self.place.publish(name, data)
        self._have_table_follow(entry["op"])

    def _have_table_follow(self, op: str = "") -> None:
        if self.table is not None:
            self.table.follow(self.state(), self.next_sequence() - 1, op)

    def _forget_old_entries(self) -> None:
        """Delete the entries before the newest checkpoint, the oldest first: what one took out never counts again."""
        names = self._names()
        for at in reversed(range(len(names))):
            if json.loads((self._log / names[at]).read_bytes())["op"] == CHECKPOINT:
                for name in names[:at]:
                    (self._log / name).unlink()
                    self.place.retract(name)
                if at:
                    sync_folder(self._log)
                return

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._log.glob("*.json")) if self._log.is_dir() else []


def write_synced(path: Path, data: bytes) -> None:
    """Write the file and sync it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _entry_name(sequence: int) -> str:
    return f"{sequence:020}.json"


def _sequence(name: str) -> int:
    return int(name.removesuffix(".json"))
