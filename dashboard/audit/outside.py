"""What is known of the audit log outside the database: DATA/audit.head has its newest entry and where it may begin.

Who can write the database could take the newest or the oldest entries away, and the rest would still be a chain. The
order makes a crash harmless. The newest entry is written after the database has it: so the file may lag by what was in
flight, and is never ahead. Where the log may begin is written before the oldest are deleted: so the log may begin
earlier, and never later. Writers have the database's turn, so they find what those before them committed; and the file
has a lock, as several processes write it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from dashboard.models.audit import AuditEntry

logger = logging.getLogger(__name__)

NAME = "audit.head"
GAPS_KEPT = 50


class Unreadable(Exception):
    """The file is there and says nothing."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries that had been written and were not there any more. at: when that was noticed, ISO 8601."""

    first: int
    last: int
    at: str


@dataclass(frozen=True, slots=True)
class Record:
    """number, hash: of the newest entry; 0 and "" of an empty log. base: the first number that may be the oldest.

    since: the first number that was recorded here; earlier ones were there before the file.
    """

    number: int
    hash: str
    base: int
    since: int
    gaps: tuple[Gap, ...] = field(default=())


def path() -> Path:
    return Path(settings.APPLIANCE.data) / NAME


def read() -> Record | None:
    """None without a file. Raises Unreadable, OSError."""
    try:
        text = path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as exc:
        raise Unreadable(str(exc)) from exc
    try:
        known = json.loads(text)
        gaps = tuple(Gap(int(gap["first"]), int(gap["last"]), str(gap["at"])) for gap in known["gaps"])
        return Record(int(known["number"]), str(known["hash"]), int(known["base"]), int(known["since"]), gaps)
    except (ValueError, KeyError, TypeError) as exc:
        raise Unreadable(f"{type(exc).__name__}: {exc}") from exc


def before_append(last: AuditEntry | None) -> None:
    """Compare with the end of the log, and write down what is missing. In the transaction that appends."""
    with _locked():
        known = _known(last)
        ended = last.number if last is not None else 0
        if known.number > ended:
            _write(_with_gap(known, ended + 1, known.number, last))
        elif known.number and not _has(known, last):
            _write(_with_gap(known, known.number, known.number, last))


def before_forget(base: int) -> None:
    """Entries before this number are going to be deleted. In the transaction that does it."""
    with _locked():
        known = read()
        if known is not None and known.base < base:
            _write(replace(known, base=base, gaps=tuple(gap for gap in known.gaps if gap.last >= base)))
    logger.info("oldest audit entries expire", extra={"event": "audit_expires", "first_kept": base})


def after_commit(entry: AuditEntry) -> None:
    """The database has it, as its newest or one of the newest."""
    try:
        _sync_database()
        with _locked():
            known = read()
            if known is not None and known.number < entry.number:
                _write(replace(known, number=entry.number, hash=entry.entry_hash))
    except (OSError, Unreadable) as exc:  # the log's line says it, and the next entry writes the file
        logger.error("audit head not written", extra={"event": "audit_head_not_written", "error": str(exc)})


def _known(last: AuditEntry | None) -> Record:
    """The record; a new one where there is none."""
    try:
        known = read()
    except Unreadable as exc:
        path().replace(path().with_name(f"{NAME}.damaged"))
        logger.error("audit head unreadable", extra={"event": "audit_head_unreadable", "error": str(exc)})
        known = None
    if known is not None:
        return known
    first = AuditEntry.objects.order_by("number").first()
    base = first.number if first is not None else 1
    begun = Record(last.number, last.entry_hash, base, last.number + 1) if last is not None else Record(0, "", base, 1)
    _write(begun)
    logger.warning("audit head created", extra={"event": "audit_head_begun", "since": begun.since})
    return begun


def _has(known: Record, last: AuditEntry | None) -> bool:
    """Whether the log has the entry that is recorded; one that has expired counts as there."""
    if last is not None and last.number == known.number:
        return last.entry_hash == known.hash
    row = AuditEntry.objects.filter(number=known.number).first()
    return row.entry_hash == known.hash if row is not None else known.number < known.base


def _with_gap(known: Record, first: int, end: int, last: AuditEntry | None) -> Record:
    gap = Gap(first, end, timezone.now().isoformat(timespec="seconds"))
    facts = {"event": "audit_entries_missing", "first": gap.first, "last": gap.last}
    logger.error("audit entries are missing", extra=facts)
    number, last_hash = (last.number, last.entry_hash) if last is not None else (0, "")
    return replace(known, number=number, hash=last_hash, gaps=(*known.gaps, gap)[-GAPS_KEPT:])


def _sync_database() -> None:
    """SQLite's commits survive a kill, and a power cut only when its log is on the disk: the file must not be ahead."""
    if connection.vendor == "sqlite":
        log = Path(f"{connection.settings_dict['NAME']}-wal")
        try:
            descriptor = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # all of it is in the database itself
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _locked() -> Iterator[None]:
    descriptor = os.open(path().with_name(f"{NAME}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(record: Record) -> None:
    temporary = path().with_name(f".{NAME}.new")
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(asdict(record)).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path())
