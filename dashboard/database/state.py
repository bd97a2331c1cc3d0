"""The state of the dashboard's database: brokers never wait for it, and pages show why it can't be used.

`prepare` runs at each start, at the same time as the workers' start: it checks the file, replaces a damaged one by the
last good copy, and migrates the tables. If that fails, `state.why` has the reason, and each page answers 503 with it.
`DatabaseCare` tries again until it works, and makes the copies. PostgreSQL (server.py) is looked at each second; its
files and copies are its own.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.utils import translation
from django.utils.translation import gettext_noop

from dashboard.database.files import Damaged, DatabaseFiles, FailureKind, failure_kind
from dashboard.database.tables import NotUsable, TablesMissing, bring_up_to_date, check_tables
from dashboard.language.choice import PLAIN
from dashboard.language.sentences import gettext, joined
from dashboard.status.check import Check, Level

if TYPE_CHECKING:
    from dashboard.database.server import Server

logger = logging.getLogger(__name__)

LOOK_S = 1.0
SILENT_S = 5.0  # without an answer: then pages say so instead of waiting
COPY_EVERY_S = 24 * 3600.0
COPY_AGAIN_S = 600.0  # after one that failed
TOLD_S = 7 * 24 * 3600.0  # how long the Overview says that a database was set aside
OPENING = gettext_noop("The dashboard's database is being opened. Try again in a moment.")
LOCKED = gettext_noop("Another program holds the dashboard's database. Close that program; this page then works again.")


@dataclass(slots=True)
class DatabaseState:
    """What pages and checks need to know."""

    why: str = ""  # no page can be shown; "" when all is well
    copy_failed: str = ""
    set_aside: str = ""  # what this process did about damage, in a sentence

    def noticed(self, exc: DatabaseError) -> str:
        """A request met this error: the sentence for its answer. The next ones are spared the wait."""
        with translation.override(PLAIN):  # it is logged, and told to others
            return self._noticed(exc)

    def _noticed(self, exc: DatabaseError) -> str:
        if (server := _server()) is not None:
            self.why = server.sentence(exc)
        elif failure_kind(exc) is FailureKind.DAMAGED:
            self.why = gettext("The dashboard's database is damaged. It is being restored from its last good copy.")
        else:
            self.why = _sentence(exc)
        return self.why


state = DatabaseState()


def prepare() -> None:
    """Make the database usable, or say in `state.why` why it is not. Blocking; raises nothing about the database."""
    server = _server()
    try:
        if server is not None:
            server.make_ready()
        else:
            _open_or_restore(_files())
    except NotUsable as exc:
        _tell(str(exc))
    except (sqlite3.Error, DatabaseError, OSError) as exc:
        _tell(_sentence(exc) if server is None else server.sentence(exc))
    else:
        state.why = ""
    finally:
        if server is not None:
            server.close()
        connection.close()  # this thread's own


def copy_now() -> None:
    """Make a copy of the file, if it is one; a copy that fails is told on the Overview. Blocking."""
    if _server() is not None:
        return
    try:
        copy = _files().copy()
    except (Damaged, sqlite3.Error, OSError) as exc:
        state.copy_failed = str(exc)
        logger.warning("database not copied", extra={"event": "database_not_copied", "reason": str(exc)})
    else:
        state.copy_failed = ""
        logger.info("database copied", extra={"event": "database_copied", "copy": copy.name})


def problems(now: float) -> list[Check]:
    """What a person has to know of the database, while it works."""
    found: list[Check] = []
    if _server() is not None:
        return found
    for aside in _files().set_aside_files()[:1]:
        if now - aside.lstat().st_ctime < TOLD_S:
            found.append(
                Check(
                    Level.WARN,
                    gettext("The dashboard's database was damaged"),
                    joined([state.set_aside or gettext("It was set aside"), f"dashboard/{aside.name}"], ": "),
                    gettext(
                        "Accounts, tokens and report runs changed since then may be missing. Delete "
                        "the file when you no longer need it."
                    ),
                )
            )
    if state.copy_failed:
        found.append(
            Check(
                Level.WARN,
                gettext("The dashboard's database can't be copied"),
                state.copy_failed,
                gettext("Check the disk's space and the folder's permissions; it keeps trying."),
            )
        )
    return found


class DatabaseCare:
    """The service: makes an unusable database usable as soon as that is possible, and copies a usable one each day."""

    def __init__(self, on_usable: Callable[[bool], None] = lambda _: None) -> None:
        self._on_usable = on_usable  # called in a thread when it works again; True: it is another one
        self._tried_at = 0.0
        self._server = _server()
        self._look: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while True:
            if self._server is not None:
                await self._look_at(self._server)
            elif state.why:
                await self.repair()
            elif self._is_copy_due():
                self._tried_at = time.time()
                await asyncio.to_thread(copy_now)
            await asyncio.sleep(LOOK_S)

    async def _look_at(self, server: Server) -> None:
        """One look, which goes on when it takes long; then no page waits for the server."""
        if self._look is None:
            self._look = asyncio.create_task(asyncio.to_thread(server.look), name="look at the database")
        ended, _ = await asyncio.wait({self._look}, timeout=SILENT_S)
        if not ended:
            _tell(gettext("%(server)s does not answer.") % {"server": server.name})
            return
        look, self._look = self._look, None
        try:
            look.result()
        except NotUsable as exc:
            _tell(str(exc))
        else:
            if state.why:
                await self.repair()

    async def repair(self) -> None:
        before = state.set_aside
        await asyncio.to_thread(prepare)
        if not state.why:
            await sync_to_async(connections.close_all)()  # those of the pages' thread: they may know another file
            await asyncio.to_thread(self._on_usable, state.set_aside != before)
            logger.warning("database works again", extra={"event": "database_works_again"})

    def _is_copy_due(self) -> bool:
        now, copied_at = time.time(), _files().copied_at()
        return now - (copied_at or 0.0) > COPY_EVERY_S and now - self._tried_at > COPY_AGAIN_S


def _files() -> DatabaseFiles:
    return DatabaseFiles(Path(str(settings.DATABASES["default"]["NAME"])))


def _server() -> Server | None:
    """None where the tables are in a file."""
    if not settings.APPLIANCE.database_url:
        return None
    from dashboard.database.server import Server  # psycopg is there only where it is wanted

    return Server(settings.APPLIANCE.database_url)


def _open_or_restore(files: DatabaseFiles) -> None:
    """Try the database, then each of its copies, then an empty one."""
    damage = _damage_of(files)
    if not damage:
        return
    aside = files.set_aside()
    for copy in files.copies():
        if files.put_back(copy) and not _damage_of(files):
            _tell_set_aside(aside, damage, gettext("restored from the copy %(copy)s") % {"copy": copy.name})
            return
        files.remove()
    if damage_of_new := _damage_of(files):
        raise NotUsable(
            gettext("A new database for the dashboard cannot be created: %(why)s.") % {"why": damage_of_new}
        )
    _tell_set_aside(aside, damage, gettext("created again without accounts: there was no good copy"))


def _damage_of(files: DatabaseFiles) -> str:
    """Open it and bring its tables up to date. Returns what is damaged, "" for nothing. Raises other errors."""
    try:
        files.examine()
        has_changed = bring_up_to_date(before=files.copy, begin_anew=gettext("move dashboard/db.sqlite3 away"))
        check_tables()
    except (Damaged, TablesMissing) as exc:
        return str(exc)
    except (InconsistentMigrationHistory, LookupError) as exc:
        return str(exc)
    except (sqlite3.Error, DatabaseError) as exc:
        if failure_kind(exc) is not FailureKind.DAMAGED:
            raise
        return str(exc)
    finally:
        connection.close()  # the file behind it may be another one next
    if has_changed:
        copy_now()
    return ""


def _sentence(exc: BaseException) -> str:
    """The text for errors other than damage."""
    if isinstance(exc, sqlite3.Error | DatabaseError) and failure_kind(exc) is FailureKind.LOCKED:
        return gettext(LOCKED)
    return gettext(
        "The dashboard's database can't be used: %(error)s. Check the disk's space and the folder's permissions."
    ) % {"error": exc}


def _tell(why: str) -> None:
    if why != state.why:
        logger.error("database can't be used", extra={"event": "database_unusable", "reason": why})
    state.why = why


def _tell_set_aside(aside: Path, damage: str, what: str) -> None:
    state.set_aside = gettext("It was damaged (%(damage)s) and has been %(what)s") % {"damage": damage, "what": what}
    facts = {"event": "database_set_aside", "damage": damage, "file": aside.name, "outcome": what}
    logger.error("database was damaged and has been moved aside", extra=facts)
