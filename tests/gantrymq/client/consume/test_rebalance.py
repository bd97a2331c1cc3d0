"""Sharing queues: pure functions that every client of a group computes alike."""

from __future__ import annotations

import pytest

from gantrymq.client.consume.rebalance import AllocateStrategy, allocate_averagely, allocate_by_circle, share_of
from gantrymq.message.model import MessageQueue


def queues(count: int, brokers: tuple[str, ...] = ("a",)) -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for broker in brokers for queue_id in range(count)]


def ids(share: list[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in share]


@pytest.mark.parametrize(
    ("queue_count", "members", "shares"),
    [
        (8, "a", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (8, "abc", [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (4, "abcd", [[0], [1], [2], [3]]),
        (2, "abc", [[0], [1], []]),
        (10, "abcd", [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]),
        (0, "ab", [[], []]),
    ],
)
def test_the_average_strategy_gives_the_runs_java_gives(
    queue_count: int, members: str, shares: list[list[int]]
) -> None:
    assert [ids(allocate_averagely(member, queues(queue_count), list(members))) for member in members] == shares


def test_the_circle_strategy_deals_like_cards() -> None:
    assert [ids(allocate_by_circle(member, queues(5), ["a", "b"])) for member in "ab"] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize("strategy", [allocate_averagely, allocate_by_circle])
@pytest.mark.parametrize("queue_count", range(18))
@pytest.mark.parametrize("member_count", range(1, 6))
def test_every_queue_has_exactly_one_owner_and_shares_differ_by_one(
    strategy: AllocateStrategy, queue_count: int, member_count: int
) -> None:
    members = [f"client-{n}" for n in range(member_count)]
    everything = queues(queue_count, ("b", "a"))
    shares = [share_of(member, everything, reversed(members), strategy) for member in members]
    assert sorted(queue for share in shares for queue in share) == sorted(everything)
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1


def test_a_client_the_broker_does_not_list_gets_nothing() -> None:
    assert share_of("me", queues(4), ["others"]) == []


def test_the_order_in_which_things_are_told_does_not_matter() -> None:
    told = [*reversed(queues(4, ("b", "a")))]
    assert share_of("x", told, ["y", "x", "y"]) == share_of("x", sorted(told), ["x", "y"])
