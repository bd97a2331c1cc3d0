"""The migrations are one row, and they make the tables that the models have."""

from __future__ import annotations

from django.core.management import call_command


def test_no_migration_is_missing_and_none_stands_beside_another(db: None) -> None:
    call_command("makemigrations", "dashboard", check=True, dry_run=True, verbosity=0)
