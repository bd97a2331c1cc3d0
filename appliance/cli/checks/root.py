"""Whether the appliance would run as root, or does. Needs no package: deploy/up asks before it installs any."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from appliance.cli.checks.finding import Finding, warning
from appliance.process.data_folder import guardian_pid
from appliance.settings.appliance_config import ApplianceConfig

ROOT_REFUSED = (
    "GantryMQ does not need root, and as root a flaw in it would endanger the whole machine: start it as another "
    "account, name one with --user NAME, or use --allow-root if there is no other account."
)
RUNS_AS_ROOT = (
    "The appliance runs as root, and a flaw in it would endanger the whole machine: start it as another account, or "
    "name one with --user NAME."
)


def check_user(config: ApplianceConfig) -> Iterator[Finding]:
    if is_root_refused(config):
        yield Finding(ROOT_REFUSED)


def check_owner(config: ApplianceConfig) -> Iterator[Finding]:
    """Of the appliance that runs; who asks may be another account."""
    pid = guardian_pid(config.data)
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        if pid and Path(f"/proc/{pid}").stat().st_uid == 0 and not config.allow_root:
            yield warning(RUNS_AS_ROOT)


def is_root_refused(config: ApplianceConfig) -> bool:
    """Whether this process is root, was not allowed to be, and becomes no other account."""
    return os.geteuid() == 0 and not config.allow_root and not config.user
