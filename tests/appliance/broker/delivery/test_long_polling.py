"""appliance/broker/delivery/long_polling.py: who waits, who wakes, who is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from appliance.broker.delivery.long_polling import HeldPull, PullRequestHold
from appliance.errors import BrokerError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store import TagFilter


@dataclass(eq=False)
class Client:
    """What the hold looks at of a connection."""

    is_closing: bool = False
    failures: list[Exception] = field(default_factory=list)

    def flush(self) -> None:
        """Nothing is written here."""

    def reading_failed(self, failure: Exception) -> None:
        self.failures.append(failure)


class Answered:
    """Remembers whose pull was run again."""

    def __init__(self) -> None:
        self.opaques: list[int] = []
        self.hold = PullRequestHold(lambda *_: [])
        self.hold.answer_with(lambda _, request: self.opaques.append(request.opaque))

    def park(self, offset: int, *, wanted: TagFilter | None = None, client: Any = None, until: float = 1e9) -> int:
        request = RemotingCommand.request(11)
        self.hold.park("t", 0, HeldPull(client or Client(), request, offset, wanted, until))
        return request.opaque


async def test_a_pull_wakes_when_its_message_arrives_and_not_before() -> None:
    answered = Answered()
    first, second = answered.park(5), answered.park(6)
    answered.hold.messages_arrived("t", 0, 4, (0,))
    await asyncio.sleep(0)
    assert answered.opaques == []
    answered.hold.messages_arrived("t", 1, 5, (0,))  # another queue
    answered.hold.messages_arrived("t", 0, 5, (0,))
    await asyncio.sleep(0)
    assert answered.opaques == [first]
    answered.hold.messages_arrived("t", 0, 6, (0,))
    await asyncio.sleep(0)
    assert answered.opaques == [first, second]
    assert answered.hold.held_count == 0


async def test_a_message_with_another_tag_wakes_nobody() -> None:
    answered = Answered()
    answered.park(0, wanted=TagFilter(frozenset({7})))
    answered.hold.messages_arrived("t", 0, 0, (8, 9))
    await asyncio.sleep(0)
    assert answered.opaques == []
    answered.hold.messages_arrived("t", 0, 2, (8, 7))
    await asyncio.sleep(0)
    assert len(answered.opaques) == 1


async def test_time_up_answers_and_a_dead_client_is_forgotten() -> None:
    answered = Answered()
    late = answered.park(5, until=10.0)
    answered.park(5, until=10.0, client=Client(is_closing=True))
    patient = answered.park(5, until=30.0)
    answered.hold.sweep(now=20.0)
    await asyncio.sleep(0)
    assert answered.opaques == [late]
    assert answered.hold.held_count == 1
    answered.hold.sweep(now=31.0)
    await asyncio.sleep(0)
    assert answered.opaques == [late, patient]


async def test_where_nothing_new_can_come_no_pull_waits() -> None:
    answered = Answered()
    answered.hold.closed_for = "it is not the master"
    with pytest.raises(BrokerError, match="it is not the master") as refused:
        answered.park(0)
    assert refused.value.code == ResponseCode.SERVICE_NOT_AVAILABLE
    answered.hold.closed_for = ""
    answered.park(0)
    assert answered.hold.held_count == 1


async def test_who_knows_that_no_more_comes_answers_at_once() -> None:
    answered = Answered()
    first = answered.park(5)
    answered.hold.messages_arrived("t", 0, 5, (0,))
    answered.hold.answer_woken()
    assert answered.opaques == [first]
    await asyncio.sleep(0)  # the turn of the loop that was meant to do it
    assert answered.opaques == [first]


async def test_a_pull_that_can_not_be_answered_costs_its_own_connection_alone() -> None:
    answered = Answered()
    broken = Client()
    answered.park(5, client=broken)
    second = answered.park(5)

    def answer(client: Any, request: RemotingCommand) -> None:
        if client is broken:
            raise RuntimeError("a bug")
        answered.opaques.append(request.opaque)

    answered.hold.answer_with(answer)
    answered.hold.messages_arrived("t", 0, 5, (0,))
    answered.hold.answer_woken()
    assert answered.opaques == [second]
    assert [str(failure) for failure in broken.failures] == ["a bug"]


async def test_all_who_wait_look_again_also_those_that_wait_for_a_topic() -> None:
    answered, told = Answered(), list[str]()
    opaque = answered.park(5)
    answered.hold.topics["pops"] = told.append
    answered.hold.wake_all()
    await asyncio.sleep(0)
    assert (answered.opaques, told) == ([opaque], ["pops"])
