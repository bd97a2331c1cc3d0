"""Which Python a new .venv is made with: the one that was built best, of those that can make one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.rate_python import CAN_MAKE_VENV, HAS_HEADERS, rate, rate_build

ROOT = Path(__file__).resolve().parents[2]
# What sysconfig tells of some builds.
PLAIN = {
    "CONFIG_ARGS": "'--prefix=/opt/python'", "PY_CFLAGS": "-Wsign-compare -DNDEBUG -g -fwrapv -O3 -Wall",
    "PGO_PROF_GEN_FLAG": "-fprofile-generate", "PGO_PROF_USE_FLAG": "-fprofile-use -fprofile-correction", "Py_DEBUG": 0,
}  # fmt: skip
DEBIAN = PLAIN | {
    "CONFIG_ARGS": "'--enable-shared' '--without-ensurepip' 'CFLAGS=-g'",
    "PY_CFLAGS": "-DNDEBUG -g -fwrapv -O2 -Wall -g",
    "PGO_PROF_USE_FLAG": "",
}
PROFILES = PLAIN | {"CONFIG_ARGS": "'--enable-optimizations'"}
CONTAINER_IMAGE = PLAIN | {"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}
LTO = PLAIN | {"PY_CORE_LDFLAGS": "-flto -g"}
NOT_OPTIMISED = PLAIN | {"PY_CFLAGS": "-DNDEBUG -O3 -Wall -O0"}
DEBUG = PLAIN | {"Py_DEBUG": 1}


def test_a_build_with_profiles_is_rated_higher() -> None:
    rated = [rate_build(build)[0] for build in (DEBUG, PLAIN, LTO, DEBIAN, CONTAINER_IMAGE)]
    assert rated == sorted(set(rated))
    assert rate_build(NOT_OPTIMISED) == rate_build(DEBUG) == (0, "built for debugging")
    assert rate_build(PROFILES) == rate_build(DEBIAN)
    assert rate_build(CONTAINER_IMAGE)[1] == "built with profiles and link-time optimisation"
    assert rate_build(PLAIN | {"CONFIG_ARGS": "'--with-lto=no'"}) == rate_build(PLAIN)
    assert rate_build({})[0] == 1  # a build that tells nothing


def test_one_that_can_not_make_an_environment_comes_last() -> None:
    """Debian's without python3-venv; then those without headers, because they can't compile the fast path."""
    best_build = rate(CONTAINER_IMAGE, has_headers=True, can_make_venv=False)[0]
    assert best_build < rate(DEBUG, has_headers=False, can_make_venv=True)[0]
    assert rate(CONTAINER_IMAGE, False, True)[0] < rate(DEBUG, True, True)[0]
    assert rate(PLAIN, False, True)[1].endswith(", without its headers")


def test_this_python_rates_itself() -> None:
    command = [sys.executable, str(ROOT / "deploy" / "rate_python.py"), "uv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    score, real, path, words = done.stdout.rstrip("\n").split("\t")
    assert CAN_MAKE_VENV <= int(score) <= CAN_MAKE_VENV + HAS_HEADERS + 4
    assert Path(real) == Path(sys.executable).resolve()
    assert path == sys.executable
    assert words.startswith(f"Python {sys.version.split()[0]}, built ")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of programs without any Python."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "dirname", "sh"):
        (programs / name).symlink_to(shutil.which(name) or name)
    return programs


def put_python(folder: Path, name: str, score: int, real: str, words: str) -> Path:
    """A program that says of itself what a Python would."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '%s\\t%s\\t%s\\t%s\\n' {score} '{real}' '{path}' '{words}'\n")
    path.chmod(0o755)
    return path


def chosen(machine: Path, further: Path | None = None, **variables: str) -> tuple[str, str]:
    """What deploy/environment.sh chooses, and its words."""
    folders = [str(machine), *([str(further)] if further else [])]
    environment: dict[str, Any] = {"PATH": os.pathsep.join(folders), **variables}
    command = [str(machine / "bash"), "-c", f". '{ROOT}/deploy/environment.sh'; find_python"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    path, words = done.stdout.rstrip("\n").split("\t")
    return path, words


def test_the_best_one_is_chosen_wherever_it_stands(machine: Path, tmp_path: Path) -> None:
    put_python(machine, "python3", 111, "/opt/a", "Python 3.11.7, built without profiles")
    (tmp_path / "second place").mkdir()
    best = put_python(tmp_path / "second place", "python3", 113, "/usr/b", "Python 3.11.2, built with profiles")
    put_python(machine, "python3.12", 111, "/opt/c", "Python 3.12.1, built without profiles")
    path, words = chosen(machine, best.parent)
    assert path == str(best)
    assert words == "Python 3.11.2, built with profiles, the best of 3 found (PYTHON=… takes another)"


def test_among_equals_the_first_one_is_chosen_and_no_one_counts_twice(machine: Path) -> None:
    first = put_python(machine, "python3", 111, "/opt/a", "Python 3.11.7, built so")
    put_python(machine, "python3.11", 111, "/opt/a", "Python 3.11.7, built so")
    assert chosen(machine) == (str(first), "Python 3.11.7, built so")
    put_python(machine, "python3.12", 111, "/opt/c", "Python 3.12.1, built so")
    assert chosen(machine)[0] == str(first)


def test_one_that_is_named_is_taken(machine: Path, tmp_path: Path) -> None:
    put_python(machine, "python3", 114, "/opt/a", "Python 3.11.7, built best")
    named = put_python(tmp_path, "my python", 1, "/opt/mine", "Python 3.13.0, built so")
    assert chosen(machine, PYTHON=str(named)) == (str(named), "Python 3.13.0, built so")


def test_one_that_does_not_answer_is_passed_by(machine: Path) -> None:
    for name, script in (("python3", "exit 1"), ("python3.14", "echo; exit 0")):
        (machine / name).write_text(f"#!/bin/sh\n{script}\n")
        (machine / name).chmod(0o755)
    fitting = put_python(machine, "python3.11", 1, "/opt/a", "Python 3.11.7, built so")
    assert chosen(machine) == (str(fitting), "Python 3.11.7, built so")
