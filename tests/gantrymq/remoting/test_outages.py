"""What fails is logged once when it begins, once a minute, and once when it is over."""

from __future__ import annotations

import pytest

from gantrymq.errors import ConnectError, RequestTimeout, ResponseError
from gantrymq.remoting.outages import OPEN_MAX, Outages
from tests.waiting import Clock

ADDRESS = "10.0.0.1:10911"
REFUSED = ResponseError(1, "no", address=ADDRESS)


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def outages(clock: Clock) -> Outages:
    return Outages(clock=clock)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_a_lost_address_is_said_once_a_minute(outages: Outages, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for clock.now in range(130):
        outages.unreachable(ADDRESS, "refused")
    assert lines(caplog) == [
        f"unreachable (address={ADDRESS}): refused",
        f"still unreachable after 60 s (address={ADDRESS}): refused",
        f"still unreachable after 120 s (address={ADDRESS}): refused",
    ]
    outages.reachable(ADDRESS)
    outages.reachable(ADDRESS)
    assert lines(caplog) == [f"reachable again after 129 s (address={ADDRESS})"]


def test_what_fails_for_want_of_a_connection_is_said_by_the_connection_only(
    outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    outages.unreachable(ADDRESS, "refused")
    assert len(lines(caplog)) == 1
    outages.failed("pull", "broker-a", ConnectError(ADDRESS, "refused"), member="T/0")
    outages.failed("pull", "broker-a", RequestTimeout(ADDRESS, 11, 3.0), member="T/0")
    assert lines(caplog) == []
    outages.failed("pull", "broker-a", ConnectError("broker-a", "no address of this broker is known"), member="T/0")
    assert lines(caplog) == ["pull failed (place=broker-a, member=T/0): broker-a: no address of this broker is known"]


def test_many_queues_of_a_broker_have_one_line_and_the_last_that_works_ends_it(
    outages: Outages, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for clock.now in range(62):
        for queue_id in range(3):
            outages.failed("pull", "broker-a", REFUSED, member=f"T/{queue_id}")
    assert lines(caplog) == [
        f"pull failed (place=broker-a, member=T/0): {REFUSED}",
        f"pull still failing after 60 s (place=broker-a, members=3): {REFUSED}",
    ]
    outages.worked("pull", "broker-a", member="T/0")
    outages.worked("pull", "broker-b", member="T/1")
    outages.given_up("pull", "broker-a", member="T/1")
    assert lines(caplog) == []
    outages.worked("pull", "broker-a", member="T/2")
    assert lines(caplog) == ["pull works again after 61 s (place=broker-a)"]


def test_a_flood_of_places_is_bounded(outages: Outages, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(2 * OPEN_MAX):
        outages.unreachable(f"10.0.0.1:{number}", "refused")
    assert len(lines(caplog)) == OPEN_MAX
