"""Style and types, as part of the one check command. `ruff format .` and `ruff check --fix .` repair most of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.bench.maven import cache_folder
from tests.appliance.proxy import protocol_code
from tests.conftest import missing
from tests.source_files import sources

ROOT = Path(__file__).resolve().parent.parent


def types_cache() -> Path:
    """mypy's Django plugin remembers modules that have moved, and misses them: other modules begin a cache anew."""
    folder = cache_folder() / "mypy"
    modules = hashlib.sha256("\n".join(str(path.relative_to(ROOT)) for path in sources()).encode()).hexdigest()
    known = folder / "modules"
    if not known.exists() or known.read_text(encoding="ascii") != modules:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        known.write_text(modules, encoding="ascii")
    return folder


@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]], ids=" ".join)
def test_the_checkout_is_clean_under(command: list[str], tmp_path: Path) -> None:
    program = Path(sys.executable).with_name(command[0])
    if not program.exists():
        missing(command[0], "install deploy/locks/test.lock")
    if command == ["mypy"]:  # a first look at everything takes most of a minute
        if not protocol_code.PROTOC.exists():
            missing("protoc", "the lock has it for Linux on x86-64 alone, and mypy needs the types that it makes")
        protocol_code.write(".pyi")
        command = ["mypy", "--cache-dir", str(types_cache())]
    environment = os.environ | {"GANTRY_DATA": str(tmp_path)}  # mypy's Django plugin reads the settings
    result = subprocess.run(
        [str(program), *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}:\n{result.stdout}{result.stderr}"
