"""`python -m tests.bench.group` end to end, with the smallest load and one loss of our three."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.docs.shell_lines import LINES

ROOT = Path(__file__).resolve().parents[3]
SMALL = "--of ours --losses 1 --blows kill --rounds 1 --senders 1 --seconds 0.3 --warm 0.3"


@pytest.mark.slow
def test_the_pages_line_measures_a_load_and_a_loss_and_prints_them() -> None:
    """Apache's three are left out: they need minutes until they are warm."""
    require_tool("cc", "the load generator is a C program")
    (words,) = [shlex.split(line.command) for line in LINES if line.command.startswith("python -m tests.bench.group")]
    command = [sys.executable, *words[1:], *SMALL.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loss, load = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert (loss["blow"], loss["of"]) == ("kill", "ours") and loss["any_member_s"] > 0
    assert load["rate"] > 0 and load["errors"] == {}
    assert "| ours | master |" in done.stdout  # the table of memory, which is printed last
