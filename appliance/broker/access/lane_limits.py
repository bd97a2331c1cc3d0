"""Capacity and longest wait of each of a broker's lanes: RocketMQ's defaults, and settings for sends and pulls."""

from __future__ import annotations

from appliance.remoting.lane import QUEUED_MESSAGES_BYTES_MAX, LaneLimits
from appliance.settings.roles import BrokerConfig

HEARTBEAT_WAIT_MS, TRANSACTION_WAIT_MS = 31_000, 3000
SHORT_POLLING_MS = 1000  # of a pull that found nothing, without long polling


def lane_limits(config: BrokerConfig) -> dict[str, LaneLimits]:
    """The limits by the names of the lanes, as the settings are now."""

    def limited(wait_ms: int) -> int | None:
        return wait_ms if config.fast_failure_enable else None

    return {
        "send": LaneLimits(config.send_capacity, limited(config.send_wait_ms), QUEUED_MESSAGES_BYTES_MAX),
        "pull": LaneLimits(config.pull_capacity, limited(config.pull_wait_ms)),
        "heartbeat": LaneLimits(50_000, limited(HEARTBEAT_WAIT_MS)),
        "transaction": LaneLimits(100_000, limited(TRANSACTION_WAIT_MS)),
        "consumer": LaneLimits(1_000_000),
        "client": LaneLimits(1_000_000),
        "reply": LaneLimits(10_000, None, QUEUED_MESSAGES_BYTES_MAX),
        "query": LaneLimits(20_000),
        "admin": LaneLimits(10_000),
    }
