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
        if protocol_code.PROTOC.exists():  # for Linux on x86-64 alone; elsewhere mypy does without these types
            protocol_code.write(".pyi")
        command = ["mypy", "--cache-dir", str(types_cache())]
    environment = os.environ | {"GANTRY_DATA": str(tmp_path)}  # mypy's Django plugin reads the settings
    result = subprocess.run(
        [str(program), *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}:\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("has_types", [False, True])
def test_mypy_asks_for_the_types_of_grpc_only_where_they_are_made(tmp_path: Path, has_types: bool) -> None:
    """A fresh clone has none, and mypy also runs by hand, in the editor and before a commit."""
    made = protocol_code.FOLDER / "definition_pb2.py"
    copied = tmp_path / made.relative_to(ROOT)
    copied.parent.mkdir(parents=True)
    shutil.copy(made, copied)
    if has_types:
        copied.with_suffix(".pyi").write_text("class Resource:\n    name: str\n")
    using = "from appliance.proxy.protocol.definition_pb2 import Resource\n\nnumber: int = Resource().name\n"
    (tmp_path / "appliance" / "using.py").write_text(using)
    settings = (ROOT / "pyproject.toml").read_text().replace('plugins = ["mypy_django_plugin.main"]\n', "")
    (tmp_path / "pyproject.toml").write_text(settings)
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "appliance"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert (done.returncode, len(errors)) == ((1, 1) if has_types else (0, 0)), done.stdout + done.stderr
    assert all("using.py:3" in line for line in errors)
