"""Until when commits are taken: each slave that may be the next master has all that is a second old."""

from __future__ import annotations

import math

import pytest

from appliance.broker.replication.master.copied_offsets import OFFSETS_S, move_until
from appliance.broker.replication.master.slave import Slave
from appliance.broker.replication.master.slave_figures import TransferRate


def slave(broker: str, told_at: float) -> Slave:
    return Slave("127.0.0.1:1", TransferRate(0.0), epoch=1, broker=broker, told_at=told_at)


@pytest.mark.parametrize(
    ("required", "told", "until"),
    [
        ([], [("a", 5.0)], math.inf),  # nobody else can be the next
        (["a"], [("a", 5.0), ("b", 1.0)], 5.0),  # b can't
        (["a", "b"], [("a", 5.0), ("b", 4.0)], 4.0),
        (["a", "b"], [("a", 5.0)], 0.0),  # what b has is not known
        (["a"], [("a", 5.0), ("a", 0.0)], 5.0),  # it has connected anew, and has what it said it had
    ],
)
def test_the_one_that_lacks_most_says_how_long(
    required: list[str], told: list[tuple[str, float]], until: float
) -> None:
    assert move_until(required, [slave(*each) for each in told]) == until + OFFSETS_S
