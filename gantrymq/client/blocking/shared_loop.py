"""The event loop that all blocking clients of a process share, in one background thread.

It starts with the first open client and ends with the last. Open clients are held here, so a consumer whose maker kept
no reference goes on; what is still open when the interpreter ends is closed then.

After a fork only the forking thread lives on, so the child's copy of the loop is dead. The child forgets it and
begins with none; its copies of the parent's connections are closed without a word to the other side.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, TypeVar

from gantrymq.errors import ClientClosed
from gantrymq.forks import after_fork, notice_fork
from gantrymq.timeouts import timeout

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_S = 1.0  # between two looks of a waiting caller whether the loop's thread is still there
END_WAIT_S = 30.0  # for the loop's thread to end: what a client runs on it may not


class LoopClient(Protocol):
    """What runs on the loop: a client for asyncio."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def abandon(self) -> None: ...


class SharedLoop:
    """The loop, its thread and the open clients; `acquire` and `release` a client around its life."""

    def __init__(self) -> None:
        self._abandoned: list[object] = []  # of the process before a fork: never used again, and never destroyed
        self._begin_empty()

    def _begin_empty(self) -> None:
        self._lock = threading.Lock()
        self._clients: set[LoopClient] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._has_ended = threading.Event()  # of that loop: an exit makes it forget that it was told to stop

    def acquire(self, client: LoopClient) -> None:
        with self._lock:
            if not self._clients:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="gantrymq-blocking-io"))
                self._has_ended = threading.Event()
                arguments = (self._loop, self._has_ended)
                self._thread = threading.Thread(target=_run, args=arguments, name="gantrymq-blocking", daemon=True)
                self._thread.start()
            self._clients.add(client)

    def release(self, client: LoopClient) -> None:
        with self._lock:
            self._clients.discard(client)
            loop, thread, has_ended = self._loop, self._thread, self._has_ended
            if self._clients or loop is None or thread is None:
                return
            self._loop = self._thread = None
        has_ended.set()
        loop.call_soon_threadsafe(loop.stop)
        if thread is threading.current_thread():
            return
        thread.join(END_WAIT_S)
        if thread.is_alive():
            logger.warning("the clients' event loop does not stop", extra={"event": "shared_loop_stuck"})
        else:
            loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop; return or raise what it does. An interrupted wait cancels the work."""
        try:
            loop, thread = self._beside()
            with _told_when_closed(loop):
                future = asyncio.run_coroutine_threadsafe(work, loop)
        except BaseException:
            work.close()
            raise
        try:
            return _result(future, thread)
        except BaseException:
            if thread.is_alive():
                future.cancel()
            elif inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()  # the loop ended before it came to this, and nothing begins it any more
            raise

    def begin(self, act: Callable[[], None], has_ended: threading.Lock) -> None:
        """Have `act` called on the loop, and wait until what it begins releases `has_ended`."""
        loop, thread = self._beside()
        with _told_when_closed(loop):
            loop.call_soon_threadsafe(act)
        while not has_ended.acquire(timeout=LOOK_S):
            if not thread.is_alive():
                if has_ended.acquire(blocking=False):  # it has just ended
                    return
                raise ClientClosed("closed by another thread while this call waited")

    def _beside(self) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
        """The loop and its thread, for a call from another thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            raise ClientClosed("not started, or closed already")
        if thread is threading.current_thread():
            raise RuntimeError("a blocking call from the event loop's own thread would wait for itself")
        return loop, thread

    def require_beside(self) -> None:
        """As every blocking call: ClientClosed without a loop, RuntimeError in its own thread."""
        self._beside()

    def call_soon(self, act: Callable[[], None]) -> None:
        """Have `act` called on the loop. ClientClosed when there is none."""
        loop = self._loop
        if loop is None:
            raise ClientClosed("not started, or closed already")
        with _told_when_closed(loop):
            loop.call_soon_threadsafe(act)

    def close_all(self) -> None:
        """Close what is open when the interpreter ends: finished messages are committed, others come again."""
        notice_fork()
        for client in list(self._clients):
            try:
                self.run(_close(client))
            except Exception as exc:  # an exit goes on whatever a client says
                logger.warning(
                    "client not closed at exit (client=%s): %s",
                    type(client).__name__,
                    exc,
                    extra={"event": "not_closed_at_exit", "client": type(client).__name__, "error": str(exc)},
                )
            self.release(client)

    def abandon(self) -> None:
        """In the child of a fork: forget the parent's loop and clients, which must not be touched again."""
        clients = self._clients
        self._abandoned.append((self._loop, self._thread, clients))
        self._begin_empty()
        for client in clients:
            client.abandon()


def _run(loop: asyncio.AbstractEventLoop, has_ended: threading.Event) -> None:
    """Run until the loop is stopped. What an application's function raises that asyncio ends loops for, such as
    sys.exit() of a queue selector, is the outcome of its call, or of its round in the background: others go on."""
    while not has_ended.is_set():
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt) as exc:
            logger.warning(
                "the application's function ended its call: %s",
                type(exc).__name__,
                extra={"event": "exit_on_shared_loop", "error": type(exc).__name__},
            )


@contextlib.contextmanager
def _told_when_closed(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Another thread may close the last client, and with it the loop, while this one hands over its call."""
    try:
        yield
    except RuntimeError:
        if not loop.is_closed():
            raise
        raise ClientClosed("closed by another thread before this call began") from None


def _result(future: concurrent.futures.Future[T], thread: threading.Thread) -> T:
    """What the future brings. Each call bounds its own time; here only the end of the loop's thread ends the wait."""
    while True:
        try:
            return future.result(LOOK_S)
        except TimeoutError:
            if future.done():
                return future.result()  # the call's own TimeoutError, or an answer that has just come
            if not thread.is_alive():
                raise ClientClosed("closed by another thread while this call waited") from None


async def _close(client: LoopClient) -> None:
    async with timeout(END_WAIT_S):
        await client.close()


shared_loop: SharedLoop = SharedLoop()
atexit.register(shared_loop.close_all)
after_fork(shared_loop.abandon)
