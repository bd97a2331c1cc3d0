"""The files of the dashboard's database: looked at, copied, set aside. SQLite only; what Django thinks is elsewhere.

DATA/dashboard/db.sqlite3                  with -wal and -shm while it is open
DATA/dashboard/copies/db-TIME.sqlite3      the last good ones, each a whole database
DATA/dashboard/db.sqlite3.damaged-TIME     what was set aside, with its -wal and -shm; yours to remove
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from enum import Enum
from pathlib import Path

from appliance.settings.replaced_file import sync_path
from dashboard.language.sentences import gettext

COPIES_KEPT = 3
ASIDE_KEPT = 5
WAIT_S = 0.5  # for a lock, before a database is called locked
COMPANIONS = ("", "-wal", "-shm")
MADE = "%Y%m%dT%H%M%SZ"

DAMAGED_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT)
LOCKED_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class FailureKind(Enum):
    """What an error of SQLite means for who has to act."""

    DAMAGED = "damaged"  # its bytes, or its tables, are not what they have to be
    LOCKED = "locked"  # another program holds it
    OUT_OF_REACH = "out of reach"  # rights, a full disk, a failing one


class Damaged(Exception):
    """The database can't be used; the text says what is wrong with it."""


def failure_kind(exc: BaseException) -> FailureKind:
    """Django wraps SQLite's errors: the cause knows the code."""
    cause = exc if isinstance(exc, sqlite3.Error) else exc.__cause__
    code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # above it: the extended code
    if code in DAMAGED_CODES:
        return FailureKind.DAMAGED
    return FailureKind.LOCKED if code in LOCKED_CODES else FailureKind.OUT_OF_REACH


class DatabaseFiles:
    """Those of one database. Everything here blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copies_folder = path.parent / "copies"

    def examine(self) -> None:
        """Raises Damaged, or sqlite3.Error. A database that is not there is fine: it begins."""
        if not self.path.exists():
            return
        if self.path.stat().st_size == 0:
            if self.copies():
                raise Damaged(gettext("it is empty"))
            return  # nothing was ever in it
        with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=WAIT_S)) as database:
            database.isolation_level = None
            database.execute("BEGIN IMMEDIATE")  # before the long look: whether it can be written at all
            database.execute("ROLLBACK")
            found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise Damaged(str(found).strip().splitlines()[-1])

    def copies(self) -> list[Path]:
        """The newest first."""
        return sorted(self.copies_folder.glob("db-*.sqlite3"), reverse=True)

    def copied_at(self) -> float | None:
        """When the newest copy was made, in seconds since the epoch."""
        copies = self.copies()
        return copies[0].stat().st_mtime if copies else None

    def copy(self) -> Path:
        """Make a copy beside running writers, and look whether it is good, before an older one goes."""
        self.copies_folder.mkdir(mode=0o700, exist_ok=True)
        unfinished = self.copies_folder / "unfinished"
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_read_only(self.path)) as source, closing(sqlite3.connect(unfinished)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # whole in one file
            found = target.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise Damaged(gettext("its copy is damaged: %(found)s") % {"found": found})
        copy = self.copies_folder / f"db-{time.strftime(MADE, time.gmtime())}.sqlite3"
        unfinished.replace(copy)
        _sync(copy)
        for old in self.copies()[COPIES_KEPT:]:
            old.unlink(missing_ok=True)
        return copy

    def set_aside(self) -> Path:
        """Put the database out of the way as it is. A rename: it needs no room."""
        aside = self._name_for_aside()
        for companion in COMPANIONS:
            file = self.path.with_name(self.path.name + companion)
            if file.exists():
                file.replace(aside.with_name(aside.name + companion))
        for old in self.set_aside_files()[ASIDE_KEPT:]:
            for companion in COMPANIONS:
                old.with_name(old.name + companion).unlink(missing_ok=True)
        return aside

    def set_aside_files(self) -> list[Path]:
        """The newest first."""
        found = self.path.parent.glob(f"{self.path.name}.damaged-*")
        return sorted((path for path in found if not path.name.endswith(COMPANIONS[1:])), reverse=True)

    def put_back(self, copy: Path) -> bool:
        """Begin from a copy, which stays. False: the copy is no good."""
        unfinished = self.path.with_name(f"{self.path.name}.new")
        unfinished.unlink(missing_ok=True)
        try:
            with closing(_read_only(copy)) as source, closing(sqlite3.connect(unfinished)) as target:
                source.backup(target)
        except sqlite3.DatabaseError as exc:
            if failure_kind(exc) is not FailureKind.DAMAGED:
                raise
            return False
        unfinished.chmod(0o600)
        unfinished.replace(self.path)
        _sync(self.path)
        return True

    def remove(self) -> None:
        """One that was put back and is no good either."""
        for companion in COMPANIONS:
            self.path.with_name(self.path.name + companion).unlink(missing_ok=True)

    def _name_for_aside(self) -> Path:
        stamp = time.strftime(MADE, time.gmtime())
        name, number = f"{self.path.name}.damaged-{stamp}", 1
        while (aside := self.path.with_name(name)).exists():  # twice within a second
            number += 1
            name = f"{self.path.name}.damaged-{stamp}-{number}"
        return aside


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)


def _sync(path: Path) -> None:
    """To the disk, and its name too."""
    for target in (path, path.parent):
        sync_path(target)
