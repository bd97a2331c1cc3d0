"""The tables of the dashboard's database, brought up to date: the same for SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from django.apps import apps
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from dashboard.language.sentences import gettext

LABEL = "dashboard"
FIRST = "0001_tables"
BEFORE_FIRST = ("0001_initial", "0024_topic_changes")  # the first and the last migration of the versions before 0.1.0


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
    has_taken_over = _take_over(begin_anew)
    executor = MigrationExecutor(connection)
    applied = set(executor.loader.applied_migrations or ())
    installed = {app.label for app in apps.get_app_configs()}
    newer = sorted(f"{label}.{name}" for label, name in applied - set(executor.loader.disk_migrations or ()))
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
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return has_taken_over
    if applied:
        before()
    call_command("migrate", verbosity=0, interactive=False)
    return True


def _take_over(begin_anew: str) -> bool:
    """Record FIRST in place of the migrations before 0.1.0, whose last tables are those that FIRST makes. Raises
    NotUsable for older tables: nothing is left that could bring them up to date.
    """
    recorder = MigrationRecorder(connection)
    applied = sorted(name for label, name in recorder.applied_migrations() if label == LABEL)
    first, last = BEFORE_FIRST
    if first not in applied:
        return False
    if last not in applied:
        raise NotUsable(
            gettext(
                "The dashboard's database was written by a version before 0.1.0 (%(version)s). Start "
                "the last version before 0.1.0 (%(last)s) once, or %(begin_anew)s to start with a "
                "new one. Brokers are not affected."
            )
            % {"version": f"{LABEL}.{applied[-1]}", "last": f"{LABEL}.{last}", "begin_anew": begin_anew}
        )
    with transaction.atomic():
        recorder.migration_qs.filter(app=LABEL, name__lte=last).delete()
        recorder.record_applied(LABEL, FIRST)
    return True


def check_tables() -> None:
    """The list of migrations may say more than what is there. Raises TablesMissing."""
    there = set(connection.introspection.table_names())
    if missing := sorted(model._meta.db_table for model in apps.get_models() if model._meta.db_table not in there):
        raise TablesMissing(f"table {missing[0]} is missing")
