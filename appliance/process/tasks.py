"""Structured concurrency: services run while a block runs, and no longer; a thread ends before the task that began it.

A service is anything with a `run()` coroutine that is ended by cancellation and tidies up in `finally`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Service(Protocol):
    """Background work."""

    def run(self) -> Awaitable[None]: ...


@contextlib.asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    """Run the services while the block runs; if one crashes, the block is cancelled and the crash raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_run(service), name=type(service).__name__)  # run() may return any awaitable
            for service in services
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _run(service: Service) -> None:
    await service.run()


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run something blocking in a thread. Who is cancelled waits for its end: files have one writer at a time."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):  # again: it ends no earlier
                await asyncio.wait({running})
        raise
