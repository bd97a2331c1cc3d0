"""Sharing queues: pure functions that every client of a group computes alike."""

from __future__ import annotations

import pytest

from gantrymq.client.consume import rebalance
from gantrymq.client.consume.rebalance import AllocateStrategy, share_of
from gantrymq.message.model import MessageQueue


def queues(count: int, brokers: tuple[str, ...] = ("a",)) -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for broker in brokers for queue_id in range(count)]


def ids(share: list[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in share]


@pytest.mark.parametrize(
    ("queue_count", "members", "shares"),
    [
        (8, "a", [[0, 1, 2, 3, 4, 5, 6, 7]]), (8, "abc", [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (4, "abcd", [[0], [1], [2], [3]]), (2, "abc", [[0], [1], []]),
        (10, "abcd", [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]), (0, "ab", [[], []]),
    ],
)  # fmt: skip
def test_the_average_strategy_gives_javas_runs(queue_count: int, members: str, shares: list[list[int]]) -> None:
    assert [
        ids(rebalance.allocate_averagely(member, queues(queue_count), list(members))) for member in members
    ] == shares


def test_the_circle_strategy_deals_like_cards() -> None:
    assert [ids(rebalance.allocate_by_circle(member, queues(5), ["a", "b"])) for member in "ab"] == [[0, 2, 4], [1, 3]]


@pytest.mark.parametrize("strategy", [rebalance.allocate_averagely, rebalance.allocate_by_circle])
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


ROOMS = [MessageQueue("T", f"{room}@b", number) for room in ("r1", "r2", "r3") for number in range(4)]
EVERYTHING = sorted([*ROOMS, MessageQueue("T", "plain", 0)])


def room_of_queue(queue: MessageQueue) -> str:
    return queue.broker_name.split("@")[0]


def room_of_client(client_id: str) -> str:
    return client_id.split("@")[0]


JAVAS_SHARES = {  # what the official client 4.9.8 gives the members r1@c1, r1@c2 and r2@c3
    "consistent hash": (
        rebalance.allocate_by_consistent_hash,
        "plain/0 r1@b/2 r1@b/3 r2@b/0 r2@b/3 r3@b/1 r3@b/2",
        "r2@b/1",
        "r1@b/0 r1@b/1 r2@b/2 r3@b/0 r3@b/3",
    ),
    "machine room": (
        rebalance.allocate_by_machine_room(["r1", "r3"]),
        "r1@b/0 r1@b/1 r3@b/2",
        "r1@b/2 r1@b/3 r3@b/3",
        "r3@b/0 r3@b/1",
    ),
    "nearby": (
        rebalance.allocate_machine_room_nearby(room_of_queue, room_of_client),
        "r1@b/0 r1@b/1 plain/0 r3@b/0 r3@b/1",
        "r1@b/2 r1@b/3 r3@b/2",
        "r2@b/0 r2@b/1 r2@b/2 r2@b/3 r3@b/3",
    ),
    "nearby, by circle": (
        rebalance.allocate_machine_room_nearby(room_of_queue, room_of_client, rebalance.allocate_by_circle),
        "r1@b/0 r1@b/2 plain/0 r3@b/0 r3@b/3",
        "r1@b/1 r1@b/3 r3@b/1",
        "r2@b/0 r2@b/1 r2@b/2 r2@b/3 r3@b/2",
    ),
    "config": (rebalance.allocate_by_config(EVERYTHING[2:4]), *["r1@b/1 r1@b/2"] * 3),
}


@pytest.mark.parametrize(("strategy", "one", "two", "three"), JAVAS_SHARES.values(), ids=JAVAS_SHARES)
def test_the_other_strategies_share_as_java_does(strategy: AllocateStrategy, one: str, two: str, three: str) -> None:
    members = ["r1@c1", "r1@c2", "r2@c3"]
    shares = [share_of(member, EVERYTHING, members, strategy) for member in members]
    assert [[f"{queue.broker_name}/{queue.queue_id}" for queue in share] for share in shares] == [
        text.split() for text in (one, two, three)
    ]


@pytest.mark.parametrize(
    "strategy",
    [
        rebalance.allocate_by_consistent_hash,
        rebalance.allocate_by_machine_room(["r1"]),
        rebalance.allocate_machine_room_nearby(room_of_queue, room_of_client),
    ],
)
def test_who_is_no_member_gets_nothing(strategy: AllocateStrategy) -> None:
    assert share_of("stranger", EVERYTHING, ["r1@c1"], strategy) == []
