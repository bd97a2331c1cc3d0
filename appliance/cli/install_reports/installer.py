"""Installs one package of the lock: by uv or pip into this Python, or into a folder beside what is not to change."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.install_reports.locked import Locked
from appliance.reports.install_state import packages_folder
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from appliance.cli.install_reports.packed import PackedReports

ATTEMPTS = 3
PAUSE_S = 5.0
ERROR_LINES = 8
WORK = ".work-"  # the start of a folder's name
UMASK = 0o022  # packages are no secrets, and the service's account reads what root installs


class Failed(GantryError):
    """The installation can't be done; the text says why, and what to do."""


class Installer:
    """Where packages go."""

    def __init__(self, target: Path | None) -> None:
        self._target = target  # None: this Python's own

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Installer]:
        """Raises Failed when the folder can't be written, or another process installs there."""
        target = packages_folder()
        if target is None:
            yield cls(None)
            return
        try:
            _make_readable(target)
            lock = (target / ".lock").open("w")
        except OSError as exc:
            raise Failed(
                f"The folder {target} can't be written ({exc.strerror}): run this as root. With the single file run "
                "it as the account that unpacked it, or let GANTRY_UNPACK name a folder of yours, now and at each start"
            ) from exc
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise Failed("Another process is installing the report stack: wait until it has ended") from exc
            for left in target.glob(WORK + "*"):  # by one that was killed
                shutil.rmtree(left)
            yield cls(target)

    def install(self, package: Locked, packed: PackedReports | None) -> None:
        """Raises Failed after some attempts; from a file there is one."""
        with tempfile.TemporaryDirectory(prefix=WORK, dir=self._target) as name:
            folder = Path(name)
            requirements, made = folder / "requirements.txt", folder / "made"
            requirements.write_text(package.block, encoding="utf-8")
            options = ["--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(requirements)]
            if packed is not None:
                packed.copy(package, folder)
                options += ["--no-index", "--find-links", name]
            if self._target is not None:
                options += ["--target", str(made)]
            error = _run([*_command(), *options], folder, attempts=1 if packed else ATTEMPTS)
            if error is not None:
                raise Failed(f"{package.requirement} could not be installed: {error}")
            if self._target is not None:
                _move(package, made, self._target)


def _make_readable(folder: Path) -> None:
    before = os.umask(UMASK)
    try:
        folder.mkdir(exist_ok=True, parents=True)
    finally:
        os.umask(before)


def _run(command: list[str], work: Path, *, attempts: int) -> str | None:
    """The error's last lines; None after success. Networks have errors that pass."""
    for attempt in range(1, attempts + 1):
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"TMPDIR": str(work)},
            umask=UMASK,
        )
        print(result.stdout + result.stderr, flush=True)
        if result.returncode == 0:
            return None
        if attempt < attempts:
            time.sleep(PAUSE_S * attempt)
    return " ".join((result.stderr or result.stdout).strip().splitlines()[-ERROR_LINES:])


def _command() -> list[str]:
    """uv if it is on the path, else pip without its cache, which would keep 450 MB of Spark. Raises Failed without."""
    uv = shutil.which("uv")
    if uv and subprocess.run([uv, "--version"], capture_output=True, check=False).returncode == 0:
        return [uv, "pip", "install", "--python", sys.executable]
    if importlib.util.find_spec("pip") is None:
        raise Failed(f"{sys.executable} has no pip: install it (on Debian: apt install python3-pip), or uv")
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    os.environ["PIP_ROOT_USER_ACTION"] = "ignore"  # the service's packages are root's, in a folder of their own
    return [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--progress-bar", "off"]


def _move(package: Locked, made: Path, to: Path) -> None:
    """Put what a package brings in its place, its metadata last: what is killed leaves none that looks installed."""
    name = package.name.replace("-", "_")
    for old in [*to.glob(f"{name}-*.dist-info"), *to.glob(f"{name}-*.egg-info")]:
        shutil.rmtree(old)
    entries = sorted(made.iterdir(), key=lambda entry: entry.suffix in (".dist-info", ".egg-info"))
    for entry in entries:
        place = to / entry.name
        if entry.name == "bin":  # commands, which nothing here calls
            continue
        if place.is_dir():
            shutil.rmtree(place)
        entry.replace(place)
