"""The tables of the dashboard's database, brought up to date: the same for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from django.apps import apps
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from dashboard.language.sentences import gettext

LABEL = "dashboard"
BEFORE_FIRST = "0001_initial"  # the first migration of the versions before 0.1.0, none of which was released


class NotUsable(Exception):
    """The database can't be used; the text is for the pages."""


class TablesMissing(Exception):
    """What should be there is not; the text says which table."""


def bring_up_to_date(*, before: Callable[[], object], begin_anew: str) -> bool:
    """Make or change the tables; False when there was nothing to do. Looking first is five times as fast as Django's
    command.

    before: called when there are older tables, before they change. begin_anew: how to, for a database of a newer
    version. Raises NotUsable, TablesMissing, and what Django does.
    """
    executor = MigrationExecutor(connection)
    loader = executor.loader
    applied = set(loader.applied_migrations or ())
    if (LABEL, BEFORE_FIRST) in applied:
        raise NotUsable(
            gettext(
                "The dashboard's database was written by a version before 0.1.0, which this one cannot read: "
                "%(begin_anew)s to start with a new one. Brokers are not affected."
            )
            % {"begin_anew": begin_anew}
        )
    installed = {app.label for app in apps.get_app_configs()}
    known = {old for new in applied & set(loader.replacements) for old in loader.replacements[new].replaces}
    newer = sorted(f"{label}.{name}" for label, name in applied - known - set(loader.disk_migrations or ()))
    if newer := [name for name in newer if name.partition(".")[0] in installed]:
        raise NotUsable(
            gettext(
                "The dashboard's database was written by a newer version of GantryMQ (%(version)s). "
                "Start that version, or %(begin_anew)s to start with a new one. Brokers are not "
                "affected."
            )
            % {"version": newer[-1], "begin_anew": begin_anew}
        )
    if not applied and connection.introspection.table_names():
        raise TablesMissing(gettext("table %(name)s is missing") % {"name": "django_migrations"})
    if not executor.migration_plan(loader.graph.leaf_nodes()):
        return False
    if applied:
        before()
    # All of it or nothing: Django notes a migration after it, and one that replaces others in a row for each of them.
    with connection.constraint_checks_disabled(), transaction.atomic():  # SQLite has it in this order only
        call_command("migrate", verbosity=0, interactive=False)
    return True


def check_tables() -> None:
    """The list of migrations may say more than what is there. Raises TablesMissing."""
    there = set(connection.introspection.table_names())
    if missing := sorted(model._meta.db_table for model in apps.get_models() if model._meta.db_table not in there):
        raise TablesMissing(f"table {missing[0]} is missing")
