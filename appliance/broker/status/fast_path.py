"""Whether a broker serves plain requests with the compiled fast path, and if not, why; how many it served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from appliance.fast_path import loader
from appliance.fast_path.loader import FastPathStatus
from appliance.remoting.fast_path import FastPath
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
        return FastPathStatus(False, "it is a slave, which accepts no messages; copying uses it")
    if store_config.consume_queue_ext_enable:
        return FastPathStatus(False, "enableConsumeQueueExt=true")
    return found


def fast_path_figures(fast_paths: Sequence[FastPath]) -> dict[str, str]:
    """What those of a broker's ports served since its start, and why they left requests to the Python path."""
    sends = pulls = 0
    declined: Counter[str] = Counter()
    for fast_path in fast_paths:
        more_sends, more_pulls, why = fast_path.figures()
        sends, pulls = sends + more_sends, pulls + more_pulls
        declined.update(why)
    return {
        "fastPathSends": str(sends),
        "fastPathPulls": str(pulls),
        "fastPathDeclined": ", ".join(f"{name} {count}" for name, count in declined.most_common()) or "none",
    }
