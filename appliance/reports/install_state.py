"""Whether the report stack is installed; that may still be going on. This module imports no part of the stack."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from appliance.own_files import FACTS, REPORTS_FOLDER

STATE_FILE = "install.json"
PACKAGES = ("pyspark", "pyarrow", "numpy", "deltalake")


@dataclass
class InstallState:
    """The content of DATA/reports/install.json, which `gantry up` and the dashboard read; times: epoch seconds."""

    state: str = "absent"  # absent, installing, ready, failed
    step: str = ""
    done: int = 0  # of `total`
    total: int = 0
    started_at: float = 0.0
    updated_at: float = 0.0
    error: str | None = None

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"


def read_state(path: Path) -> InstallState:
    """The last state written; "absent" when there is none."""
    try:
        return InstallState(**json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return InstallState()


def install_state(data: Path) -> InstallState:
    """The state written below `data`; when nothing is being installed, whether the packages can be found."""
    written = read_state(data / "reports" / STATE_FILE)
    if written.state == "installing":
        return written
    if are_packages_there():
        return InstallState("ready")
    return written if written.state == "failed" else InstallState()


def packages_folder() -> Path | None:
    """Where the packages go in the single file, whose tree stays as it was unpacked, and in the Debian package, whose
    files are dpkg's; None: into this Python.

    The tree's gantrymq.pth names it, or the package's command, and versions with the same Python share it.
    """
    if REPORTS_FOLDER.is_file():
        return Path(REPORTS_FOLDER.read_text(encoding="utf-8").strip())
    if not (Path(sys.prefix) / FACTS).is_file():
        return None
    return Path(sys.prefix).parent / "reports-{}.{}".format(*sys.version_info)


def are_packages_there() -> bool:
    """Whether this Python finds the packages, of whatever version."""
    folder = packages_folder()
    if folder is not None and os.access(folder, os.R_OK | os.X_OK) and str(folder) not in sys.path:
        sys.path.append(str(folder))  # made since this process started
    importlib.invalidate_caches()
    return all(importlib.util.find_spec(name) is not None for name in PACKAGES)
