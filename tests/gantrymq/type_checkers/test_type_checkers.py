"""What type checkers make of the SDK: an application's program, and every public name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from appliance.bench.maven import cache_folder
from tests.interop.build_cache import required_npm_folder
from tests.source_files import ROOT

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PROGRAM = HERE / "program.py"
REJECTED = {number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if "# rejected" in line}


@pytest.fixture(scope="module")
def pyright() -> Path:
    """The npm package's program: the one on PyPI fetches a Node.js."""
    folder = required_npm_folder("pyright", HERE, "the type checker pyright")
    return folder / "node_modules" / "pyright" / "index.js"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the SDK as a wheel has it, and all that its extras need."""
    home = tmp_path_factory.mktemp("types") / "installed"
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    shutil.copytree(ROOT / "gantrymq", packages / "gantrymq", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "extras.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_mypy_takes_what_is_right_and_rejects_what_is_wrong() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent"]
    command += ["--cache-dir", str(cache_folder() / "mypy-of-programs"), str(PROGRAM)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert set(map(int, re.findall(r"program\.py:(\d+): error", done.stdout))) == REJECTED, done.stdout + done.stderr


def test_pyright_takes_what_is_right_and_rejects_what_is_wrong(pyright: Path, installed: Path) -> None:
    found = _checked(pyright, installed, "--pythonpath", str(installed / "python"), str(PROGRAM))
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    assert {each["range"]["start"]["line"] + 1 for each in errors} == REJECTED, errors


def test_every_public_name_has_a_type_that_checkers_know(pyright: Path, installed: Path) -> None:
    found = _checked(pyright, installed, "--verifytypes", "gantrymq", "--ignoreexternal")["typeCompleteness"]
    unknown = [
        {"name": each["name"], "why": [note["message"] for note in each["diagnostics"]]}
        for each in found["symbols"]
        if each["isExported"] and not each["isTypeKnown"]
    ]
    assert unknown == []
    assert found["completenessScore"] == 1.0
    assert found["exportedSymbolCounts"]["withKnownType"] > 3000


def _checked(pyright: Path, installed: Path, *arguments: str) -> dict[str, object]:
    environment = os.environ | {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}  # whose python it asks
    done = subprocess.run(
        ["node", pyright, "--outputjson", *arguments],
        cwd=installed.parent,  # no settings of ours, and no checkout to find the package in
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
