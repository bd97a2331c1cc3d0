"""Telling the application: functions it gave, called aside, with a limit, and without harm when they fail."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from gantrymq.client.connection.compression import in_thread
from gantrymq.client.exits import awaited, without_exit
from gantrymq.message.model import MessageQueue
from gantrymq.timeouts import timeout

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")
QueuesCallback = Callable[[list[MessageQueue]], Awaitable[None] | None]

CALLBACK_WAIT_S = 30.0  # then the client goes on without it


async def tell(callback: Callable[[T], Awaitable[None] | None] | None, about: T, what: str) -> None:
    """Call an async function on the loop, a plain one in a thread, so that it may use blocking clients; wait for it.

    An empty list makes no call. What it raises is logged. `what` names it in the log.
    """
    if callback is None or not about:
        return
    outcome: Any
    try:
        async with timeout(CALLBACK_WAIT_S):
            if inspect.iscoroutinefunction(callback):
                outcome = callback(about)
            else:
                outcome = await in_thread(functools.partial(without_exit, callback, about))
            if inspect.isawaitable(outcome):
                await awaited(outcome)
    except Exception:  # the application's: the client goes on
        logger.exception("callback failed (callback=%s)", what, extra={"event": "callback_failed", "callback": what})
