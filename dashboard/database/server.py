"""The dashboard's database in PostgreSQL: made ready, and looked at each second.

Its copies are its administrator's (pg_dump), so nothing is copied, set aside or begun anew here: what is not as it has
to be is told. Everything here blocks.
"""

from __future__ import annotations

import psycopg
from django.db import connection

from appliance.settings.service_urls import without_password
from dashboard.database.address import server_parts
from dashboard.database.tables import NotUsable, TablesMissing, bring_up_to_date, check_tables
from dashboard.language.sentences import gettext

TEXT_CHARS_MAX = 300


class Server:
    """One PostgreSQL, by its address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    def look(self) -> None:
        """Ask it for nothing, over a connection of our own: pages' connections may all be busy. Raises NotUsable."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(**server_parts(self._url), autocommit=True)  # type: ignore[arg-type]
            self._connection.execute("SELECT 1")
        except psycopg.Error as exc:
            self.close()
            raise NotUsable(self.sentence(exc)) from exc

    def close(self) -> None:
        """The next look connects again."""
        opened, self._connection = self._connection, None
        if opened is not None:
            opened.close()

    def make_ready(self) -> None:
        """Bring the tables up to date. Raises NotUsable, and DatabaseError."""
        self.look()
        try:
            bring_up_to_date(before=lambda: None, begin_anew=gettext("name another database with database_url"))
            check_tables()
        except TablesMissing as exc:
            raise NotUsable(
                gettext(
                    "The tables of %(server)s are not the dashboard's: %(error)s. Give the dashboard "
                    "its own database, or restore the last dump."
                )
                % {"server": self.name, "error": str(exc)}
            ) from exc
        finally:
            connection.close()  # this thread's own

    def sentence(self, exc: BaseException) -> str:
        """An error for people; libpq's words hold no password."""
        told = " ".join(str(exc).split())[:TEXT_CHARS_MAX]
        return gettext("%(server)s can't be used: %(error)s.") % {"server": self.name, "error": told}

    @property
    def name(self) -> str:
        """The server for people."""
        return gettext("The dashboard's database at %(address)s") % {"address": without_password(self._url)}
