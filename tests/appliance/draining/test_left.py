"""What counts as left at a broker that is drained."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.draining import left
from appliance.draining.left import Left, lag_of, look
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences, TopicOffset, TopicStatsTable
from gantrymq.remoting.bodies import BrokerData, ClusterInfo
from tests.waiting import WITHIN_S


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


@pytest.mark.parametrize(
    ("silent", "told"),
    [
        (set(), {"broker-a:1": 1, "broker-a:2": 2}),
        ({"slave-2"}, {"broker-a:1": 1, "10.0.0.2:41002": 2}),
        ({"name server"}, {"10.0.0.2:41001": 1, "10.0.0.2:41002": 2}),
    ],
)
async def test_who_does_not_answer_with_the_names_of_slaves_is_waited_for_shortly(
    monkeypatch: pytest.MonkeyPatch, silent: set[str], told: dict[str, int]
) -> None:
    monkeypatch.setattr(left, "NAME_S", 0.05)
    connections = {f"slave-{number}": f"10.0.0.2:4100{number}" for number in (1, 2)}
    slaves = [SlaveDifference(address, number) for number, address in enumerate(connections.values(), 1)]
    differences = {"slaveDifferences": SlaveDifferences(slaves).to_json().decode()}

    async def runtime_info(address: str) -> dict[str, str]:
        if address in silent:
            await asyncio.Event().wait()
        return {"slaveConnection": connections[address]} if address in connections else differences

    async def info() -> ClusterInfo:
        if "name server" in silent:
            await asyncio.Event().wait()
        addresses = dict(enumerate(["master", *connections]))
        return ClusterInfo({"broker-a": BrokerData("DefaultCluster", "broker-a", addresses)}, {})

    async def all_at(_: str) -> dict[str, dict[int, int]]:
        return {}

    admin: Any = SimpleNamespace(
        brokers=SimpleNamespace(runtime_info=runtime_info),
        cluster=SimpleNamespace(info=info),
        offsets=SimpleNamespace(all_at=all_at),
    )
    async with asyncio.timeout(WITHIN_S):
        assert (await look(admin, "master")).slaves == told
