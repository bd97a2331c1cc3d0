"""Async functions of the application that block the event loop: where, and for how long.

While one computes, or waits without `await`, nothing else of its loop goes on: no heartbeat, no pull, no other call.
A thread asks the loop for a sign of life, and looks where the loop is when none comes: afterwards it is too late.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from gantrymq.log_limit import LogLimit

logger: logging.Logger = logging.getLogger(__name__)

BLOCKED_S = 1.0  # what lasts longer is logged
LOOK_S = 0.25

StartedAt = Callable[["asyncio.Task[object]"], "float | None"]


class LoopWatch:
    """started_at: since when (time.monotonic()) a task has been in a function of the application; None: it is in none.
    what: names the function in the log."""

    def __init__(self, started_at: StartedAt, what: str) -> None:
        self._started_at = started_at
        self._what = what
        self._may_end = threading.Event()
        self._lines = LogLimit()
        self._answered_at = 0.0

    def start(self) -> None:
        """Watch the running loop until `stop`."""
        loop = asyncio.get_running_loop()
        where = (loop, threading.get_ident())
        threading.Thread(target=self._watch, args=where, name="gantrymq-loop-watch", daemon=True).start()

    def stop(self) -> None:
        """End the watch, now or at its next look. From any thread."""
        self._may_end.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        self._answered()
        while not self._may_end.is_set():
            asked_at = time.monotonic()
            try:
                loop.call_soon_threadsafe(self._answered)
            except RuntimeError:  # closed
                return
            while not self._may_end.wait(LOOK_S) and self._answered_at < asked_at:
                task = asyncio.current_task(loop)
                since = None if task is None else self._started_at(task)
                if task is not None and since is not None:
                    self._follow(loop, thread_id, task, max(since, asked_at))

    def _follow(
        self, loop: asyncio.AbstractEventLoop, thread_id: int, task: asyncio.Task[object], since: float
    ) -> None:
        """Look at one step of a task until it ends; tell of it when it lasted."""
        place, asked = "", self._answered_at
        while asyncio.current_task(loop) is task and self._answered_at == asked and not self._may_end.is_set():
            if not place and time.monotonic() - since > BLOCKED_S:
                place = place_of(sys._current_frames().get(thread_id))
            self._may_end.wait(LOOK_S / 5)
        if place and self._lines.allows("loop_blocked"):
            blocked_s = round(time.monotonic() - since, 1)
            logger.warning(
                "%s blocked the event loop for %s s in %s: use await, or a plain function",
                self._what,
                blocked_s,
                place,
                extra={"event": "loop_blocked", "what": self._what, "blocked_s": blocked_s, "place": place},
            )

    def _answered(self) -> None:
        self._answered_at = time.monotonic()


def place_of(frame: FrameType | None) -> str:
    """ "shop.py:42": the innermost line of a stack that is the application's own; "" when there is none."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_of_others()):
            return f"{name.rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@functools.cache
def _of_others() -> tuple[str, ...]:
    """How the file names of Python's, of installed packages' and of the SDK's code begin."""
    import sysconfig  # only the log line needs them
    from pathlib import Path

    folders = {*sysconfig.get_paths().values(), str(Path(__file__).parents[2])}
    return ("<", *(f"{folder}/" for folder in folders))
