"""Whether the report stack is installed; that may still be going on. This module imports no part of the stack."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = "gantry-binary.json"  # what the tree of the single file contains; only such a tree has it
PACKAGES = ("pyspark", "pyarrow", "numpy", "deltalake")


@dataclass(frozen=True, slots=True)
class InstallState:
    """`state`: ready, installing, absent or failed; `step`, `done` of `total`: the progress; `error`: if it failed."""

    state: str
    step: str = ""
    done: int = 0
    total: int = 0
    error: str = ""

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"


def install_state(data: Path) -> InstallState:
    """The state in DATA/reports/install.json; without that file, whether the packages can be found."""
    written: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        written = json.loads((data / "reports" / "install.json").read_bytes())
    state = str(written.get("state", ""))
    if state == "installing":
        return InstallState(
            state, str(written.get("step") or ""), int(written.get("done") or 0), int(written.get("total") or 0)
        )
    if are_packages_there():
        return InstallState("ready")
    if state == "failed":
        return InstallState(state, step=str(written.get("step") or ""), error=str(written.get("error") or ""))
    return InstallState("absent")


def packages_folder() -> Path | None:
    """Where the packages go in the single file, whose tree stays as it was unpacked; None: into this Python.

    The tree's gantrymq.pth names it, and versions with the same Python share it.
    """
    if not (Path(sys.prefix) / FACTS).is_file():
        return None
    return Path(sys.prefix).parent / "reports-{}.{}".format(*sys.version_info)


def are_packages_there() -> bool:
    """Whether this Python finds the packages, of whatever version."""
    folder = packages_folder()
    if folder is not None and folder.is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))  # made since this process started
    importlib.invalidate_caches()
    return all(importlib.util.find_spec(name) is not None for name in PACKAGES)
