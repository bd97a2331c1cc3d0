"""RocketMQ's 18 delay levels, as its brokers have them unless their messageDelayLevel says otherwise."""

from __future__ import annotations

import bisect

MINUTE_S, HOUR_S = 60, 3600
DELAYS_S = (1, 5, 10, 30, *range(MINUTE_S, 11 * MINUTE_S, MINUTE_S), 20 * MINUTE_S, 30 * MINUTE_S, HOUR_S, 2 * HOUR_S)


def level_of(delay_s: float) -> int:
    """The delay level of the shortest of RocketMQ's delays that is not shorter, the last one for longer waits."""
    return min(bisect.bisect_left(DELAYS_S, delay_s), len(DELAYS_S) - 1) + 1
