"""A clock that is suddenly ahead is not believed before it has been so for an hour."""

from __future__ import annotations

import pytest

from store.upkeep.steady_clock import SteadyClock


class Machine:
    """Its clock is wrong by some seconds; the time goes on whatever it says."""

    uptime, wrong_by_s = 5_000.0, 0.0

    def wall(self) -> float:
        return 1_800_000_000 + self.uptime + self.wrong_by_s

    def steady(self) -> SteadyClock:
        return SteadyClock(clock=self.wall, uptime=lambda: self.uptime)


@pytest.mark.parametrize("wrong_by_s", [0, 59, -59, -61, -1e9])
def test_small_steps_and_steps_back_are_followed_at_once(wrong_by_s: float) -> None:
    machine = Machine()
    steady = machine.steady()
    machine.uptime += 10
    machine.wrong_by_s = wrong_by_s
    assert steady.now() == machine.wall()
    assert steady.steps_back == (wrong_by_s < -60)


def test_a_step_ahead_is_believed_after_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    steady = machine.steady()
    machine.wrong_by_s = 61
    for _ in range(3599):
        assert steady.now() == machine.wall() - 61
        machine.uptime += 1
    assert steady.now() == machine.wall() - 61
    machine.uptime += 1
    assert steady.now() == machine.wall()
    assert [record.event for record in caplog.records] == ["clock_ahead"]  # type: ignore[attr-defined]
    machine.wrong_by_s = 0
    assert steady.now() == machine.wall(), "and taken back at once"
    assert steady.steps_back == 1


def test_a_clock_that_is_right_again_has_to_be_ahead_for_an_hour_anew() -> None:
    machine = Machine()
    steady = machine.steady()
    for _ in range(3):
        machine.wrong_by_s = 400 * 86_400.0
        for _ in range(2):
            assert steady.now() == machine.wall() - machine.wrong_by_s
            machine.uptime += 3000
        machine.wrong_by_s = 0
        assert steady.now() == machine.wall()
    assert steady.steps_back == 0, "what was not believed needs not be taken back"


def test_a_clock_that_drifts_is_followed() -> None:
    machine = Machine()
    steady = machine.steady()
    for _ in range(100):
        machine.uptime += 10
        machine.wrong_by_s += 5
        assert steady.now() == machine.wall()
