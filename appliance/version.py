"""The version, read from pyproject.toml: it is written in one place."""

from __future__ import annotations

import tomllib

from appliance.appliance_config import ROOT


def _read() -> str:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


VERSION = _read()
