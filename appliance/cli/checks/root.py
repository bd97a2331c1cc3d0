"""Whether the appliance would run as root. Needs no package: deploy/up asks before it installs any."""

from __future__ import annotations

import os
from collections.abc import Iterator

from appliance.cli.checks.finding import Finding
from appliance.settings.appliance_config import ApplianceConfig

ROOT_REFUSED = (
    "GantryMQ does not need root, and as root a flaw in it would endanger the whole machine: start it as another "
    "account, name one with --user NAME, or use --allow-root if there is no other account."
)


def check_user(config: ApplianceConfig) -> Iterator[Finding]:
    if is_root_refused(config):
        yield Finding(ROOT_REFUSED)


def is_root_refused(config: ApplianceConfig) -> bool:
    """Whether this process is root and was not allowed to be. To be asked after `drop_privileges`."""
    return os.geteuid() == 0 and not config.allow_root
