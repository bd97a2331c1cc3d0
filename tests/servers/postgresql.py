"""A real PostgreSQL: a cluster of its own in a folder of its own, started and stopped, also stopped dead."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from appliance.bench.processes import free_ports
from tests.conftest import missing
from tests.waiting import WITHIN_S

PACKAGE = "Debian: apt install postgresql"
FOLDERS = "/usr/lib/postgresql"  # where Debian keeps them, out of the path
PASSWORD = "p:w@/wörd %1"
URL_PASSWORD = "p%3Aw%40%2Fw%C3%B6rd%20%251"
UNPRIVILEGED = 65_534  # the server refuses to run as root


class PostgreSQL:
    """`url` names a database `gantry` of a user `gantry`, who has a password."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs = folder, programs
        self._account = {"user": UNPRIVILEGED, "group": UNPRIVILEGED} if os.geteuid() == 0 else {}
        self.port = free_ports()
        self.url = f"postgresql://gantry:{URL_PASSWORD}@127.0.0.1:{self.port}/gantry"

    def make(self) -> None:
        secret = self._folder / "secret"
        secret.write_text(PASSWORD)
        if self._account:
            for path in (self._folder, secret):
                os.chown(path, UNPRIVILEGED, UNPRIVILEGED)
        self._run("initdb", "-D", self._data, "-U", "gantry", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
                  "--no-sync", f"--pwfile={secret}")  # fmt: skip
        self.start()
        import psycopg

        with psycopg.connect(self.url_of("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE gantry")

    def url_of(self, name: str) -> str:
        """The address of another database of this server."""
        return self.url.rpartition("/")[0] + f"/{name}"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c fsync=off -c max_connections=40"
        self._run("pg_ctl", "-D", self._data, "-l", str(self._folder / "log"), "-o", options, "-w",
                  "-t", str(int(WITHIN_S)), "start")  # fmt: skip

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def program(self, name: str) -> str:
        return str(self._programs / name)

    def signal(self, number: signal.Signals) -> None:
        """To the server and all that it started: stopped, not one of them answers."""
        first = psutil.Process(int((Path(self._data) / "postmaster.pid").read_text().split()[0]))
        for process in (first, *first.children()):
            process.send_signal(number)

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([self.program(program), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              cwd=self._folder, timeout=WITHIN_S, check=False, **self._account)  # type: ignore[call-overload]  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """Skips, saying what is missing, where PostgreSQL is not installed; in CI that is a failure."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="pg-", dir=_open_folder()) as made:
        server = PostgreSQL(Path(made), programs)
        server.make()
        try:
            yield server
        finally:
            server.signal(signal.SIGCONT)
            server.stop()


def _open_folder() -> str | None:
    """The run's own folder is closed to other accounts, as which the server has to run."""
    return "/tmp" if os.geteuid() == 0 else None


def _programs() -> Path:
    if importlib.util.find_spec("psycopg") is None:
        missing("psycopg", "PostgreSQL's driver (deploy/extra postgresql)")
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else sorted(Path(FOLDERS).glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists():
            return place
    missing("initdb", f"a real PostgreSQL ({PACKAGE})")
    raise AssertionError("missing() does not return")
