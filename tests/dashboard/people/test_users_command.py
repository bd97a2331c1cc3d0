"""What `gantry users` refuses, and how it says so. The command itself: tests/appliance/cli/test_users.py."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from django.core.management import call_command

from dashboard.models.management import User
from tests.dashboard.conftest import PASSWORD

ADD = {"verb": "add", "name": "bob", "role": "reader", "password_stdin": True}


def refusal(
    wish: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    with pytest.raises(SystemExit) as ended:
        call_command("users", json.dumps(wish))
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (1, "")
    return said.err


@pytest.mark.parametrize(
    ("wish", "text", "reason"),
    [
        (ADD, "short\n", "too short"),
        (ADD, "", "too short"),
        (ADD, "x" * 2000, "at most 1024"),
        (ADD | {"role": "root"}, PASSWORD, "there are: reader, operator, admin"),
        (ADD | {"name": "b ob"}, PASSWORD, "Letters, digits"),
        (ADD | {"name": "ADMIN"}, PASSWORD, "'ADMIN' already"),
        (ADD | {"password_stdin": False}, PASSWORD, "--password-stdin"),
        ({"verb": "roles", "name": "admin", "role": None}, "", "which role?"),
        (
            {"verb": "unlock", "name": "nobody", "address": None, "all": False},
            "",
            "no account 'nobody'; there are: admin",
        ),
        ({"verb": "sessions", "name": None, "end": ["0123456789"], "end_all": False}, "", "no session 0123456789"),
    ],
)
def test_what_can_not_be_done_is_said_and_changes_nothing(
    wish: dict[str, Any],
    text: str,
    reason: str,
    admin: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refusal(wish, text, monkeypatch, capsys)
    assert said.startswith("gantry users: ") and reason in said
    assert [user.username for user in User.objects.all()] == ["admin"]


def test_a_database_of_an_older_version_is_left_alone(
    admin: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from django.db.migrations.recorder import MigrationRecorder

    newer = MigrationRecorder.Migration.objects.filter(app="dashboard").exclude(name="0001_tables")
    rows = list(newer)
    newer.delete()
    try:
        assert "of an older version" in refusal(ADD, PASSWORD, monkeypatch, capsys)
    finally:
        MigrationRecorder.Migration.objects.bulk_create(rows)
