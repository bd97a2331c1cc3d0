"""The lock files: complete, hashed, naming no place, in agreement."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = {path.stem: path.read_text() for path in (ROOT / "deploy" / "locks").glob("*.lock")}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = PYPROJECT["dependency-groups"]  # the extras are for users of the SDK: the tests' and the reports' have them

EVERYWHERE = "; platform_python_implementation == 'CPython' \\"  # no other condition


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: str) -> list[str]:
    return [block for block in re.split(r"\n(?=[A-Za-z0-9])", LOCKS[lock]) if re.match("[A-Za-z0-9]", block)]


def test_every_group_has_a_lock() -> None:
    assert set(LOCKS) == set(GROUPS)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_package_with_hashes_and_names_no_place(lock: str) -> None:
    assert all(re.match(r"[A-Za-z0-9._-]+==\S+", block) and "--hash=sha256:" in block for block in blocks(lock))
    assert not re.search(r"https?:|index-url|file:|/(work|root|home|tmp)/", LOCKS[lock])


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_what_pyproject_asks_for_and_nothing_of_those_installed_before_it(lock: str) -> None:
    asked = [*(PYPROJECT["project"]["dependencies"] if lock == "appliance" else ()), *GROUPS[lock]]
    names = {normal(re.match(r"[\w.-]+", item)[0]) for item in asked}  # type: ignore[index]
    before = {name for other in installed_before(lock) for name in locked(other)}
    everywhere = {name for other in installed_before(lock) for name in locked(other, EVERYWHERE)}
    assert names <= locked(lock) | before
    assert not locked(lock) & everywhere


def installed_before(lock: str) -> list[str]:
    commands = f". deploy/environment.sh; locks_before {lock}"
    return subprocess.run(
        ["bash", "-ec", commands], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()


def locked(lock: str, marker: str = "") -> set[str]:
    return {normal(block.partition("==")[0]) for block in blocks(lock) if marker in block.splitlines()[0]}


def test_the_locks_agree_with_each_other() -> None:
    pins: dict[str, set[str]] = {}
    for lock in LOCKS:
        for block in blocks(lock):
            name, _, rest = block.partition("==")
            pins.setdefault(normal(name), set()).add(re.match(r"[^\s;\\]+", rest)[0])  # type: ignore[index]
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}
