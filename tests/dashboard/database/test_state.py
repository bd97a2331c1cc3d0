"""The dashboard's database in every state it may be found in: pages say what is the matter, nothing is thrown away."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import DatabaseError, OperationalError, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.test import AsyncClient, RequestFactory

from dashboard.database import state as database
from dashboard.database.files import COPIES_KEPT, DatabaseFiles, FailureKind, failure_kind
from dashboard.database.state import DatabaseCare, DatabaseState, prepare, problems
from dashboard.http.error_pages import server_error
from dashboard.models.alerts import AlertRow
from dashboard.models.management import Role, User
from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.visitor import PASSWORD, Visitor, first_run_token
from tests.waiting import wait_until

NOBODY = 65_534


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: object) -> Iterator[DatabaseFiles]:
    """A database with an administrator and a copy, at the place where Django looks for its own."""
    found = DatabaseFiles(tmp_path / "dashboard" / "db.sqlite3")
    found.path.parent.mkdir()
    monkeypatch.setitem(connections["default"].settings_dict, "NAME", str(found.path))
    monkeypatch.setattr(database, "_files", lambda: found)
    monkeypatch.setattr(database, "state", DatabaseState())
    connection.close()
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        prepare()
        User.objects.create(username="root", role=Role.ADMIN)
        connection.close()
        for copy in found.copies():
            copy.unlink()
        found.copy()
        yield found
        connection.close()


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def torn_inside(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = bytes(len(content) // 2 - 4096)
    path.write_bytes(content)


def execute(path: Path, statement: str) -> list[tuple[str]]:
    """As another program would."""
    with closing(sqlite3.connect(path)) as opened, opened:
        return opened.execute(statement).fetchall()


def without_a_table(path: Path) -> None:
    execute(path, "DROP TABLE dashboard_apitoken")


def without_its_migrations(path: Path) -> None:
    execute(path, "DROP TABLE django_migrations")


DAMAGE = [garbage, empty, truncated, torn_inside, without_a_table, without_its_migrations]


def close_wal(path: Path) -> None:
    """All in one file, as after a clean stop."""
    execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_database_is_set_aside_and_made_anew_from_its_copy(files: DatabaseFiles, damage: object) -> None:
    close_wal(files.path)
    damage(files.path)  # type: ignore[operator]
    left = files.path.read_bytes()
    prepare()
    assert database.state.why == ""
    assert [user.username for user in User.objects.all()] == ["root"]
    (aside,) = files.set_aside_files()
    assert aside.read_bytes() == left
    (problem,) = problems(aside.stat().st_ctime)
    assert "damaged" in problem.title and files.copies()[0].name in problem.evidence


@pytest.mark.parametrize("damage", [garbage, truncated, without_a_table])
def test_without_a_copy_it_begins_anew_and_says_so(files: DatabaseFiles, damage: object) -> None:
    close_wal(files.path)
    damage(files.path)  # type: ignore[operator]
    for copy in files.copies():
        copy.unlink()
    prepare()
    assert database.state.why == "" and not User.objects.exists()
    assert "without accounts: there was no good copy" in database.state.set_aside
    assert len(files.set_aside_files()) == 1


def test_a_copy_that_is_damaged_too_is_passed_over(files: DatabaseFiles) -> None:
    close_wal(files.path)
    garbage(files.path)
    garbage(files.copies_folder / "db-29991231T000000Z.sqlite3")
    prepare()
    assert database.state.why == "" and User.objects.count() == 1


def test_a_database_of_a_newer_version_stays_as_it_is_and_is_named(files: DatabaseFiles) -> None:
    later = "('dashboard', '0999_later', '2030-01-01')"
    execute(files.path, f"INSERT INTO django_migrations (app, name, applied) VALUES {later}")
    prepare()
    assert "newer version of GantryMQ (dashboard.0999_later)" in database.state.why
    assert files.set_aside_files() == []


WORDS = '{"title": [["t", "%s is gone", ["b"]]], "evidence": "e", "worst": "w"}'
ALERTS_OF_0_1_0 = {
    "alarmchannel": {"id": 4, "name": "ops", "kind": "slack", "settings": "{}", "is_on": 1},
    "alarmrule": {
        "id": 7, "name": "late", "kind": "group-behind", "pattern": "", "threshold": 300, "clear": 240, "for_s": 10,
        "clear_s": 60, "level": 1, "is_on": 1, "preset": "",
    },
    "alarmrule_channels": {"alarmrule_id": 7, "alarmchannel_id": 4},
    "alarmrow": {
        "subject": "g", "level": 1, "title": "late: g", "text": "7 min", "begun_at": "2026-11-23", "is_told": 1,
        "rule_id": 7, "words": "",
    },
    "incidentrow": {
        "identity": "b gone", "level": 2, "title": "b is gone", "evidence": "e", "worst": "w",
        "begun_at": "2026-11-22", "seen_at": "2026-11-23", "words": WORDS,
    },
}  # fmt: skip


@pytest.fixture
def of_0_1_0(files: DatabaseFiles) -> DatabaseFiles:
    """The same, with that version's tables and rows in them."""
    close_wal(files.path)
    files.remove()
    connection.close()
    MigrationExecutor(connection).migrate([("dashboard", "0001_tables")])
    with connection.cursor() as cursor:
        for table, row in ALERTS_OF_0_1_0.items():
            places = ", ".join(["%s"] * len(row))
            cursor.execute(f"INSERT INTO dashboard_{table} ({', '.join(row)}) VALUES ({places})", list(row.values()))
    return files


def test_alarms_and_incidents_of_0_1_0_are_alerts_with_their_rules_and_channels(of_0_1_0: DatabaseFiles) -> None:
    prepare()
    assert database.state.why == ""
    of_rule, of_check = AlertRow.objects.order_by("pk")
    assert of_rule.rule is not None and [channel.name for channel in of_rule.rule.channels.all()] == ["ops"]
    assert (of_rule.subject, of_rule.is_told, of_rule.ended_at) == ("g", True, None)
    assert (of_check.rule, of_check.subject, of_check.level, of_check.text) == (None, "b gone", 2, "e")
    assert (of_check.worst, of_check.begun_at.day, json.loads(of_check.words)["text"]) == ("w", 22, "e")


@pytest.mark.parametrize("noted", [0, 3])
def test_an_upgrade_that_ends_before_it_is_noted_is_done_again(of_0_1_0: DatabaseFiles, noted: int) -> None:
    note, left = MigrationRecorder.record_applied, iter([True] * noted)

    def die(recorder: MigrationRecorder, app: str, name: str) -> None:
        if app == "dashboard" and not next(left, False):
            raise OSError("ended")
        note(recorder, app, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MigrationRecorder, "record_applied", die)
        prepare()
    assert "ended" in database.state.why
    prepare()
    assert (database.state.why, database.state.set_aside) == ("", "")
    assert AlertRow.objects.count() == 2


OF_COMMITS_SINCE_0_1_0 = [
    "0002_alerts", "0003_alert_handling", "0004_on_call_channels", "0005_saved_searches", "0006_latency",
    "0007_words_of_topic_changes",
]  # fmt: skip


@pytest.mark.parametrize(("has", "why"), [(6, ""), (5, "newer version of GantryMQ (dashboard.0006_latency)")])
def test_one_of_a_commit_since_0_1_0_opens_or_is_told_what_to_do(files: DatabaseFiles, has: int, why: str) -> None:
    with closing(sqlite3.connect(files.path)) as opened, opened:
        opened.execute("DELETE FROM django_migrations WHERE app = 'dashboard' AND name != '0001_tables'")
        opened.executemany(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('dashboard', ?, '2026-11-29')",
            [(name,) for name in OF_COMMITS_SINCE_0_1_0[:has]],
        )
    prepare()
    assert why in database.state.why and bool(why) == bool(database.state.why)
    assert files.set_aside_files() == []
    if not why:
        assert User.objects.count() == 1


def test_one_of_before_0_1_0_stays_as_it_is_and_is_told_what_to_do(files: DatabaseFiles) -> None:
    of_ours = "app = 'dashboard' AND name LIKE '0001%'"
    execute(files.path, f"UPDATE django_migrations SET name = '0001_initial' WHERE {of_ours}")
    prepare()
    assert "a version before 0.1.0, which this one cannot read: move dashboard/db.sqlite3 away" in database.state.why
    assert files.set_aside_files() == []
    assert execute(files.path, "SELECT username FROM dashboard_user") == [("root",)]


@pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_database_is_waited_for_and_not_set_aside(files: DatabaseFiles, kind: str) -> None:
    with closing(sqlite3.connect(files.path, isolation_level=None)) as other:
        other.execute(f"BEGIN {kind}")
        prepare()
        assert database.state.why == database.LOCKED
    prepare()
    assert database.state.why == "" and files.set_aside_files() == []


def test_a_folder_that_can_t_be_written_is_told_and_nothing_is_set_aside(files: DatabaseFiles) -> None:
    close_wal(files.path)
    connection.close()
    folder = files.path.parent
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with not_root(folder):
        prepare()
        assert "can't be used" in database.state.why and "permissions" in database.state.why
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    prepare()
    assert database.state.why == "" and files.set_aside_files() == []


@contextlib.contextmanager
def not_root(folder: Path) -> Iterator[None]:
    """Rights mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    opened = [parent for parent in folder.parents if not parent.stat().st_mode & stat.S_IXOTH]
    for parent in opened:
        parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        for parent in opened:
            parent.chmod(parent.stat().st_mode & ~stat.S_IXOTH)


def test_copies_are_few_private_and_good(files: DatabaseFiles) -> None:
    for number in range(COPIES_KEPT + 2):
        files.copy().rename(files.copies_folder / f"db-2026112{number}T000000Z.sqlite3")
    files.copy()
    copies = files.copies()
    assert len(copies) == COPIES_KEPT
    assert all(stat.S_IMODE(copy.stat().st_mode) == 0o600 for copy in copies)
    assert execute(copies[0], "SELECT username FROM dashboard_user") == [("root",)]


def test_a_copy_that_fails_is_told(files: DatabaseFiles) -> None:
    files.copies()[0].unlink()
    files.copies_folder.rmdir()
    files.copies_folder.write_text("a file stands where the folder should be")
    database.copy_now()
    assert [problem.title for problem in problems(0.0)] == ["The dashboard's database can't be copied"]


def test_sqlite_s_errors_are_told_apart(tmp_path: Path) -> None:
    garbage(tmp_path / "db")
    with closing(sqlite3.connect(tmp_path / "db")) as opened, pytest.raises(sqlite3.DatabaseError) as caught:
        opened.execute("SELECT 1 FROM sqlite_master")
    wrapped = DatabaseError("file is not a database")
    wrapped.__cause__ = caught.value
    assert failure_kind(wrapped) is failure_kind(caught.value) is FailureKind.DAMAGED
    with pytest.raises(sqlite3.OperationalError) as out_of_reach:
        sqlite3.connect(tmp_path / "missing" / "db.sqlite3")
    assert failure_kind(out_of_reach.value) is FailureKind.OUT_OF_REACH


async def test_while_it_can_t_be_used_each_page_says_so_and_asks_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database.state, "why", "It is locked.")
    client = AsyncClient()  # this test has no database: a query would fail
    page = await client.get("/topics?q=a&page=2")
    assert page.status_code == 503 and page.headers["Retry-After"] == "5"
    assert "It is locked. Brokers keep running." in page.content.decode()
    assert '<a href="/topics?q=a&amp;page=2">Reload this page</a>' in page.content.decode()
    answer = await client.get("/api/v1/topics")
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert answer.json()["detail"] == "It is locked. Brokers keep running."
    assert (await client.get("/healthz")).status_code == 200
    for script in re.findall(r'<script[^>]* src="([^"]+)"', page.content.decode()):
        answer = await client.get(script)
        assert (script, answer.status_code) == (script, 200)
        assert "javascript" in answer.headers["Content-Type"]


def test_a_request_that_meets_trouble_says_which_and_spares_others_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database.state, "why", "")
    request = RequestFactory().get("/api/v1/topics")
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    try:
        raise OperationalError("database is locked") from busy
    except OperationalError:
        response = server_error(request)
    assert response.status_code == 503 and b"Another program holds" in response.content
    assert database.state.why == database.LOCKED


def test_brokers_serve_beside_a_damaged_database_and_a_lock_is_told_while_it_lasts(tmp_path: Path) -> None:
    path = tmp_path / "data" / "dashboard" / "db.sqlite3"
    path.parent.mkdir(parents=True)
    garbage(path)
    with RunningAppliance(tmp_path / "data") as gantry:
        with SyncProducer(gantry.namesrv) as producer:
            assert producer.send(Message("beside", b"a damaged database")).status.name == "SEND_OK"
        assert "! The dashboard's database: It was damaged" in gantry.output
        token = first_run_token(gantry.output)
        visitor = Visitor(f"http://{gantry.http}")
        assert visitor.get(f"/first-run?token={token}").status == 200
        fields = {"username": "ada", "password": PASSWORD, "again": PASSWORD, "token": token}
        fields["csrfmiddlewaretoken"] = next(value for name, value in visitor.cookies.items() if "csrf" in name)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = visitor.post("/first-run", fields)
            assert refused.status == 503 and "Another program holds the dashboard&#x27;s database" in refused.text
        wait_until(lambda: visitor.get("/login").status == 200)
        assert visitor.post("/first-run", fields).status == 302
        wait_until(lambda: "The dashboard&#x27;s database was damaged" in visitor.get("/").text)
    assert list(path.parent.glob("db.sqlite3.damaged-*"))
    of_the_stop = DatabaseFiles(path).copies()[0]
    assert execute(of_the_stop, "SELECT username FROM dashboard_user") == [("ada",)]


async def test_the_care_makes_it_usable_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(database, "prepare", lambda: setattr(database.state, "why", ""))
    monkeypatch.setattr(database.state, "why", "It is locked.")
    await DatabaseCare(calls.append).repair()
    assert calls == [False]  # the same database as before
