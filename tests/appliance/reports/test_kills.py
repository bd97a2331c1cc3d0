"""A run that is killed, at whatever point: the lake is a prefix of the log then, and the next run makes it whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.settings.lake_place import StoreAddress

pytest.importorskip("pyspark")
pytest.importorskip("deltalake", reason="the report stack is not installed")

ROOT = Path(__file__).parents[3]


def killed_everywhere(folder: Path, address: str = "", options: str = "") -> dict[str, list[int] | int]:
    command = [sys.executable, "-m", "tests.appliance.reports.killing", str(folder), address, options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[int] | int] = json.loads(done.stdout)
    return found


def test_killed_at_every_point_a_lake_is_a_prefix_and_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    found = killed_everywhere(tmp_path)
    assert int(str(found["points"])) > 40 and len(found["states"]) > 2  # type: ignore[arg-type]


def test_and_so_is_one_in_a_store(tmp_path: Path, address: StoreAddress) -> None:
    found = killed_everywhere(tmp_path, address.address, address.options)
    assert int(str(found["points"])) > 10 and len(found["states"]) > 2  # type: ignore[arg-type]
