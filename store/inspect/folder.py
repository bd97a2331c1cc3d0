"""What lies where in a store folder, and whether its broker runs, stopped, or died."""

from __future__ import annotations

import enum
import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from gantrymq.message.properties import string_hash_code
from store.base.errors import StoreError
from store.inspect.ext_reader import ExtReader
from store.inspect.files import NumberedFile, numbered_files
from store.inspect.findings import Findings, Level
from store.inspect.index_reader import IndexReader, IndexShape, index_shape
from store.inspect.log_reader import LogReader
from store.inspect.queue_reader import QueueReader
from store.queues.descriptors import DescriptorCache
from store.startup.checkpoint import Checkpoint, is_held_here

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid


class LockHolder(NamedTuple):
    """`process_id` is 0 when the kernel does not say: another container, another machine."""

    process_id: int
    command: str

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.command})" if self.process_id else "a process the kernel can't name"


def lock_holder(path: Path) -> LockHolder | None:
    """Return who holds the record lock on the file's first byte, None when no process does."""
    if is_held_here(path):  # opening and closing the file would end this process's own lock
        return LockHolder(os.getpid(), _command(os.getpid()))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    finally:
        os.close(fd)
    kind, _whence, _start, _length, process_id = _FLOCK.unpack(answer)
    if kind == fcntl.F_UNLCK:
        return None
    return LockHolder(max(process_id, 0), _command(process_id))


def _command(process_id: int) -> str:
    try:
        words = Path(f"/proc/{process_id}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    return " ".join(word.decode("utf-8", "replace") for word in words[:4]).strip()[:120] or "unknown"


LOG_DIGITS = 20
INDEX_DIGITS = 17
OPEN_FILES_MAX = 256
MANY_QUEUES = 4096


class NoStoreFolder(StoreError):
    """The folder holds nothing that a broker would have made."""


class StoreState(enum.Enum):
    LIVE = "live"  # its lock is held
    STOPPED = "stopped"
    CRASHED = "crashed"  # the abort marker is there and no process holds the lock


class StoreFolder(AbstractContextManager["StoreFolder"]):
    """A store folder opened for looking. With `is_ours` the caller itself holds the lock, for a repair.

    How far the index goes is read before the log's files are listed, so that a live log has what it names.
    """

    def __init__(
        self,
        root: Path,
        *,
        commit_logs: Sequence[Path] = (),
        index_slots: int | None = None,
        index_entries: int | None = None,
        is_ours: bool = False,
    ) -> None:
        self.root = root
        self.commit_logs = list(commit_logs) or [root / "commitlog"]
        self.reader = DescriptorCache(OPEN_FILES_MAX)
        self.findings = Findings()  # about names; those about contents belong to the caller
        signs = [*self.commit_logs, root / "consumequeue", root / "checkpoint"]  # an empty store has only the last
        if not any(path.exists() for path in signs):
            raise NoStoreFolder(f"{root} is not a store: it has neither commitlog, consumequeue nor checkpoint")
        self.lock_holder: LockHolder | None = None if is_ours else lock_holder(root / "lock")
        self.has_abort_marker = (root / "abort").exists()
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.checkpoint.load()
        index_files = numbered_files([root / "index"], INDEX_DIGITS, self.findings)
        self.index_shape: IndexShape | None = index_shape(index_files, index_slots, index_entries, self.reader)
        self.index_files = index_files
        self._indexes = [IndexReader(file, self.index_shape, self.reader) for file in index_files if self.index_shape]
        self.queues = self._find_queues()
        self.log = self._open_log()

    @property
    def state(self) -> StoreState:
        if self.lock_holder is not None:
            return StoreState.LIVE
        return StoreState.CRASHED if self.has_abort_marker else StoreState.STOPPED

    @property
    def log_file_bytes(self) -> int:
        return self.log.files[0].size if self.log.files else 0

    def promised_from(self) -> int:
        """Where the log's oldest file begins by the checkpoint; NOT_KNOWN, too. Called after the files were listed.

        A live broker writes that down before it deletes a file, so it is read again.
        """
        if self.state is not StoreState.LIVE:
            return self.checkpoint.kept_from
        now = Checkpoint(self.root / "checkpoint")
        now.load()
        return now.kept_from

    def indexes(self) -> list[IndexReader]:
        """The index files, oldest first; none when their number of slots is unknown."""
        return self._indexes

    def look_at_log_again(self) -> None:
        """A live log has grown since: take in the files that the queues, read meanwhile, may name."""
        if self.state is StoreState.LIVE:
            self.log = self._open_log()

    def extension_of(self, queue: QueueReader) -> ExtReader:
        return ExtReader(self.root / "consumequeue_ext" / queue.topic / str(queue.queue_id), self.reader)

    def __exit__(self, *_exc: object) -> None:
        self.reader.close()

    def _open_log(self) -> LogReader:
        return LogReader(self._find_log_files(), self.reader, is_live=self.state is StoreState.LIVE)

    def _find_log_files(self) -> list[NumberedFile]:
        """The log's files; one that a crash left without length at the end counts as not made."""
        files = numbered_files(self.commit_logs, LOG_DIGITS, self.findings)
        if files and not files[-1].size:
            level = Level.NOTE if self.state is StoreState.LIVE else Level.WARNING
            self.findings.add(level, "empty_file", files[-1].path, -1, "has no length: a crash came while it was made")
            files.pop()
        return files

    def _find_queues(self) -> dict[tuple[str, int], QueueReader]:
        queues = {}
        top = self.root / "consumequeue"
        for topic_folder in sorted(top.iterdir()) if top.is_dir() else ():
            for folder in sorted(topic_folder.iterdir()) if topic_folder.is_dir() else ():
                if folder.name.isdecimal() and folder.is_dir():
                    queue = QueueReader(folder, topic_folder.name, int(folder.name), self.reader, self.findings)
                    queues[queue.topic, queue.queue_id] = queue
                else:
                    self.findings.add(Level.WARNING, "stray_file", folder, -1, "is not a queue's folder")
        for queue in queues.values():
            queue.block_units = 256 if len(queues) <= MANY_QUEUES else 32
            if self.state is StoreState.LIVE and queue.files and not queue.files[-1].size:
                text = "has no length yet: it is being made"
                self.findings.add(Level.NOTE, "empty_file", queue.files.pop().path, -1, text)
        return queues


def index_hash(topic: str, key: str) -> int:
    """Return the hash of `topic#key` as the index has it."""
    code = abs(string_hash_code(f"{topic}#{key}"))
    return code if code < 1 << 31 else 0
