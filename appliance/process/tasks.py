"""Structured concurrency for services: they run while a block runs, and no longer.

A service is anything with a `run()` coroutine that is ended by cancellation and tidies up in `finally`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Protocol


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
