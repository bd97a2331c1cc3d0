"""Install the report stack (PySpark, Arrow, a Java) into this Python, package by package, from the lock file.

`gantry up` runs this in the background when a package is missing; the dashboard reads the progress from the state file.
Installed packages are skipped, so an interrupted installation continues where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.markers import Marker

from appliance.own_files import LOCKS
from appliance.reports.install_state import are_packages_there
from appliance.settings.appliance_config import ApplianceConfig

LOCK = LOCKS / "reports.lock"
STATE_FILE = "install.json"
ATTEMPTS = 3
PAUSE_S = 5.0
ERROR_LINES = 8
EXIT_STOPPED = 143  # as a shell says of SIGTERM


@dataclass
class InstallState:
    """The content of the state file; times are seconds since the epoch."""

    state: str = "absent"  # absent, installing, ready, failed
    step: str = ""
    done: int = 0
    total: int = 0
    started_at: float = 0.0
    updated_at: float = 0.0
    error: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder whose state file gets the progress")


def run(arguments: argparse.Namespace) -> int:
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(EXIT_STOPPED)
    )  # an exception also ends the installer that this process has started
    config = ApplianceConfig.load({"data": arguments.data})
    progress = Progress(config.reports_folder / STATE_FILE)
    wanted = missing_packages(LOCK)
    progress.begin(len(wanted))
    for requirement, block in wanted:
        progress.step(f"installing {requirement}")
        error = _install(block)
        if error is not None:
            progress.fail(f"{requirement} could not be installed: {error}")
            return 1
    progress.finish()
    return 0


def record_absence_or_readiness(config: ApplianceConfig) -> InstallState:
    """Write to the state file whether the stack is installed now; for the start of the appliance."""
    progress = Progress(config.reports_folder / STATE_FILE)
    if config.install_reports:
        is_there = not missing_packages(LOCK)
    else:  # its packages are the operator's: any version that can be found will do
        is_there = are_packages_there()
    progress.state.state = "ready" if is_there else "absent"
    progress.write()
    return progress.state


def read_state(path: Path) -> InstallState:
    """The last state written; "absent" when there is none."""
    try:
        return InstallState(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return InstallState()


def missing_packages(lock: Path) -> list[tuple[str, str]]:
    """(name==version, lock-file block with its hashes) of each package that this Python lacks in that version."""
    return [(requirement, block) for requirement, block in locked_requirements(lock) if not _is_installed(requirement)]


class Progress:
    """The state file and the log, kept in step."""

    def __init__(self, path: Path) -> None:
        self.state = InstallState()
        self._path = path

    def begin(self, total: int) -> None:
        self.state = InstallState(state="installing", total=total, started_at=time.time())
        self.write()

    def step(self, text: str) -> None:
        if self.state.step:
            self.state.done += 1
        self.state.step = text
        self.write()
        print(f"{self.state.done + 1} of {self.state.total}: {text}", flush=True)

    def fail(self, error: str) -> None:
        self.state.state, self.state.error = "failed", error
        self.write()
        print(error, file=sys.stderr, flush=True)

    def finish(self) -> None:
        self.state.state, self.state.step, self.state.done = "ready", "", self.state.total
        self.write()
        print("the report stack is ready", flush=True)

    def write(self) -> None:
        self.state.updated_at = time.time()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(json.dumps(asdict(self.state)) + "\n", encoding="utf-8")
        new.replace(self._path)


def locked_requirements(lock: Path) -> Iterator[tuple[str, str]]:
    """The blocks of a lock file that are for this Python: a requirement and its hashes, continued by backslashes."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8")):
        match = re.match(r"([A-Za-z0-9._-]+==[^\s;\\]+)(?:\s*;([^\\\n]*))?", block)
        if match and (match[2] is None or Marker(match[2].strip()).evaluate()):
            yield match[1], block


def _is_installed(requirement: str) -> bool:
    name, _, version = requirement.partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def _install(block: str) -> str | None:
    """Install one block, with retries for network errors. Returns the error's last lines, None after success."""
    with tempfile.TemporaryDirectory(prefix="gantry-install-") as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(block, encoding="utf-8")
        for attempt in range(1, ATTEMPTS + 1):
            result = subprocess.run(
                [*_installer(), "--require-hashes", "--no-deps", "-r", str(requirements)],
                capture_output=True,
                text=True,
                check=False,
            )
            print(result.stdout + result.stderr, flush=True)
            if result.returncode == 0:
                return None
            if attempt < ATTEMPTS:
                time.sleep(PAUSE_S * attempt)
    return " ".join((result.stderr or result.stdout).strip().splitlines()[-ERROR_LINES:])


def _installer() -> list[str]:
    """uv if it is on the path, else pip without its cache, which would keep 450 MB of Spark."""
    uv = shutil.which("uv")
    if uv and subprocess.run([uv, "--version"], capture_output=True, check=False).returncode == 0:
        return [uv, "pip", "install", "--python", sys.executable]
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    return [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--progress-bar", "off"]
