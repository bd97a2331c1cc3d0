"""For how long a lock counts, on a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from gantrymq.client.consume import queue_locks
from gantrymq.client.consume.queue_locks import BROKER_FORGETS_S, VALID_S, QueueLocks
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE
from gantrymq.remoting.bodies import LockBatchResponse
from gantrymq.remoting.outages import Outages

QUEUE = MessageQueue("T", "b", 0)


class Clock:
    """It goes on by `answer_s` while a broker is asked, which grants every lock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answer_s = 0.0

    def monotonic(self) -> float:
        return self.now

    async def call(self, address: str, code: int, *_: Any, **__: Any) -> Any:
        self.now += self.answer_s
        return SimpleNamespace(body=LockBatchResponse([QUEUE]).to_json())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(queue_locks, "time", clock)
    return clock


def locks_at(clock: Clock, connection: object = None) -> QueueLocks:
    session: Any = SimpleNamespace(
        namespace=NO_NAMESPACE, client_id="c", calls=clock, outages=Outages(),
        routes=SimpleNamespace(address=lambda name: "h:1"),
        remoting=SimpleNamespace(open_connection=lambda address: connection),
    )  # fmt: skip
    return QueueLocks(session, "g")


@pytest.mark.parametrize(("answer_s", "is_held"), [(0.0, True), (VALID_S, False)])
async def test_a_lock_counts_from_when_it_was_asked_for(clock: Clock, answer_s: float, is_held: bool) -> None:
    locks = locks_at(clock)
    clock.answer_s = answer_s  # of a process that was stopped before it read the answer
    await locks.lock([QUEUE])
    assert locks.holds(QUEUE) is is_held


async def test_a_lock_whose_answer_was_read_when_it_was_over_is_lost(clock: Clock) -> None:
    locks = locks_at(clock)
    clock.answer_s = BROKER_FORGETS_S
    await locks.lock([QUEUE])
    clock.answer_s = 0.0
    assert await locks.renew() == {QUEUE}


async def test_a_lock_does_not_count_from_when_its_connection_is_gone(clock: Clock) -> None:
    connection = Mock(is_closing=False)
    locks = locks_at(clock, connection)
    await locks.lock([QUEUE])
    assert locks.holds(QUEUE)
    connection.is_closing = True
    assert not locks.holds(QUEUE) and locks.renew_wanted.is_set()
