"""Patience with servers that are away, and what an answer lacks."""

from __future__ import annotations

import pytest

from gantrymq.contrib.spark.cluster_read import decoded, patiently
from gantrymq.contrib.spark.errors import ReadFailed
from gantrymq.contrib.spark.ranges import Queue, QueueRange
from gantrymq.errors import ConnectError, GantryError, ResponseError, RouteNotFound
from tests.appliance.reports.stores import Record
from tests.waiting import WITHIN_S

ORDERS = Queue("orders", "broker-a", 0)


def records(*offsets: int) -> bytes:
    return b"".join(Record(queue_offset=offset).encode(1000 * offset) for offset in offsets)


class Failing:
    """Fails so, then answers."""

    def __init__(self, *failures: GantryError) -> None:
        self.failures = list(failures)

    async def ask(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


async def test_a_server_that_is_away_or_busy_is_asked_again() -> None:
    failing = Failing(ConnectError("a:1", "refused"), ResponseError(2, "busy"))
    assert await patiently(failing.ask, WITHIN_S) == "answer"
    with pytest.raises(ResponseError):
        await patiently(Failing(ResponseError(16, "no permission")).ask, WITHIN_S)


async def test_a_route_that_is_forgotten_while_its_broker_is_away_is_no_deleted_topic() -> None:
    assert await patiently(Failing(RouteNotFound("orders")).ask, WITHIN_S, is_known=True) == "answer"
    with pytest.raises(RouteNotFound):
        await patiently(Failing(RouteNotFound("ordres")).ask, WITHIN_S)


def test_what_an_answer_lacks_is_lost() -> None:
    piece = decoded(records(3, 4, 7, 8, 12), QueueRange(ORDERS, 2, 10))
    assert piece.block is not None
    assert piece.block.queue_offset.tolist() == [3, 4, 7, 8]
    assert piece.lost == [QueueRange(ORDERS, 2, 3), QueueRange(ORDERS, 5, 7), QueueRange(ORDERS, 9, 10)]
    assert decoded(b"", QueueRange(ORDERS, 2, 10)) == (None, [QueueRange(ORDERS, 2, 10)])


def test_an_answer_that_is_no_records_is_refused() -> None:
    with pytest.raises(ReadFailed, match=r"topic orders, queue 0 of broker-a: .*answer is damaged"):
        decoded(records(3, 4)[:-5], QueueRange(ORDERS, 2, 10))
