"""`gantry users` beside a running appliance: what it changes holds at once."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.cli import users
from tests.appliance_process import ROOT, RunningAppliance, shared_appliance
from tests.visitor import PASSWORD, Visitor, admin_of

NEW_PASSWORD = "a short way from 4321"
Gantry = Callable[..., subprocess.CompletedProcess[str]]


appliance = shared_appliance()


@pytest.fixture(scope="module")
def administrator(appliance: RunningAppliance) -> Visitor:
    return admin_of(appliance)


@pytest.fixture
def gantry(appliance: RunningAppliance) -> Gantry:
    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "appliance", "users", *words, "--data", appliance.data]
        return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=120)

    return run


def log_in(appliance: RunningAppliance, name: str, password: str) -> tuple[Visitor, int]:
    visitor = Visitor(f"http://{appliance.http}")
    return visitor, visitor.submit("/login", {"username": name, "password": password}).status


def is_logged_in(visitor: Visitor) -> bool:
    return visitor.get("/tokens").status == 200


def test_an_account_is_made_and_gets_another_role_at_once(
    appliance: RunningAppliance, administrator: Visitor, gantry: Gantry
) -> None:
    made = gantry("add", "rita", "--password-stdin", text=PASSWORD + "\n")
    assert (made.returncode, made.stdout) == (0, "rita may log in now, as reader\n"), made.stderr
    rita, status = log_in(appliance, "rita", PASSWORD)
    assert status == 302 and rita.get("/topics/create").status == 403
    assert gantry("roles", "rita", "operator").returncode == 0
    assert rita.get("/topics/create").status == 200
    listed = {row["name"]: row for row in json.loads(gantry("list", "--json").stdout)}
    assert (listed["rita"]["role"], listed["rita"]["sessions"], listed["admin"]["role"]) == ("operator", 1, "admin")


def test_what_can_not_be_done_is_said_in_a_sentence(administrator: Visitor, gantry: Gantry) -> None:
    last = gantry("roles", "admin", "reader")
    assert (last.returncode, last.stdout) == (1, "")
    assert last.stderr == "gantry users: admin is the last administrator with a password: create another one first\n"


def test_who_locked_himself_out_is_let_in_at_once(
    appliance: RunningAppliance, administrator: Visitor, gantry: Gantry
) -> None:
    for _ in range(5):
        assert log_in(appliance, "admin", "wrong")[1] == 422
    assert log_in(appliance, "admin", PASSWORD)[1] == 429
    [admin] = [row for row in json.loads(gantry("list", "--json").stdout) if row["name"] == "admin"]
    assert admin["locked_for"] == ["127.0.0.1"]
    unlocked = gantry("unlock", "admin")
    assert (unlocked.returncode, unlocked.stdout) == (0, "wrong attempts forgotten: 5\n")
    assert log_in(appliance, "admin", PASSWORD)[1] == 302


def test_a_new_password_ends_sessions_and_the_old_one(appliance: RunningAppliance, gantry: Gantry) -> None:
    assert gantry("add", "paul", "--password-stdin", text=PASSWORD + "\n").returncode == 0
    paul, _ = log_in(appliance, "paul", PASSWORD)
    assert is_logged_in(paul)
    reset = gantry("reset-password", "paul", "--password-stdin", text=NEW_PASSWORD + "\n")
    assert "sessions ended: 1" in reset.stdout, reset.stderr
    assert not is_logged_in(paul)
    assert log_in(appliance, "paul", PASSWORD)[1] == 422
    assert log_in(appliance, "paul", NEW_PASSWORD)[1] == 302


def test_s16_a_session_is_ended_by_its_number(appliance: RunningAppliance, gantry: Gantry) -> None:
    """S16: sessions are listed and revoked."""
    assert gantry("add", "sue", "--password-stdin", text=PASSWORD + "\n").returncode == 0
    first, second = (log_in(appliance, "sue", PASSWORD)[0] for _ in range(2))
    keys = [value for visitor in (first, second) for name, value in visitor.cookies.items() if "session" in name]
    ids = [hashlib.sha256(key.encode()).hexdigest()[:10] for key in keys]
    shown = gantry("sessions", "sue").stdout
    assert all(shown.count(part) == 1 for part in ids) and shown.count(" 127.0.0.1 ") == 2, shown
    assert not any(key in shown for key in keys)
    assert gantry("sessions", "--end", ids[1]).stdout == "sessions ended: 1\n"
    assert [is_logged_in(first), is_logged_in(second)] == [True, False]
    assert gantry("sessions", "sue", "--end-all").stdout == "sessions ended: 1\n"
    assert not is_logged_in(first)


def test_on_a_terminal_the_password_is_asked_for_twice_and_not_shown(appliance: RunningAppliance) -> None:
    terminal, its_end = pty.openpty()
    command = [sys.executable, "manage.py", "users", "add", "tom", "--data", appliance.data]
    streams = {"stdin": its_end, "stdout": its_end, "stderr": its_end}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **streams) as tom:
        os.close(its_end)
        shown = answer(terminal, "New password of tom: ", PASSWORD) + answer(terminal, "Once more: ", PASSWORD)
        shown += answer(terminal, "as reader", "")
    os.close(terminal)
    assert tom.returncode == 0 and PASSWORD not in shown
    assert log_in(appliance, "tom", PASSWORD)[1] == 302


def answer(terminal: int, question: str, text: str) -> str:
    """Type when asked; returns what was shown until then."""
    shown = ""
    while question not in shown:
        shown += os.read(terminal, 1024).decode()
    if text:
        os.write(terminal, text.encode() + b"\n")
    return shown


def test_without_a_database_or_as_another_user_nothing_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "data" / "dashboard" / "db.sqlite3"
    with pytest.raises(users.NoDatabase, match="start the appliance there once"):
        users.check_database(database)
    assert not list(tmp_path.iterdir())
    database.parent.mkdir(parents=True)
    database.touch()
    users.check_database(database)
    monkeypatch.setattr(os, "geteuid", lambda: database.stat().st_uid + 1)
    with pytest.raises(users.NoDatabase, match="run this as that user"):
        users.check_database(database)
