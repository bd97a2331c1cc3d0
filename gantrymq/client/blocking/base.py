"""BlockingClient: what the clients for threads have in common. Calls are handed to the shared loop and waited for.

A producer that was open when its process forked can be used in the child: its first call there opens it anew. A
consumer can't, because its queues are the parent's; the child makes its own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from gantrymq.client.blocking.shared_loop import LoopClient, shared_loop
from gantrymq.client.connection.lifecycle import Client
from gantrymq.errors import ClientClosed
from gantrymq.forks import after_fork, notice_fork

P = ParamSpec("P")
T = TypeVar("T")
Part = TypeVar("Part")

_all: weakref.WeakSet[BlockingLife] = weakref.WeakSet()


class BlockingLife:
    """An async client, made by `make`, started and closed through the shared loop."""

    reopens_after_fork: ClassVar[bool] = True
    _client: LoopClient

    def __init__(self, make: Callable[[], LoopClient]) -> None:
        self._is_open = False
        self._make = make
        self._client = make()
        self._changing = threading.Lock()  # starting and closing
        self._was_forked = False
        _all.add(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(lambda client: client.__aexit__(kind, error, trace))

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:  # the module may be empty by now
        if getattr(self, "_is_open", False):
            _warn(f"{type(self).__name__} was not closed", ResourceWarning, source=self, stacklevel=2)

    def start(self) -> None:
        """Open the client; on an open one this does nothing. ClientClosed when it was closed."""
        notice_fork()
        self._require_process()
        with self._changing:
            if self._is_open:
                return
            shared_loop.acquire(self._client)
            try:
                shared_loop.run(self._client.start())
            except BaseException:
                shared_loop.release(self._client)
                raise
            self._is_open = True
            self._was_forked = False

    def close(self) -> None:
        """Leave the brokers and close the connections. Does nothing unless the client is open."""
        self._end(lambda client: client.close())

    def _end(self, end: Callable[[LoopClient], Coroutine[Any, Any, None]]) -> None:
        notice_fork()
        with self._changing:
            if not self._is_open:
                return
            try:
                shared_loop.run(end(self._client))  # still open: what it tells the application may call it
            finally:
                self._is_open = False
                shared_loop.release(self._client)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._require_open()
        except BaseException:
            work.close()
            raise
        return shared_loop.run(work)

    def _change(self, act: Callable[[], None]) -> None:
        """Have something of the client changed: by its loop while it is open, here before it is started."""
        if self._is_open:
            self._run(_on_loop(act))
        else:
            self._require_process()
            act()

    def _require_open(self) -> None:
        """ClientClosed unless the client is open, or can be opened again after a fork."""
        notice_fork()
        if self._is_open:
            return
        self._require_process()
        if not self._was_forked:
            raise ClientClosed("not started, or closed already")
        self.start()

    def _require_process(self) -> None:
        if self._was_forked and not self.reopens_after_fork:
            raise ClientClosed("opened before a fork: a consumer belongs to its process, so make one in this process")

    def _begin_in_child(self) -> None:
        self._changing = threading.Lock()  # another thread of the parent may have held it
        if self._is_open:
            self._is_open = False
            self._was_forked = True
            self._client = self._make()


class BlockingClient(BlockingLife):
    """A producer or consumer for threads."""

    _client: Client

    def _part(self) -> Any:
        return self._client

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._client.client_id


class Run(Protocol):
    """Runs a coroutine on the shared loop; returns or raises what it does."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class BlockingPart(Generic[Part]):
    """One part of a client, such as `admin.topics`. part: gives that of the client that is open now."""

    def __init__(self, part: Callable[[], Part], run: Run) -> None:
        self._part = part
        self._run = run

    def _each(self, found: AsyncGenerator[T, None]) -> Iterator[T]:
        """One after the other, each asked for when it is wanted."""
        try:
            while True:
                try:
                    yield self._run(_next(found))
                except StopAsyncIteration:
                    return
        finally:
            with contextlib.suppress(ClientClosed):  # then the loop has ended it
                self._run(_end(found))


def waited_for(call: Callable[Concatenate[Part, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """A call of an async client for its twin for threads, a BlockingClient or BlockingPart: it waits for the result.

    Editors, help() and type checkers see the call's arguments, result and help. Attributes that have it are `Final`,
    since type checkers infer nothing else of an installed package.
    """

    @functools.wraps(call)
    def waiting(self: Any, /, *given: P.args, **named: P.kwargs) -> T:
        result: T = self._run(call(self._part(), *given, **named))
        return result

    return waiting


async def _end(found: AsyncGenerator[T, None]) -> None:
    await found.aclose()


async def _on_loop(act: Callable[[], None]) -> None:
    act()


async def _next(found: AsyncGenerator[T, None]) -> T:
    return await anext(found)


def _forked() -> None:
    for client in list(_all):
        client._begin_in_child()


after_fork(_forked)  # after the shared loop's own: that one forgets the old clients
