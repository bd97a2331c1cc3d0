"""A dashboard that is attached to another cluster: one of RocketMQ 4.9, or of GantryMQ. Which settings go with that.

Then `gantry up` starts neither name server nor brokers. What needs their folders on this machine (reports, the brokers'
own audit trails) does not exist there, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from appliance.settings.appliance_config import ApplianceConfig

SEPARATOR = ";"


def check_attached(config: ApplianceConfig) -> None:
    """Refuse what contradicts `attach`. Raises ConfigError."""
    if not config.attach:
        for name in ("attach_account", "attach_trust"):
            if getattr(config, name):
                raise ConfigError(f"{name} is about another cluster: name its name servers with attach")
        return
    from gantrymq.remoting.client import (
        split_address,  # here, because deploy/up reads settings before packages are there
    )

    for address in config.attach.split(SEPARATOR):
        try:
            split_address(address.strip())
        except ConnectError as exc:
            raise ConfigError(f"attach={config.attach}: name its name servers as host:port;host:port") from exc
    own = {
        "accounts": config.accounts,
        "slaves": config.slaves,
        "brokers": config.brokers != 1,
        "replicas": config.replicas != 1,
    }
    if given := [name for name, is_given in own.items() if is_given]:
        raise ConfigError(f"attach starts no brokers, so leave out {' and '.join(given)}")
