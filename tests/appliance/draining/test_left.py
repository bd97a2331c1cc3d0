"""What counts as left at a broker that is drained."""

from __future__ import annotations

import pytest

from appliance.draining.left import Left, lag_of
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import TopicOffset, TopicStatsTable


def topic(*queues: tuple[int, int]) -> TopicStatsTable:
    """With queues from a smallest to a next offset."""
    places = {
        MessageQueue("T", "broker-a", queue_id): TopicOffset(min_offset=begin, max_offset=end)
        for queue_id, (begin, end) in enumerate(queues)
    }
    return TopicStatsTable(places)


@pytest.mark.parametrize(
    ("offsets", "queues", "left"),
    [
        ({0: 10, 1: 4}, [(0, 10), (0, 4)], 0),
        ({0: 7, 1: 4}, [(0, 10), (0, 4)], 3),
        ({0: 10}, [(0, 10), (0, 4)], 4),  # of the other queue nothing is known to be consumed
        ({}, [(0, 10)], 10),
        ({0: 2}, [(5, 10)], 5),  # what was deleted can't be consumed
        ({0: 12}, [(0, 10)], 0),  # an offset beyond the end is no debt of others
        ({0: 1}, [], 0),
    ],
)
def test_messages_behind_the_next_offsets_are_left(
    offsets: dict[int, int], queues: list[tuple[int, int]], left: int
) -> None:
    assert lag_of(offsets, topic(*queues)) == left


def test_groups_without_members_are_told_and_not_waited_for() -> None:
    left = Left({"orders": 3}, {"old": 1}, {"timed": 1200}, 7, {"10.0.0.2:10911": 0, "10.0.0.3:10911": 2048})
    assert left.waited_for == 3
    assert left.notes() == [
        "group old has 1 message left and no members",
        "1,200 messages timed wait for their time",
        "slave 10.0.0.3:10911 lacks 2.0 KiB",
    ]
