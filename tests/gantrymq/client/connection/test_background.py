"""Periodic work goes on whatever happens in a round."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest

from gantrymq.client.blocking.shared_loop import SharedLoop
from gantrymq.client.connection import background
from gantrymq.client.connection.background import every
from gantrymq.errors import ConnectError
from gantrymq.remoting.outages import Outages
from tests.waiting import until


@pytest.mark.parametrize("failure", [ConnectError("h:1", "refused"), ValueError("the application's own mistake")])
async def test_a_round_that_failed_is_not_the_last(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    rounds: list[int] = []

    async def act() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            raise failure

    running = asyncio.create_task(every(0.001, act, Outages()))
    await until(lambda: len(rounds) > 2 or running.done())
    assert not running.done()
    running.cancel()
    told = [record for record in caplog.records if record.name == background.__name__]
    assert [record.levelno for record in told] == ([logging.ERROR] if isinstance(failure, ValueError) else [])


def test_an_exit_in_a_round_of_a_blocking_client_is_not_the_last_round() -> None:
    rounds: list[int] = []

    def strategy() -> None:
        rounds.append(1)
        if len(rounds) == 1:
            sys.exit(3)

    async def act() -> None:
        strategy()

    async def until_again() -> None:
        running = asyncio.create_task(every(0.001, act, Outages()))
        await until(lambda: len(rounds) > 2 or running.done())
        running.cancel()

    shared, client = SharedLoop(), object()
    shared.acquire(client)  # type: ignore[arg-type]
    shared.run(until_again())
    shared.release(client)  # type: ignore[arg-type]
    assert len(rounds) > 2
