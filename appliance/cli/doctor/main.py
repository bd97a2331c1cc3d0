"""Look at this machine and at the appliance that runs here, and say what is wrong and what to do.

  gantry doctor                     with the settings that `gantry up` would take here
  gantry doctor --data DIR --json

✓ is well, ! works but needs attention, ✗ does not work. Exit code 1 when there is a ✗. `gantry up` looks at the same
list before it starts. The speed of the disk is measured for a second: meanwhile others wait for it somewhat longer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from appliance.cli.checks import running
from appliance.cli.checks.every import At, before_start, look
from appliance.cli.checks.finding import Finding, good
from appliance.cli.checks.folder import check_lock
from appliance.settings.appliance_config import ApplianceConfig, describe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
    parser.add_argument("--json", action="store_true", help="for programs: one object a finding")


def run(arguments: argparse.Namespace) -> int:
    config = ApplianceConfig.load({"data": arguments.data}, config_file=arguments.config)
    found = examine(config)
    if arguments.json:
        levels = {"✓": "good", "!": "attention", "✗": "problem"}
        print(json.dumps([{"level": levels[one.mark], "text": one.sentence} for one in found], indent=1))
    else:
        for one in found:
            print(f"{one.mark} {one.sentence}")
    return int(any(one.is_fatal for one in found))


def examine(config: ApplianceConfig) -> list[Finding]:
    """What `gantry up` looks at, what takes longer, and what only a running appliance has."""
    runs = bool(list(check_lock(config)))
    found = look(config, At.RUNNING | At.DOCTOR) if runs else before_start(config, At.START | At.DOCTOR)
    if runs or config.attach:
        found += asyncio.run(running.look(config))
    else:
        found.append(good(f"No appliance runs on {config.data}."))
    return sorted(found, key=lambda one: (not one.is_fatal, one.is_good))
