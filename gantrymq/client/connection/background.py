"""The tasks of a running client: each has an owner, ends with it, and logs a crash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from gantrymq.client.exits import awaited
from gantrymq.errors import GantryError
from gantrymq.remoting.outages import Outages
from gantrymq.timeouts import wait_for_event

logger: logging.Logger = logging.getLogger(__name__)

CRASH_PAUSE_S = 1.0


class Background:
    """Owns tasks until they end or `close` cancels them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_closed: bool = False  # what is begun after that is not ended

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run the coroutine as a task of this owner."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "task crashed (task=%s)",
                task.get_name(),
                exc_info=error,
                extra={"event": "task_crashed", "task": task.get_name()},
            )

    def owns_current_task(self) -> bool:
        """Whether the caller runs in one of these tasks."""
        return asyncio.current_task() in self._tasks

    async def close(self) -> None:
        """Cancel what still runs and wait for its end. The calling task itself is left alone."""
        self.is_closed = True
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def every(
    interval_s: float, action: Callable[[], Awaitable[None]], outages: Outages, *, wake: asyncio.Event | None = None
) -> None:
    """Run the action at once, then each interval and whenever `wake` is set, until cancelled.

    What fails is logged, and the next round is the retry: whatever it is, a mistake in what the application gave the
    client as well as an unreachable server.
    """
    work = getattr(action, "__name__", "").strip("_").replace("_", " ")
    while True:
        try:
            await awaited(action())
            outages.worked(work, "")
        except GantryError as exc:
            outages.failed(work, "", exc)
        except Exception:
            logger.exception("%s failed, and is tried again", work, extra={"event": "round_failed", "work": work})
            await asyncio.sleep(min(interval_s, CRASH_PAUSE_S))  # whatever wakes it
        if wake is None:
            await asyncio.sleep(interval_s)
        else:
            await wait_for_event(wake, interval_s)
            wake.clear()
