"""What the program makes of the lines of a client."""

from __future__ import annotations

import datetime

import pytest

from tests.interop.failover.gaps import Gaps, Got, Sent, gaps, routed_s, summary

LOST_MS = 10_000
BEFORE = [Sent(9_000, 9_010, 0, "a"), Sent(9_100, 9_110, 1, "b")]


def test_the_longest_pause_of_any_name_and_the_first_of_the_struck_one() -> None:
    sent = [
        *BEFORE,
        Sent(9_990, 12_000, 2, ""),
        Sent(12_000, 12_010, 3, "b"),
        Sent(12_100, 17_000, 4, "a"),
    ]
    got = [Got(9_011, 0), Got(9_111, 1), Got(12_020, 3), Got(18_000, 4)]
    assert gaps(sent, got, LOST_MS, "a") == Gaps(4.99, 5.98, 7.0, 8.0)


def test_a_send_that_began_before_the_loss_shows_nothing() -> None:
    sent = [*BEFORE, Sent(9_999, 10_001, 2, "a")]
    found = gaps(sent, [Got(10_002, 2)], LOST_MS, "a")
    assert (found.struck_sends_s, found.struck_deliveries_s) == (None, None)


def test_the_next_master_of_the_struck_name_is_in_the_routes_once_it_has_registered() -> None:
    log = [
        f"2026-11-30 19:56:0{second} INFO    appliance.namesrv.processors  broker registered  event=broker_registered "
        f"cluster=c broker_name={name} broker_id={broker_id} address=h:1\n"
        for second, name, broker_id in [("1.000", "a", 0), ("3.000", "b", 0), ("4.000", "a", 1), ("5.250", "a", 0)]
    ]
    lost_ms = int(datetime.datetime.fromisoformat("2026-11-30 19:56:02").timestamp() * 1000)
    assert routed_s(log, lost_ms, "a") == pytest.approx(3.25)
    assert routed_s(log[:-1], lost_ms, "a") is None


@pytest.mark.parametrize(
    ("values", "told"), [([1.0, 9.0, 2.0], "2.0 / 9.0"), ([1.0, None], "1 of 2 not in time"), ([], "")]
)
def test_what_did_not_come_in_time_is_said(values: list[float | None], told: str) -> None:
    assert summary(values) == told
