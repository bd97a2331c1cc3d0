"""What the processes make in a data folder is its owner's alone, whatever the shell's umask says."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq import Credentials, Message, Producer
from tests.appliance_process import ROOT, RunningAppliance


def open_to_others(folder: Path) -> list[str]:
    """Files and folders that somebody else has a right to, were they copied out of the folder."""
    loose = []
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            with contextlib.suppress(FileNotFoundError):  # a running appliance renames and deletes
                mode = path.lstat().st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    loose.append(f"{stat.filemode(mode)} {path.relative_to(folder)}")
    return loose


def copied(folder: Path, to: Path) -> Path:
    """A backup as a shell makes it."""
    subprocess.run(["cp", "-r", folder, to], check=True, umask=0o022)
    return to


async def test_s04_s63_a_run_leaves_nothing_that_others_may_read(tmp_path: Path) -> None:
    """S04, S63: a backup with `cp -r` made messages, database and logs readable, for only the top folder was closed."""
    data = tmp_path / "data"
    with RunningAppliance(data, "--accounts") as gantry:
        own = Credentials.from_file(data / "accounts" / "appliance.yml")
        async with Producer(gantry.namesrv, group="pg", credentials=own) as producer:
            for number in range(3):
                await producer.send(Message("orders", b"body", keys=f"key-{number}"))
        assert open_to_others(data) == []
    assert open_to_others(copied(data, tmp_path / "backup")) == []
    made = {path.name for path in data.rglob("*") if path.is_file()}
    assert {"db.sqlite3", "gantry.log", "broker-a.log", "checkpoint", "topics.json", "0" * 20} <= made
    assert open_to_others(data) == []


@pytest.mark.parametrize("command", [("appliance", "tls", "create"), ("manage.py", "migrate")], ids=" ".join)
def test_s04_a_command_makes_private_files_too(command: tuple[str, ...], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    program = ["-m", *command, str(data / "tls")] if command[0] == "appliance" else list(command)
    environment = os.environ | {"GANTRY_DATA": str(data)}
    done = [sys.executable, *program]
    subprocess.run(done, cwd=ROOT, env=environment, check=True, capture_output=True, umask=0o022)
    assert [path for path in data.rglob("*") if path.is_file()]
    assert open_to_others(data) == []
