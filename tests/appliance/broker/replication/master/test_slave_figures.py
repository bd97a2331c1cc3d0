"""Seconds behind follow from when the log was how long; the rate from what was sent between two looks."""

from __future__ import annotations

from appliance.broker.replication.master.slave_figures import SAMPLES_MAX, LogEnds, TransferRate


def test_a_slave_is_as_old_as_the_first_byte_it_lacks() -> None:
    ends = LogEnds()
    for second, end in enumerate([100, 200, 200, 200, 300]):
        ends.note(end, float(second), second)
    assert ends.seconds_behind(300, 4.0) == 0.0
    assert ends.seconds_behind(200, 4.0) == 0.0, "the log got more only now"
    assert ends.seconds_behind(199, 4.0) == 3.0
    assert ends.seconds_behind(0, 10.0) == 10.0


def test_what_is_older_than_the_samples_is_at_least_so_old() -> None:
    ends = LogEnds()
    for second in range(2 * SAMPLES_MAX):
        ends.note(second + 1, float(second), second)
    assert ends.seconds_behind(0, 2.0 * SAMPLES_MAX) == SAMPLES_MAX


def test_messages_behind_follow_from_how_many_were_put_between_samples() -> None:
    ends = LogEnds()
    assert ends.messages_behind(0) == 0
    for at, end, messages in ((0.0, 1000, 10), (1.0, 2000, 20), (2.0, 4000, 30)):
        ends.note(end, at, messages)
    lacks = {offset: ends.messages_behind(offset) for offset in (4000, 3999, 3000, 2000, 1500, 1000, 0)}
    assert lacks == {4000: 0, 3999: 1, 3000: 5, 2000: 10, 1500: 15, 1000: 20, 0: 27}


def test_messages_behind_are_unknown_while_none_was_put() -> None:
    ends = LogEnds()
    ends.note(1000, 0.0, 0)
    assert (ends.messages_behind(1000), ends.messages_behind(0)) == (0, None)


def test_the_rate_is_that_between_two_looks() -> None:
    rate = TransferRate(10.0)
    rate.note(500, 12.0)
    assert rate.bytes_per_s == 250.0
    rate.note(500, 12.0)
    rate.note(500, 13.0)
    assert rate.bytes_per_s == 0.0
