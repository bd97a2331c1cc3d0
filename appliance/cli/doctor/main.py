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
from collections.abc import Iterator
from pathlib import Path

from appliance.bench.fsync_rate import fsyncs_per_s
from appliance.cli import preflight
from appliance.cli.checks.finding import Finding, good, warning
from appliance.cli.checks.machine import check_compiled, check_cores
from appliance.cli.doctor.running import look
from appliance.reports.errors import JavaNotFound
from appliance.reports.java import find_java
from appliance.settings.appliance_config import ApplianceConfig, describe

DISK_S = 1.0
SLOW_FSYNCS_PER_S = 50  # below it SYNC_FLUSH and clean stops are slow


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
    """The list of `gantry up`, what takes longer, and what only a running appliance has."""
    runs = bool(list(preflight.check_lock(config)))
    before = preflight.check_machine(config) if runs else preflight.check_all(config)
    found = [*before, *check_cores(), *check_compiled(), *check_java(config), *check_disk(config.data)]
    if runs or config.attach:
        found += asyncio.run(look(config))
    else:
        found.append(good(f"No appliance runs on {config.data}."))
    return sorted(found, key=lambda one: (not one.is_fatal, one.is_good))


def check_java(config: ApplianceConfig) -> Iterator[Finding]:
    try:
        java = find_java(config.reports_folder / "jre", setting=config.java_home or None)
    except JavaNotFound as exc:
        yield warning(f"Reports have no Java yet: {exc}.")
    else:
        yield good(f"Reports run with the Java in {java.home}.")


def check_disk(data: Path) -> Iterator[Finding]:
    """How often a second the disk says that it has kept a write."""
    if not data.is_dir():
        return
    try:
        rate = fsyncs_per_s(data, DISK_S)
    except OSError as exc:
        yield warning(f"The speed of the disk at {data} could not be measured: {exc.strerror}.")
        return
    if rate < SLOW_FSYNCS_PER_S:
        yield warning(
            f"The disk at {data} keeps {rate:.0f} writes a second: with SYNC_FLUSH a producer waits for each. Use a "
            "faster disk, or ASYNC_FLUSH."
        )
    else:
        yield good(f"The disk at {data} keeps {rate:.0f} writes a second.")
