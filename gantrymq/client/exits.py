"""sys.exit() and Ctrl-C in the application's functions: they end no loop that other clients run on."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


def without_exit(function: Callable[..., T], *arguments: Any) -> T:
    """Call the application's function, in a thread. sys.exit() there is a failure of it, as any other: the event loop
    would hand it on and end, with all clients that share it."""
    try:
        return function(*arguments)
    except Exception:
        raise
    except BaseException as exc:
        raise _failure_of(exc) from exc


async def awaited(outcome: Awaitable[T]) -> T:
    """What the application's async function brings. An exit ends a loop of the main thread, which is the application's,
    and is a failure in any other thread: there runs the loop of all blocking clients."""
    try:
        return await outcome
    except (SystemExit, KeyboardInterrupt) as exc:
        if threading.current_thread() is threading.main_thread():
            raise
        raise _failure_of(exc) from exc


def _failure_of(exc: BaseException) -> RuntimeError:
    failure = RuntimeError(f"{type(exc).__name__}({exc}) in a thread, where it ends nothing")
    return failure.with_traceback(exc.__traceback__)
