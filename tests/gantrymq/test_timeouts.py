"""Limits on waits, in tasks that go on, that are cancelled, and that clean up after a cancellation."""

from __future__ import annotations

import asyncio

import pytest

from gantrymq.timeouts import timeout, timeout_at

pytestmark = pytest.mark.unit


async def never() -> None:
    await asyncio.Event().wait()


async def test_a_limit_that_is_over_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with timeout(0.001) as limit:
            await never()
    assert limit.expired()
    with pytest.raises(TimeoutError):
        async with timeout_at(asyncio.get_running_loop().time() - 1):
            await never()


async def test_no_limit_and_one_that_is_not_reached_change_nothing() -> None:
    async with timeout(None), timeout(60) as limit:
        await asyncio.sleep(0)
    assert not limit.expired()


async def test_a_cancellation_stays_a_cancellation() -> None:
    task = asyncio.create_task(_within(60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_what_cleans_up_after_a_cancellation_waits_with_a_limit() -> None:
    """Before Python 3.11.3 asyncio's own raises CancelledError here."""
    seen = []

    async def clean_up_slowly() -> None:
        try:
            await never()
        finally:
            try:
                await _within(0.001)
            except TimeoutError:
                seen.append("timeout")

    task = asyncio.create_task(clean_up_slowly())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["timeout"]


async def test_the_inner_of_two_limits_is_the_one_that_is_over() -> None:
    async with timeout(60) as outer:
        with pytest.raises(TimeoutError):
            async with timeout(0.001):
                await never()
    assert not outer.expired()


async def test_a_limit_is_moved_while_it_runs() -> None:
    with pytest.raises(TimeoutError):
        async with timeout(60) as limit:
            limit.reschedule(asyncio.get_running_loop().time())
            await never()


async def _within(seconds: float) -> None:
    async with timeout(seconds):
        await never()
