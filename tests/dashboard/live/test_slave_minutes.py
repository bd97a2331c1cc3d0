"""A minute of slaves: the worst of its seconds, by the slave's own name."""

from __future__ import annotations

from appliance.reports.samples.kinds import SlaveSample
from dashboard.live.minutes import SlaveMinutes
from gantrymq.remoting.admin_bodies import SlaveDifference
from tests.dashboard.status.masters import CONNECTION, STRANGER, telling


def test_a_minute_has_a_row_for_each_slave_with_the_worst_of_its_seconds() -> None:
    minutes = SlaveMinutes()
    seconds = [
        telling(120.0, SlaveDifference(CONNECTION, 10, 0.5, True, 100, 1), SlaveDifference(STRANGER, 1, 0.0, True, 7)),
        telling(121.0, SlaveDifference(CONNECTION, 900, 2.5, False, 200, -1)),
        telling(122.0, SlaveDifference(CONNECTION, 5000, 9.0, False, 200, 50), why="no answer"),
        telling(179.9, SlaveDifference(CONNECTION, 0, 0.0, True, 0, 0)),
    ]
    assert [minutes.add(each) for each in seconds] == [[]] * 4
    finished = minutes.add(telling(181.0, SlaveDifference(CONNECTION, 1, 0.0, True, 1, 1)))
    common = {"at_ms": 120_000, "broker": "broker-a"}
    assert finished == [
        SlaveSample(
            **common, slave="10.0.0.7", behind_bytes=1, behind_messages=None, behind_seconds=0.0, in_sync=True,
            bytes_per_second=7.0, seconds=1,
        ),
        SlaveSample(
            **common, slave="broker-a:1", behind_bytes=900, behind_messages=1, behind_seconds=2.5, in_sync=False,
            bytes_per_second=100.0, seconds=3,
        ),
    ]  # fmt: skip


def test_a_clock_that_is_set_back_begins_no_minute_twice() -> None:
    minutes = SlaveMinutes()
    one = SlaveDifference(CONNECTION, 10, 0.5, True, 100, 1)
    for at in (120.0, 60.0, 119.0, 121.0):
        assert minutes.add(telling(at, one)) == []
    [row] = minutes.add(telling(180.0, one))
    assert (row.at_ms, row.seconds) == (120_000, 4)
