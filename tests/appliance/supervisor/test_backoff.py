"""How long a process that keeps ending has to wait."""

from __future__ import annotations

from appliance.supervisor.backoff import Backoff


def test_the_delay_doubles_from_a_fifth_of_a_second_to_half_a_minute() -> None:
    backoff = Backoff()
    delays = [backoff.next_delay_s(lived_s=1.0) for _ in range(10)]
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_a_minute_of_health_is_a_clean_slate() -> None:
    backoff = Backoff()
    for _ in range(6):
        backoff.next_delay_s(lived_s=0.0)
    assert backoff.is_crash_loop
    assert backoff.next_delay_s(lived_s=60.0) == 0.2
    assert not backoff.is_crash_loop
