"""How one process starts another: the command line of `gantry`, and the variables with which its code is found."""

from __future__ import annotations

import os
import sys

from appliance.own_files import ROOT


def gantry_command(*arguments: str) -> tuple[str, ...]:
    """The command line of `gantry ARGUMENTS` in this Python; -P keeps the working folder out of its imports."""
    return (sys.executable, "-P", "-m", "appliance", *arguments)


def gantry_environment() -> dict[str, str]:
    """Variables with which the checkout's packages are found from any working folder."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(ROOT))]
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), *others]), "PYTHONUNBUFFERED": "1"}
