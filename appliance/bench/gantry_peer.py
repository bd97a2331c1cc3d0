"""GantryPeer: the worker processes of this checkout, or of another one."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import orjson

from appliance.bench.peer import Peer
from gantrymq.errors import ConfigError

CHECKOUT = Path(__file__).parents[2]
FAST_PATH_OFF = {"GANTRY_FAST_PATH": "off"}
_FACTS_TIMEOUT_S = 120.0
# Importing the broker's command shows that everything it needs is installed.
_FACTS = """
import json
import platform
import appliance.cli.roles.broker, uvloop
from gantrymq import __version__
try:
    from appliance.fast_path.loader import status
    fast_path = str(status())
except ImportError:
    fast_path = "none in this checkout"
python = platform.python_implementation() + " " + platform.python_version()
print(json.dumps([__version__, python, fast_path]))
"""


class GantryPeer(Peer):
    """`python -m appliance namesrv` and `broker`.

    python: the interpreter, with everything installed that the broker needs; checkout: whose code it runs.
    environment: further variables, such as FAST_PATH_OFF.
    """

    label = "gantry"

    def __init__(
        self,
        home: Path,
        *,
        label: str = "gantry",
        broker_properties: Mapping[str, str] | None = None,
        python: Path | None = None,
        checkout: Path = CHECKOUT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.label = label
        super().__init__(home, broker_properties=broker_properties)
        self._python = str(python or sys.executable)
        self._checkout = checkout
        self.environment = dict(environment or {})

    @property
    def version(self) -> str:
        """Version, interpreter, and whether the fast path is on."""
        seen = facts(self._python, self._checkout, tuple(self.environment.items()))
        where = "" if self._checkout == CHECKOUT else f" in {self._checkout}"
        return f"GantryMQ {seen.version}{where} ({seen.python}, fast path {seen.fast_path})"

    def _namesrv_command(self, properties: Path) -> list[str | Path]:
        return [self._python, "-P", "-m", "appliance", "namesrv", "-c", properties]

    def broker_command(self, properties: Path) -> list[str | Path]:
        return [self._python, "-P", "-m", "appliance", "broker", "-c", properties]

    def _env(self) -> dict[str, str]:
        return {**self.environment, "PYTHONPATH": str(self._checkout)}


class Facts(NamedTuple):
    """What an interpreter finds in a checkout."""

    version: str
    python: str  # make and version
    fast_path: str  # "on", or why it is not


@functools.cache
def facts(python: str, checkout: Path, environment: tuple[tuple[str, str], ...] = ()) -> Facts:
    """What that interpreter finds in that checkout.

    Raises ConfigError when it cannot run the broker of that checkout.
    """
    command = [python, "-P", "-c", _FACTS]
    variables = {**os.environ, **dict(environment), "PYTHONPATH": str(checkout)}
    try:
        done = subprocess.run(
            command, env=variables, cwd=checkout, capture_output=True, timeout=_FACTS_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ConfigError(f"{python} does not run: {exc}") from exc
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConfigError(
            f"{python} cannot run the broker in {checkout} ({reason}). It needs what deploy/locks/appliance.lock "
            "lists: make a virtual environment with it (PYTHON -m venv FOLDER; FOLDER/bin/pip install --require-hashes "
            "-r deploy/locks/appliance.lock) and name FOLDER/bin/python"
        )
    return Facts(*orjson.loads(done.stdout))
