"""Whether a broker serves plain requests with the compiled fast path, and if not, why."""

from __future__ import annotations

from appliance.fast_path import loader
from appliance.fast_path.loader import FastPathStatus
from appliance.settings.roles import BrokerConfig
from store.base.config import MessageStoreConfig


def fast_path_status(config: BrokerConfig, store_config: MessageStoreConfig) -> FastPathStatus:
    """For the broker's whole life: none of these settings changes while it runs.

    Raises ConfigError and StartError as `loader.load` does.
    """
    loader.load(enabled=config.fast_path_enable)
    found = loader.status(enabled=config.fast_path_enable)
    if not found.is_on:
        return found
    if config.is_slave:
        return FastPathStatus(False, "a slave takes no messages")
    if store_config.consume_queue_ext_enable:
        return FastPathStatus(False, "enableConsumeQueueExt=true")
    return found
