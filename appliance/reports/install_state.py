"""Is the report stack there? It may still be installing while everything else is already usable. Imports none of it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("pyspark", "pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class InstallState:
    """`state` is ready, installing, absent or failed; `step` (n of total): what is going on; `error`: what went
    wrong."""

    state: str
    step: str = ""
    done: int = 0
    total: int = 0
    error: str = ""

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"


def install_state(data: Path) -> InstallState:
    """What DATA/reports/install.json says; without that file, whether the packages can be found."""
    written: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError, ValueError):
        written = json.loads((data / "reports" / "install.json").read_bytes())
    state = str(written.get("state", ""))
    if state == "installing":
        return InstallState(
            state, str(written.get("step") or ""), int(written.get("done") or 0), int(written.get("total") or 0)
        )
    importlib.invalidate_caches()  # they may have been installed since this process started
    if all(importlib.util.find_spec(name) is not None for name in PACKAGES):
        return InstallState("ready")
    if state == "failed":
        return InstallState(state, step=str(written.get("step") or ""), error=str(written.get("error") or ""))
    return InstallState("absent")
