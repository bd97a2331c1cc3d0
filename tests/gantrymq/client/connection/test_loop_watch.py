"""What blocks an event loop is told with its place and how long it lasted; what only awaits is not."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

import pytest

from gantrymq.client.connection.loop_watch import BLOCKED_S, LOOK_S, LoopWatch
from tests.waiting import until

LASTS_S = 2 * BLOCKED_S + LOOK_S


class Watched:
    """A task that is watched from its start."""

    def __init__(self, work: Any) -> None:
        self.started = time.monotonic()
        self.task: asyncio.Task[None] = asyncio.ensure_future(work)
        self.watch = LoopWatch(lambda task: self.started if task is self.task else None, "listener")
        self.watch.start()


def told(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if getattr(record, "event", "") == "loop_blocked"]


async def test_a_step_that_blocks_is_told_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    async def blocks() -> None:
        await asyncio.sleep(0.01)
        json.dumps("the innermost line of the application is the next one")
        time.sleep(LASTS_S)  # noqa: ASYNC251 - what is shown: the loop stands still

    line = blocks.__code__.co_firstlineno + 3
    with caplog.at_level(logging.WARNING):
        watched = Watched(blocks())
        await watched.task
        await until(lambda: told(caplog))
    watched.watch.stop()
    (record,) = told(caplog)
    assert f"in test_loop_watch.py:{line}: use await" in record.getMessage()
    assert record.getMessage().startswith("listener blocked the event loop for ")
    assert record.blocked_s > BLOCKED_S


async def test_what_awaits_for_long_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(asyncio.sleep(LASTS_S))  # what is shown: time passes, and the loop goes on
    await watched.task
    watched.watch.stop()
    assert told(caplog) == []


async def test_what_others_block_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(asyncio.sleep(0))
    await watched.task
    time.sleep(LASTS_S)  # noqa: ASYNC251 - what is shown: the loop stands still, by another's doing
    await asyncio.sleep(2 * LOOK_S)  # the watch has to have looked
    watched.watch.stop()
    assert told(caplog) == []
