"""RocketMQ's delay levels."""

from __future__ import annotations

from gantrymq.message.delay_levels import DELAYS_S, level_of


def test_the_next_longer_delay_of_the_broker_is_taken() -> None:
    assert len(DELAYS_S) == 18
    assert [level_of(delay_s) for delay_s in (0, 1, 1.1, 5, 60, 61, 600, 601, 7200, 9999)] == [
        1, 1, 2, 2, 5, 6, 14, 15, 18, 18,
    ]  # fmt: skip
