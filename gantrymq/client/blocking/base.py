"""BlockingClient: what the clients for threads have in common. Calls are handed to the shared loop and waited for.

A producer that was open when its process forked can be used in the child: its first call there opens it anew. A
consumer can't, because its queues are the parent's; the child makes its own.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from gantrymq.client.blocking.shared_loop import after_fork, shared_loop
from gantrymq.client.connection.lifecycle import Client
from gantrymq.errors import ClientClosed

T = TypeVar("T")

_all: weakref.WeakSet[BlockingClient] = weakref.WeakSet()


class BlockingClient:
    """An async client, made by `make`, started and closed through the shared loop."""

    reopens_after_fork: ClassVar[bool] = True
    _client: Client

    def __init__(self, make: Callable[[], Client]) -> None:
        self._is_open = False
        self._make = make
        self._client = make()
        self._changing = threading.Lock()  # starting and closing
        self._was_forked = False
        _all.add(self)

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._client.client_id

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(lambda client: client.__aexit__(kind, error, trace))

    def __del__(self) -> None:
        if getattr(self, "_is_open", False):
            warnings.warn(f"{type(self).__name__} was not closed", ResourceWarning, source=self, stacklevel=2)

    def start(self) -> None:
        """Open the client; on an open one this does nothing. ClientClosed when it was closed."""
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

    def _end(self, end: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        with self._changing:
            if not self._is_open:
                return
            self._is_open = False
            try:
                shared_loop.run(end(self._client))
            finally:
                shared_loop.release(self._client)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._require_open()
        except BaseException:
            work.close()
            raise
        return shared_loop.run(work)

    def _require_open(self) -> None:
        """ClientClosed unless the client is open, or can be opened again after a fork."""
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


def _forked() -> None:
    for client in list(_all):
        client._begin_in_child()


after_fork(_forked)  # after the shared loop's own: that one forgets the old clients
