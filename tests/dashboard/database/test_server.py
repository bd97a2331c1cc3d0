"""The dashboard's tables in a real PostgreSQL: moved there from SQLite, used, and the server gone for a while."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.appliance_process import RunningAppliance
from tests.docs.pages import ROOT
from tests.servers.postgresql import PASSWORD as SECRET
from tests.servers.postgresql import URL_PASSWORD, PostgreSQL, running_postgresql
from tests.visitor import PASSWORD, Visitor, admin_of
from tests.waiting import WITHIN_S, wait_until

PAGE = ROOT / "docs" / "scale.md"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    with running_postgresql() as running:
        yield running


@pytest.fixture(scope="module")
def gantry(server: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    """An appliance that began with SQLite and was moved by the commands of the page."""
    data = tmp_path_factory.mktemp("moved") / "data"
    with RunningAppliance(data) as before:
        admin_of(before)
        assert (data / "dashboard" / "db.sqlite3").exists()
    _move(data, server.url)
    (data / "dashboard" / "db.sqlite3").unlink()
    with RunningAppliance(data, "--log-level", "DEBUG", environment={"GANTRY_DATABASE_URL": server.url}) as running:
        yield running


def _move(data: Path, url: str) -> None:
    """The page's lines for a shell, with this folder and this server."""
    found = re.search(r"<!-- move -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    lines = found[1].replace("/srv/gantry/data", str(data)).replace("postgresql://gantry@db.example/gantry", url)
    lines = lines.replace(".venv/bin/python", sys.executable).replace("moved.json", str(data.parent / "moved.json"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GANTRY_", "DJANGO_"))}
    done = subprocess.run(["bash", "-euc", lines], cwd=ROOT, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (data.parent / "moved.json").stat().st_mode & 0o077 == 0, "it holds hashes of passwords"


def test_the_page_makes_a_user_and_a_database(server: PostgreSQL) -> None:
    """Its line as a database team runs it, with another name than this server's own user."""
    import psycopg

    (line,) = re.findall(r"^createuser .*$", PAGE.read_text(), re.MULTILINE)
    folder = Path(server.program("createuser")).parent
    variables = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PGHOST": "127.0.0.1", "PGUSER": "gantry"}
    variables |= {"PGPORT": str(server.port), "PGPASSWORD": SECRET}
    subprocess.run(
        ["bash", "-euc", line.replace("gantry", "someone")],
        env=os.environ | variables,
        input="a secret\na secret\n",
        text=True,
        check=True,
        start_new_session=True,  # without a terminal it reads the password here
    )
    with psycopg.connect(f"postgresql://someone:a%20secret@127.0.0.1:{server.port}/someone") as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("someone",)


def test_who_could_log_in_before_can_do_so_now(gantry: RunningAppliance) -> None:
    visitor = Visitor(gantry.url)
    assert visitor.log_in().status == 302
    assert visitor.submit("/tokens", {"name": "CI", "scope": "read", "life_days": "30"}).status == 302
    assert visitor.get("/tokens").status == 200
    assert not (Path(gantry.data) / "dashboard" / "db.sqlite3").exists()


def test_commands_speak_of_the_same_accounts(gantry: RunningAppliance, server: PostgreSQL) -> None:
    command = [sys.executable, "-m", "appliance", "users", "list", "--data", gantry.data, "--json"]
    environment = os.environ | {"GANTRY_DATABASE_URL": server.url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert [user["name"] for user in json.loads(done.stdout)] == ["admin"]


def test_character_zero_is_stored_and_looked_for_like_any_other(gantry: RunningAppliance) -> None:
    visitor = Visitor(gantry.url)
    visitor.log_in()
    for address in ("/audit?text=a%00b", "/topics?q=%00", "/alerts?q=%00"):
        assert visitor.get(address).status == 200, address
    wrong = {"username": "a\0b", "password": PASSWORD}
    assert Visitor(gantry.url).submit("/login", wrong).status == 422


@pytest.mark.parametrize("how", ["stopped", "ended"])
def test_while_the_server_is_away_pages_say_so_and_recover(
    gantry: RunningAppliance, server: PostgreSQL, how: str
) -> None:
    visitor = Visitor(gantry.url)
    assert visitor.log_in().status == 302
    server.signal(signal.SIGSTOP) if how == "stopped" else server.stop()
    try:
        wait_until(lambda: visitor.get("/topics").status == 503)
        page = visitor.get("/topics").text
        assert f"postgresql://gantry@127.0.0.1:{server.port}/gantry" in page and "Brokers keep running" in page
        assert visitor.get("/healthz").status in (200, 503)
    finally:
        server.signal(signal.SIGCONT) if how == "stopped" else server.start()
    wait_until(lambda: visitor.get("/topics").status == 200)


def test_s62_the_password_is_in_no_log_and_on_no_page(gantry: RunningAppliance) -> None:
    """S62. The last one: all that happened above is in the logs."""
    visitor = Visitor(gantry.url)
    visitor.log_in()
    told = [gantry.output, *(path.read_text() for path in Path(gantry.data, "logs").iterdir() if path.is_file())]
    told += [visitor.get(address).text for address in ("/", "/security", "/audit", "/users")]
    for text in told:
        for secret in (SECRET, URL_PASSWORD, unquote(URL_PASSWORD)):
            assert secret not in text
    assert any("database can't be used" in text for text in told)
