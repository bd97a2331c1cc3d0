"""S61: Writers that are killed between database and file, two at once, leave a log that is whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROUNDS = 3
BEGIN = (
    "import django; django.setup(); from dashboard.audit import chain; from tests.dashboard.audit.changes import *\n"
)
PREPARE = "from dashboard.database.state import prepare, state; prepare(); assert not state.why, state.why"
WRITE = (
    "chain.FORGET_EACH, chain.KEPT_ROWS_MAX = 5, 20\nprint('ready', flush=True)\nwhile True: chain.append([change()])"
)
CHECK = "found = chain.check(); print(found.count, found.broken_at, found.missing, found.is_whole)"


def test_s61_killed_writers_raise_no_false_alarm(tmp_path: Path) -> None:
    (tmp_path / "dashboard").mkdir(mode=0o700)
    run(tmp_path, PREPARE)
    for round_number in range(ROUNDS):
        writers = [started(tmp_path, WRITE) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(0.4 + 0.037 * round_number)  # the kill comes at another moment of their writing each round
        for writer in writers:
            writer.kill()
            writer.communicate()
        count, broken_at, *_, is_whole = run(tmp_path, CHECK).split()
        assert int(count) > 0 and (broken_at, is_whole) == ("None", "True")


def started(data: Path, program: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"GANTRY_DATA": str(data), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    return subprocess.Popen([sys.executable, "-c", BEGIN + program], stdout=subprocess.PIPE, cwd=ROOT, env=environment)


def run(data: Path, program: str) -> str:
    process = started(data, program)
    told, _ = process.communicate()
    assert process.returncode == 0
    return told.decode()
