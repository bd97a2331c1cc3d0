"""Capacity and longest wait of each of a broker's lanes, as RocketMQ's thread pools have them."""

from __future__ import annotations

from appliance.remoting.lane import QUEUED_MESSAGES_BYTES_MAX, LaneLimits
from appliance.settings.roles import BrokerConfig


def lane_limits(config: BrokerConfig) -> dict[str, LaneLimits]:
    """The limits by the names of the lanes, as the settings are now."""

    def limited(wait_ms: int) -> int | None:
        return wait_ms if config.fast_failure_enable else None

    return {
        "send": LaneLimits(config.send_capacity, limited(config.send_wait_ms), QUEUED_MESSAGES_BYTES_MAX),
        "pull": LaneLimits(config.pull_capacity, limited(config.pull_wait_ms)),
        "heartbeat": LaneLimits(config.heartbeat_capacity, limited(config.heartbeat_wait_ms)),
        "transaction": LaneLimits(config.transaction_capacity, limited(config.transaction_wait_ms)),
        "consumer": LaneLimits(config.consumer_capacity),
        "client": LaneLimits(config.client_capacity),
        "reply": LaneLimits(config.reply_capacity, None, QUEUED_MESSAGES_BYTES_MAX),
        "query": LaneLimits(config.query_capacity),
        "admin": LaneLimits(config.admin_capacity),
    }
