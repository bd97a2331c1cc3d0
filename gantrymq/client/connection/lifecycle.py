"""The life of a client, which producers and consumers share: new, open, closed."""

from __future__ import annotations

import asyncio
import warnings
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from gantrymq.client.connection.session import ClientSession


class Client(ABC):
    """A producer or consumer. `async with` starts and closes it; it can be opened once.

    Calls before `start` and after `close` raise ClientClosed.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._is_closing = False
        self._starting = asyncio.Lock()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)  # None: the arguments were refused
        if session is not None and session.is_open:
            warnings.warn(f"{type(self).__name__} was not closed", ResourceWarning, source=self, stacklevel=2)

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._session.client_id

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Open the client; on an open one this does nothing. ClientClosed when it was closed, or started in another
        event loop. Callers at the same time wait for the same opening."""
        self._session.require_home()
        async with self._starting:
            if not self._session.is_open:
                await self._open()

    async def close(self) -> None:
        """Leave the brokers and close the connections. Does nothing unless the client is open. ClientClosed in another
        event loop than the client's; if that one is closed, the connections are dropped first."""
        if not self._session.is_open:
            return
        home = self._session.remoting.home
        if home.is_gone:  # it will never run again: brokers only see the client's connections end
            self.abandon()
        home.require()
        if self._is_closing:
            return
        self._is_closing = True
        try:
            await self._shut_down()
        finally:
            self._is_closing = False  # an interrupted close can be repeated; after a whole one the session is closed

    def abandon(self) -> None:
        """Forget the connections, whose event loop is gone: in a child that a fork made they are the parent's."""
        self._session.abandon()

    @abstractmethod
    async def _open(self) -> None:
        """Open the session and begin the client's work. When this raises, the session is not open."""

    @abstractmethod
    async def _shut_down(self) -> None:
        """End the client's work, then close the session."""
