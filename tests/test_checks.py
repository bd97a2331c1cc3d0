"""Style and types, as part of the one check command. `ruff format .` and `ruff check --fix .` repair most of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.bench.maven import cache_folder
from tests.conftest import missing

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]], ids=" ".join)
def test_the_checkout_is_clean_under(command: list[str], tmp_path: Path) -> None:
    program = Path(sys.executable).with_name(command[0])
    if not program.exists():
        missing(command[0], "install deploy/locks/test.lock")
    if command == ["mypy"]:  # a first look at everything takes most of a minute
        command = ["mypy", "--cache-dir", str(cache_folder() / "mypy")]
    environment = os.environ | {"GANTRY_DATA": str(tmp_path)}  # mypy's Django plugin reads the settings
    result = subprocess.run(
        [str(program), *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}:\n{result.stdout}{result.stderr}"
