"""The set-up commands on a fresh clone, as on a machine that has Python, git and a package registry."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.conftest import missing, time_limit

ROOT = Path(__file__).resolve().parents[2]
START_CPU_S = 20.0  # of a start that installs nothing: five times what it takes, a tenth of what installing does


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last commit of this checkout, and nothing else."""
    if not (ROOT / ".git").exists():
        missing("the git repository", "a fresh clone is what these tests start from")
    folder = tmp_path_factory.mktemp("clone") / "a folder with spaces"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    return folder


def test_one_command_installs_and_serves_and_the_next_start_is_quick(clone: Path, tmp_path: Path) -> None:
    command = (str(clone / "deploy" / "up"),)
    quick = installs_quickly(tmp_path)
    with RunningAppliance(tmp_path / "data", command=command, environment=quick) as gantry:
        assert gantry.started_s < time_limit(300), "README: five minutes"
        assert "Compiled in " in gantry.output or "without its compiled fast path" in gantry.output
        with SyncProducer(gantry.namesrv) as producer:
            assert producer.send(Message("demo", b"hello")).status.name == "SEND_OK"
        assert gantry.stop() == 0
    with RunningAppliance(tmp_path / "data", command=command, environment=quick) as gantry:
        assert "Installing" not in gantry.output
        assert "Compil" not in gantry.output
        assert cpu_seconds(gantry.process.pid) < START_CPU_S
        assert gantry.stop() == 0
    assert not (clone / "data").exists()
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert changes.stdout == ""


def installs_quickly(folder: Path) -> dict[str, str]:
    """Variables for an install that compiles no faster than it has to: Python when it is imported, C without -O."""
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("cc") or "gcc"} "$@" -O0\n')
    compiler.chmod(0o755)
    return {"PIP_NO_COMPILE": "1", "PYTHONDONTWRITEBYTECODE": "", "CC": str(compiler)}


def cpu_seconds(pid: int) -> float:
    """What a process and all that it started have used: says more than a clock where others use the machine, too."""
    root = psutil.Process(pid)
    return sum(sum(process.cpu_times()[:4]) for process in (root, *root.children(recursive=True)))


def test_a_machine_without_a_fitting_python_is_told_what_to_do(clone: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "dirname", "rm", "cat"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "python3").write_text("#!/bin/sh\nexit 1\n")  # any Python before 3.11
    (programs / "python3").chmod(0o755)
    fresh = tmp_path / "clone"
    shutil.copytree(clone / "deploy", fresh / "deploy")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"} | {"PATH": str(programs)}
    command = [str(programs / "bash"), str(fresh / "deploy" / "up")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "Python 3.11 or newer was not found: install it" in result.stderr
    assert not (fresh / ".venv").exists()


@pytest.mark.parametrize(
    "script", ["deploy/up", "deploy/test", "deploy/lock", "deploy/site", "deploy/environment.sh", ".ci/run"]
)
def test_a_script_is_bash_that_parses(script: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / script)], check=True)
    if script != "deploy/environment.sh":
        assert os.access(ROOT / script, os.X_OK)


def test_what_can_not_compile_the_fast_path_says_so_and_goes_on(clone: Path, tmp_path: Path) -> None:
    """Neither Cython nor a compiler is to be had; deploy/up stops at no error of these."""
    fresh = tmp_path / "clone"
    shutil.copytree(clone / "deploy", fresh / "deploy")
    python = fresh / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "asked: $*" >&2\nexit 3\n')
    python.chmod(0o755)
    commands = (
        f"set -euo pipefail; . '{fresh}/deploy/environment.sh'; have_uv() {{ false; }}; compile_fast_path; echo on"
    )
    result = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=True)
    assert result.stdout == "on\n"
    assert "Cython could not be installed" in result.stderr
    assert "asked: -P -m appliance.fast_path.build" in result.stderr
    assert not (fresh / ".venv" / "installed-fast-path.lock").exists()
    environment = {**os.environ, "GANTRY_FAST_PATH": "off"}
    result = subprocess.run(["bash", "-c", commands], env=environment, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("on\n", "")
