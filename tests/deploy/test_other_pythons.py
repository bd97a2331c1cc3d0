"""deploy/test-on: where another Python comes from, and what is said when it can't be had; .ci/run, which calls it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from deploy.binary.parts import read_lock
from deploy.lock_file import pinned
from tests.conftest import missing
from tests.waiting import WITHIN_S, wait_until

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "test-on"


def run_on(python: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(SCRIPT), python, "--short", "--version"]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_without_a_network_it_says_what_would_do(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        missing("go", "Debian: apt install golang-go")
    (version,) = read_lock()["tested"]
    done = run_on(
        version, GOPROXY="off", GOMODCACHE=str(tmp_path / "go"), XDG_CACHE_HOME=str(tmp_path), GOFLAGS="-modcacherw"
    )
    assert done.returncode == 1
    assert "GOPROXY=off" in done.stderr  # it was Go that could not
    assert "with Go and the network" in done.stderr and "deploy/test-on /path/to/python3" in done.stderr


@pytest.mark.slow
def test_one_that_is_not_pinned_is_told_from_those_that_are(tmp_path: Path) -> None:
    done = run_on("3.99", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1
    assert f"no Python 3.99 for tests, but {', '.join(read_lock()['tested'])}" in done.stderr


def run_beside(tmp_path: Path, python: str, *, has_pip: bool) -> subprocess.CompletedProcess[str]:
    """The script in a copy, whose .venv has pip or not. Nothing is fetched: uv and pip say what they were asked, and
    end with an error.
    """
    if not (tmp_path / "deploy").exists():
        shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    asked = 'echo "asked: ${0##*/} $*" >&2; exit 3'
    stubs = {
        "uv": f"case $1 in --version) exit 0 ;; esac; {asked}",
        ".venv/bin/python": f"case $* in *install*) {asked} ;; *pip*) exit {0 if has_pip else 1} ;; esac",
    }
    for name, script in stubs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    command = [str(tmp_path / "deploy" / "test-on"), python]
    variables = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_an_environment_of_uv_gets_the_pip_that_fills_the_other_one(tmp_path: Path) -> None:
    assert "binary.lock" in run_beside(tmp_path, sys.executable, has_pip=False).stderr
    assert "binary.lock" not in run_beside(tmp_path, sys.executable, has_pip=True).stderr


def test_an_environment_of_another_python_of_that_version_is_made_anew(tmp_path: Path) -> None:
    """Of an interpreter that was pinned before, for example: it starts, and is not the one that is asked for."""
    folder = tmp_path / "build" / "test-on" / f"{sys.version_info.major}.{sys.version_info.minor}"
    python, packages = folder / "bin" / "python", folder / "packages"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho /another\n")
    python.chmod(0o755)
    packages.touch()
    for is_another in (True, False):
        done = run_beside(tmp_path, sys.executable, has_pip=True)
        assert f"asked: python -m pip --python {python} install" in done.stderr
        assert packages.exists() is not is_another
        assert (folder / "pyvenv.cfg").exists()
        packages.touch()


def test_the_short_round_asks_for_packages_that_are_locked() -> None:
    found = re.search(r"^short=\(\n(.*?)^\)", SCRIPT.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    locked = {package.name for lock in ("appliance", "postgresql", "redis", "test") for package in pinned(lock)}
    assert set(found[1].split()) - locked == set()


def test_the_check_of_a_submission_runs_what_is_pinned() -> None:
    steps = (ROOT / ".ci" / "run").read_text()
    assert [version for version in read_lock()["tested"] if f"deploy/test-on {version} --short" not in steps] == []


STAND_IN = """#!/usr/bin/env bash
shopt -s extglob
step="${0##*/} $*"
case $step in $WAITS) trap 'echo "interrupted $step" >>"$SEEN"; exit 2' INT ;; esac
echo "$step" >>"$SEEN"
case $step in $FAILS) echo "no: $step" && exit 3 ;; esac
case $step in $WAITS) while :; do sleep 1; done ;; "git "*) echo 0000 ;; esac
"""


def begin_check(tmp_path: Path, *, fails: str = "", waits: str = "") -> subprocess.Popen[str]:
    """All of .ci/run, where each of its programs is one that tells `seen` its words; patterns say what else it does."""
    (tmp_path / ".ci").mkdir()
    check = Path(shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci"))
    needed = re.findall(r"^need (\S+) ", check.read_text(), re.MULTILINE)
    programs = [f"bin/{name}" for name in ("apt-cache", "apt-get", "git", "sudo", *needed)]
    for name in [*programs, "deploy/site", "deploy/build-deb", "deploy/test", "deploy/test-on", "deploy/audit"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(STAND_IN)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "left").mkdir()
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path / "left"),
        "SEEN": str(tmp_path / "seen"), "FAILS": fails, "WAITS": waits,
    }  # fmt: skip
    heard = ["env", "--default-signal"]  # nohup has what it runs hear no hangup
    return subprocess.Popen([*heard, check, "--long"], env=environment, stdout=subprocess.PIPE, text=True)


def told(seen: Path) -> set[str]:
    """The first two words of each step."""
    return {" ".join(line.split()[:2]) for line in seen.read_text().splitlines()}


@pytest.mark.parametrize(
    "fails", ["", "site*", "build-deb*", "test --d*", "test-on own", "test-on 3*", "test -n*", "audit*"]
)
def test_a_check_runs_every_step_and_fails_when_one_does(tmp_path: Path, fails: str) -> None:
    check = begin_check(tmp_path, fails=fails)
    said, _ = check.communicate(timeout=WITHIN_S)
    assert check.returncode == bool(fails) and said.count("no: ") == bool(fails)
    steps = {line.split()[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert steps >= {"site", "build-deb", "test", "test-on", "audit"} and list((tmp_path / "left").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_check_that_is_ended_ends_what_it_runs(tmp_path: Path, number: signal.Signals) -> None:
    seen = tmp_path / "seen"
    with begin_check(tmp_path, waits="@(test-on own|test -n*)") as check:
        wait_until(lambda: seen.exists() and {"test-on own", "test -n"} <= told(seen))
        started = psutil.Process(check.pid).children(recursive=True)
        check.send_signal(number)
        assert check.wait(WITHIN_S) != 0
    assert psutil.wait_procs(started, WITHIN_S)[1] == []
    assert told(seen) & {"interrupted test-on", "interrupted test", "test-on 3.13", "audit"} == {
        "interrupted test-on", "interrupted test",
    }  # fmt: skip
    assert list((tmp_path / "left").iterdir()) == []
