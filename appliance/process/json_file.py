"""A JSON state file: replaced atomically, the previous text kept as `.bak`, written on a thread.

RocketMQ's rule (ConfigManager): write `<file>.tmp`, copy the old text to `<file>.bak`, put the new text in place; a
reader that can't use the file takes the `.bak`. Here the reader also logs it and keeps the bad file as `.damaged`. The
temporary file is synced and renamed, so the file itself is never absent. Reading accepts fastjson's bare integer keys,
because RocketMQ's brokers write them; writing is plain JSON, one entry a line.

`JsonFile` is the file, `StateWriter` decides when to write it: several changes make one write. The content is fixed on
the loop (callers keep their entries rendered, so a `Document` only takes a list of them); a thread joins the text and
waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson

from appliance.process.cooperative import in_slices
from appliance.settings.replaced_file import sync_path
from gantrymq.errors import BodyError, GantryError
from gantrymq.remoting import fastjson
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_DELAY_S = 5.0  # after a write that failed
ENTRIES_A_PART = 512  # joined at a time: well below a millisecond


class StateFileError(GantryError):
    """The state file `path` can't be read or written; the text says why, and what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Document:
    """The JSON text of several tables. The content is fixed when the object is made; the text is joined later.

    tables: the rendered entries of each (see member_text). Files have one entry a line, indented by tabs as in
    RocketMQ. is_compact: no spaces at all, for bodies.
    """

    def __init__(
        self, tables: Mapping[str, Iterable[str]], *, data_version: bytes | None = None, is_compact: bool = False
    ) -> None:
        self._tables = {name: list(entries) for name, entries in tables.items()}
        self._data_version = data_version
        self._indents = ("", "", "") if is_compact else ("\n", "\n\t", "\n\t\t")

    def __iter__(self) -> Iterator[bytes]:
        """Yield the parts, each of up to ENTRIES_A_PART entries."""
        line, member, entry = self._indents
        before = f"{{{member}"
        if self._data_version is not None:
            yield f'{before}"dataVersion":{self._data_version.decode()}'.encode()
            before = f",{member}"
        for name, entries in self._tables.items():
            yield f'{before}"{name}":{{'.encode()
            before = f",{member}"
            between = f",{entry}"
            for start in range(0, len(entries), ENTRIES_A_PART):
                yield ((between if start else entry) + between.join(entries[start : start + ENTRIES_A_PART])).encode()
            yield (f"{member}}}" if entries else "}").encode()
        yield f"{line}}}".encode()


Text = bytes | Document


class JsonFile:
    """One file and its `.bak`. All methods block; writes from several threads are put in order by their version.

    is_mirrored: the `.bak` is the same text, not the one before: for what must never go back to an earlier state.
    """

    def __init__(self, path: Path, *, is_mirrored: bool = False) -> None:
        self.path = path
        self._is_mirrored = is_mirrored
        self._backup = path.with_name(path.name + ".bak")
        self._lock = threading.Lock()
        self._written_version = -1
        self._is_main_sound = True  # False: never copy the damaged file over the good .bak

    def load(self) -> dict[str, Any] | None:
        """Return the document, None when there is none yet. Raises StateFileError when only damaged text is left."""
        return self.load_as(dict, "a JSON object")

    def load_as(self, parse: Callable[[dict[str, Any]], T], what: str) -> T | None:
        """Return what `parse` makes of the document, None when there is none yet.

        If `parse` raises (BodyError, or the errors of a wrong shape), the file counts as damaged: the backup is read
        instead, and the next write keeps the damaged file as `.damaged`. Raises StateFileError when both are unusable.
        """
        try:
            found = _read_as(self.path, parse, what)
            reason = "" if found is not None else "is empty" if self.path.exists() else "is missing"
        except StateFileError as exc:
            found, reason = None, exc.reason
        if not reason:
            if self._is_mirrored:
                self._mirror()
            return found
        self._is_main_sound = False
        found = self._load_backup(parse, what, reason)
        if found is not None:
            logger.warning(
                "state file can't be used: its backup was read instead",
                extra={
                    "event": "state_file_damaged",
                    "path": str(self.path),
                    "reason": reason,
                    "backup": str(self._backup),
                },
            )
        elif reason == "is empty":
            logger.warning(
                "state file is empty and has no backup: starting with an empty table",
                extra={"event": "state_file_empty", "path": str(self.path), "backup": str(self._backup)},
            )
        elif reason != "is missing":
            raise StateFileError(
                self.path, f"{reason}, and there is no {self._backup.name}: repair the file or move it away"
            )
        return found

    def _load_backup(self, parse: Callable[[dict[str, Any]], T], what: str, reason: str) -> T | None:
        try:
            return _read_as(self._backup, parse, what)
        except StateFileError as exc:
            raise StateFileError(
                self.path, f"{reason}, and {self._backup.name} {exc.reason}: repair one of them or move both away"
            ) from exc

    def write(self, text: Text, version: int) -> None:
        """Replace the file, unless a newer version is written already. Raises StateFileError."""
        with self._lock:
            if version < self._written_version:
                return
            try:
                self._replace(text)
            except OSError as exc:
                raise StateFileError(self.path, f"can't be written: {exc}") from exc
            self._written_version = version

    def _replace(self, text: Text) -> None:
        # At any moment a start finds one whole state: the new text is on disk before it gets the file's name, what had
        # the name is kept before it loses it, and the folder is synced before the caller is told.
        temporary = self.path.with_name(self.path.name + ".tmp")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        keeps_backup = True
        try:
            _write(temporary, text)
        except OSError as exc:
            if exc.errno != errno.ENOSPC or not self._is_main_sound or not self._backup.exists():
                raise
            self._backup.unlink()  # a disk that is full has room for the new text then: what counts is the file itself
            keeps_backup = False
            _write(temporary, text)
        if not self._is_main_sound:
            # The .bak is the last good state, so it must not be overwritten with the damaged file.
            with contextlib.suppress(FileNotFoundError):
                self.path.replace(self.path.with_name(self.path.name + ".damaged"))
        elif keeps_backup and self.path.exists() and not self._is_mirrored:
            # A crash during the copy must not leave half a backup, so the copy is renamed when it is complete.
            half = self._backup.with_name(self._backup.name + ".tmp")
            shutil.copyfile(self.path, half)
            half.replace(self._backup)
        temporary.replace(self.path)
        self._is_main_sound = True
        sync_path(self.path.parent)
        if self._is_mirrored:
            self._mirror()

    def _mirror(self) -> None:
        """Make the `.bak` the same text, durably, if it isn't. The file itself is on disk: what fails is logged."""
        half = self._backup.with_name(self._backup.name + ".tmp")
        try:
            text = self.path.read_bytes()
            if self._backup.exists() and self._backup.read_bytes() == text:
                return
            _write(half, text)
            half.replace(self._backup)
            sync_path(self.path.parent)
        except OSError as exc:
            with contextlib.suppress(OSError):  # none at all is better than one of an earlier state
                self._backup.unlink(missing_ok=True)
            logger.warning(
                "state file has no copy",
                extra={"event": "state_file_not_copied", "path": str(self.path), "error": str(exc)},
            )


def _write(path: Path, text: Text) -> None:
    with path.open("wb") as file:
        file.writelines([text] if isinstance(text, bytes) else text)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> dict[str, Any] | None:
    """The document of one file; None when it is absent or empty."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise StateFileError(path, f"can't be read: {exc}") from exc
    if not text.strip():
        return None
    try:
        document = fastjson.loads(text)
    except BodyError as exc:
        raise StateFileError(path, f"is damaged ({exc})") from exc
    if not isinstance(document, dict):
        raise StateFileError(path, "is damaged (not a JSON object)")
    return document


def _read_as(path: Path, parse: Callable[[dict[str, Any]], T], what: str) -> T | None:
    document = _read(path)
    if document is None:
        return None
    try:
        return parse(document)
    except (BodyError, AttributeError, LookupError, TypeError, ValueError) as exc:
        raise StateFileError(path, f"is not {what}: {exc!r}") from exc


def member_text(key: str, text: str) -> str:
    """Return one entry of a table, `"key":text`."""
    return f"{orjson.dumps(key).decode()}:{text}"


def document_text(tables: Mapping[str, Iterable[str]], *, data_version: bytes | None = None) -> bytes:
    """Return the file's whole text; see Document."""
    return b"".join(Document(tables, data_version=data_version))


async def document_body(tables: Mapping[str, Iterable[str]], *, data_version: bytes | None = None) -> bytes:
    """Return the text as the body of an answer, compact; other tasks run while it is joined."""
    document = Document(tables, data_version=data_version, is_compact=True)
    return b"".join([part async for part in in_slices(document, 1)])


class StateWriter:
    """Writes a state file some time after its state changed; many changes make one write.

    render: returns the current state as text; called on the loop, a Document is joined on a thread.
    delay_s: how long changes are gathered.
    prepare: does most of render's work in advance, in slices; for tables where most entries change between writes.
    share_max: of the time that writes may take; after a long one, changes are gathered for longer.
    """

    def __init__(
        self,
        file: JsonFile,
        render: Callable[[], Text],
        *,
        delay_s: float,
        prepare: Callable[[], Awaitable[None]] | None = None,
        share_max: float = 1.0,
    ) -> None:
        self._file = file
        self._render = render
        self._prepare = prepare
        self._delay_s = delay_s
        self._share_max = share_max
        self._write_s = 0.0  # that the last write took
        self._version = 0  # counts changes
        self._saved_version = 0
        self._failure: StateFileError | None = None  # of the last write, None when it went well
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self._written = asyncio.Condition()  # notified after each write, good or bad

    def changed(self) -> None:
        """Mark the state as changed. Cheap: called for each change."""
        self._version += 1
        self._changed.set()

    @property
    def is_saved(self) -> bool:
        return self._saved_version >= self._version

    @property
    def is_failing(self) -> bool:
        return self._failure is not None

    def persist(self) -> None:
        """Write now, blocking, if anything changed. Raises StateFileError."""
        if not self.is_saved:
            version = self._version
            self._file.write(self._render(), version)
            self._saved_version = version

    async def saved(self, *, is_urgent: bool = False) -> None:
        """Return when the current state is on disk; run() must be running. Raises StateFileError.

        is_urgent: a client waits for the answer, so changes are gathered no longer.
        """
        version = self._version
        if is_urgent:
            self._hurry.set()
        async with self._written:
            while self._saved_version < version:
                await self._written.wait()
                if self._failure is not None:
                    raise self._failure

    async def run(self) -> None:
        """Write after changes until cancelled, then write what is left."""
        try:
            while True:
                await self._changed.wait()
                pause_s = max(self._delay_s, self._write_s / self._share_max - self._write_s)
                await wait_for_event(self._hurry, pause_s)
                self._hurry.clear()
                self._changed.clear()
                await self._save()
        finally:
            self.persist()

    async def _save(self) -> None:
        began = time.monotonic()
        if self._prepare is not None:
            await self._prepare()
        version, text = self._version, self._render()
        try:
            await asyncio.to_thread(self._file.write, text, version)
            self._saved_version = max(self._saved_version, version)
            self._failure = None
        except StateFileError as exc:
            logger.exception("state file not written; will retry", extra={"event": "state_file_not_written"})
            self._failure = exc
        self._write_s = time.monotonic() - began
        async with self._written:
            self._written.notify_all()
        if self._failure is not None:
            self._changed.set()
            await asyncio.sleep(RETRY_DELAY_S)


class SavedTable:
    """Base of the broker's tables: `_writer` keeps their changes in a file."""

    _writer: StateWriter

    @property
    def is_failing(self) -> bool:
        """Whether the last write did not work; it is tried again."""
        return self._writer.is_failing

    def persist(self) -> None:
        """Write the file now, blocking, if anything changed."""
        self._writer.persist()

    async def saved(self, *, is_urgent: bool = False) -> None:
        """Return when every change made so far is on disk. Raises StateFileError when it can't be."""
        await self._writer.saved(is_urgent=is_urgent)

    async def run(self) -> None:
        """Write the file after changes, until cancelled."""
        await self._writer.run()
