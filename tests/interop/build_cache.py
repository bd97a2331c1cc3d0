"""What the tests build for themselves, in the user's cache folder: made once, and again when its sources change."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from appliance.bench.apache_peer import QUICK_START_FLAGS
from appliance.bench.maven import ToolError, cache_folder
from tests.conftest import missing, require_tool

BUILD_TIMEOUT_S = 1800.0  # of one step; on a starved machine a download and a compiler take ten times as long
QUICK_COMPILER = tuple(f"-J{flag}" for flag in QUICK_START_FLAGS)  # of javac: it lives for seconds


def built(name: str, build: Callable[[Path], None]) -> Path:
    """The cache folder `name`, filled by `build` in a folder beside it that is then renamed.

    One process builds it, and others that need it at the same time wait: they have the same cores.
    """
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                work = Path(scratch) / "work"
                work.mkdir()
                build(work)
                work.rename(folder)
    return folder


def tool(
    command: Sequence[str | Path], *, cwd: Path | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Run a build step; environment: what is set beside our own. Raises ToolError with what it said last."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    if done.returncode != 0:
        raise ToolError(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")


def digest(files: Sequence[Path], others: str = "") -> str:
    """Of the files' names and contents, and of what else makes a difference."""
    content = b"".join(file.name.encode() + file.read_bytes() for file in files) + others.encode()
    return hashlib.sha256(content).hexdigest()[:12]


def npm_folder(name: str, files: Sequence[Path]) -> Path:
    """A folder with the files and what package-lock.json, one of them, names; installed once for each state of it."""

    def build(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        tool(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder])

    return built(f"{name}-{digest(files)}", build)


def required_npm_folder(name: str, sources: Path, what: str) -> Path:
    """The same for the package that the lock in `sources` pins; without npm the test skips aloud, and fails in CI."""
    for program in ("node", "npm"):
        require_tool(program, f"it fetches {what}")
    try:
        return npm_folder(name, sorted(sources.glob("*.json")))
    except ToolError as exc:
        missing(what, str(exc))
        raise
