"""The folder of a broker that an appliance on this machine runs: found by its name and port, not by its settings."""

from __future__ import annotations

from pathlib import Path

from appliance.process.held_broker import hold_file
from appliance.settings.loader import broker_settings
from gantrymq.errors import ConfigError


def folder_of(brokers: Path, address: str) -> Path:
    """The folder of the broker that listens at this address. Raises ConfigError where none does."""
    port = address.rpartition(":")[2]
    for folder, settings in broker_settings(brokers):
        if settings.get("listenPort") == port:
            return folder
    raise ConfigError(
        f"no broker of {brokers.parent} listens at {address}: run the command where it runs, as the owner of its data "
        "folder, and name that folder with --data; or leave --stop out, and stop the broker by hand"
    )


def held_folders(brokers: Path, name: str) -> list[Path]:
    """Those of this broker name that are held."""
    return [
        folder
        for folder, its in broker_settings(brokers)
        if its.get("brokerName") == name and hold_file(folder).exists()
    ]
