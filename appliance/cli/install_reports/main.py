"""Install the report stack (PySpark, Arrow, a Java) into this Python, package by package, as the lock names it.

  gantry install-reports                 from the package index
  gantry install-reports --from FILE     from the file that deploy/build-reports made: no network is needed

`gantry up` runs this in the background when a package is missing; the dashboard reads the progress from the state file.
Each file must have a hash of the lock. Installed packages are skipped, so an interrupted installation continues where
it stopped.
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from appliance.cli.install_reports.installer import Failed, Installer
from appliance.cli.install_reports.locked import missing_packages
from appliance.cli.install_reports.packed import PackedReports
from appliance.cli.install_reports.progress import Progress
from appliance.own_files import LOCKS
from appliance.reports.install_state import STATE_FILE, InstallState, are_packages_there
from appliance.settings.appliance_config import ApplianceConfig

LOCK = LOCKS / "reports.lock"
EXIT_STOPPED = 143  # as a shell says of SIGTERM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder whose state file gets the progress")
    parser.add_argument(
        "--from", type=Path, dest="file", metavar="FILE", help="file with the packages, for a machine without a network"
    )


def run(arguments: argparse.Namespace) -> int:
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(EXIT_STOPPED)
    )  # an exception also ends the installer that this process has started
    config = ApplianceConfig.load({"data": arguments.data})
    progress = Progress(config.reports_folder / STATE_FILE)
    try:
        install(progress, arguments.file)
    except Failed as exc:
        progress.fail(str(exc))
        return 1
    progress.finish()
    return 0


def install(progress: Progress, file: Path | None) -> None:
    """Install what is missing. Raises Failed."""
    wanted = missing_packages(LOCK)
    with ExitStack() as stack:
        packed = stack.enter_context(PackedReports.open(file)) if file else None
        installer = stack.enter_context(Installer.made())
        progress.begin(len(wanted))
        for package in wanted:
            progress.step(f"installing {package.requirement}")
            installer.install(package, packed)


def record_absence_or_readiness(config: ApplianceConfig) -> InstallState:
    """Write to the state file whether the stack is installed now; for the start of the appliance."""
    progress = Progress(config.reports_folder / STATE_FILE)
    is_there = are_packages_there()  # where they are the operator's, any version that can be found will do
    if config.install_reports:
        is_there = not missing_packages(LOCK)
    progress.state.state = "ready" if is_there else "absent"
    progress.write()
    return progress.state
