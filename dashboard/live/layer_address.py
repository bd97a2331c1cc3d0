"""Which channel layer Channels is given: the process's memory, or the Redis that `channel_layer_url` names."""

from __future__ import annotations

import hashlib
import importlib.util
from typing import Any

from appliance.own_files import how_to_add
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import ConfigError

EXPIRY_S = 10  # a frame that was not fetched by then is old
CONNECT_S = 3
ANSWER_S = 8  # longer than the five seconds for which a socket's question waits at Redis


def channel_layer(config: ApplianceConfig, secret_key: str) -> dict[str, Any]:
    """Channels' setting for one layer. Raises ConfigError, which shows no password."""
    if not config.channel_layer_url:
        return {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    if importlib.util.find_spec("channels_redis") is None:
        raise ConfigError(f"channel_layer_url needs channels-redis: {how_to_add('redis')}")
    host = {"address": config.channel_layer_url, "socket_connect_timeout": CONNECT_S, "socket_timeout": ANSWER_S}
    return {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {
            "hosts": [host],
            "prefix": f"gantrymq.{hashlib.sha256(secret_key.encode()).hexdigest()[:12]}",  # apart from other appliances
            "expiry": EXPIRY_S,
        },
    }
