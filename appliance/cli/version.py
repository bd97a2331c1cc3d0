"""Print the version of this checkout and of its Python, and whether brokers have the compiled fast path."""

from __future__ import annotations

import argparse
import platform

from appliance.fast_path.loader import status
from appliance.process.version import VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(arguments: argparse.Namespace) -> int:
    print(f"GantryMQ {VERSION}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    found = status()
    print(f"fast path: {found}" + (f" ({found.why})" if found.is_on else ""))
    return 0
