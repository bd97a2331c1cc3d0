"""What the checks of `gantry doctor` find of the machine that the dashboard runs on, in the language of the page."""

from __future__ import annotations

from django.utils.translation import gettext

from appliance.cli.checks.every import At, look
from appliance.settings.appliance_config import ApplianceConfig
from dashboard.status.check import Check, Level


def machine_checks(config: ApplianceConfig) -> list[Check]:
    """What needs attention first. It reads small files of the system."""
    found = [
        Check(Level.GOOD if one.is_good else Level.WARN, gettext(one.text) % one.facts, "")
        for one in look(config, At.PAGE)
    ]
    return sorted(found, key=lambda check: -check.level)
