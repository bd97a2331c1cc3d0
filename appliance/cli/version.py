"""Print the version of this checkout, and of its Python."""

from __future__ import annotations

import argparse
import platform

from appliance.process.version import VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(arguments: argparse.Namespace) -> int:
    print(f"GantryMQ {VERSION}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    return 0
