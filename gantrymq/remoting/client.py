"""RemotingClient: connections by address, made when first needed and made again after they broke.

Calls from many tasks share one connection per address. A timeout covers the whole call: connecting, waiting for room,
sending, the answer. Requests that a server sends are given to `request_handlers` by code, each in a task of this
client.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping

from gantrymq.errors import ClientClosed, ConnectError, GantryError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import JSON, RemotingCommand
from gantrymq.remoting.connection import IN_FLIGHT_MAX, Answered, ClientConnection
from gantrymq.remoting.failures import not_connected, timed_out, why_not_connected
from gantrymq.remoting.home_loop import HomeLoop
from gantrymq.remoting.outages import Outages
from gantrymq.remoting.signature import Credentials, Stamper
from gantrymq.remoting.tls import ClientTls, TlsConfig
from gantrymq.timeouts import timeout, timeout_at

logger: logging.Logger = logging.getLogger(__name__)

RequestHandler = Callable[[str, RemotingCommand], Awaitable[RemotingCommand | None]]

HANDLERS_RUNNING_MAX = 256  # requests from servers that are handled at once; further ones are dropped


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port" or "[v6]:port". ConnectError when it is neither."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise ConnectError(address, "not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


class RemotingClient:
    """Sends requests to addresses ("ip:port"). Everything runs on the event loop that makes the first call: in another
    one all calls raise ClientClosed."""

    def __init__(
        self,
        *,
        request_handlers: Mapping[int, RequestHandler] | None = None,
        connect_timeout_s: float = 3.0,
        serialize_type: int = JSON,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | TlsConfig | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        outages: Outages | None = None,
    ) -> None:
        """outages: told which addresses can't be reached, and when they can again."""
        self._outages = outages
        self.request_handlers: dict[int, RequestHandler] = dict(
            request_handlers or {}
        )  # by code; may grow while running
        self._connect_timeout_s = connect_timeout_s
        self._serialize_type = serialize_type
        self._credentials = credentials
        self._tls = ClientTls(tls) if tls is not None else None
        self._in_flight_max = in_flight_max
        self._connections: dict[str, ClientConnection] = {}
        self._connecting: dict[str, asyncio.Task[ClientConnection]] = {}
        self._handling: set[asyncio.Task[None]] = set()
        self._closed = False
        self.home: HomeLoop = HomeLoop()
        # Headers are JSON and not signed: frames may be made without a command, and submitted to a connection.
        self.takes_frames: bool = serialize_type == JSON and credentials is None
        self.uses_tls: bool = tls is not None
        self.on_connected: Callable[[str], None] = lambda address: None  # called with the address of a new connection
        self.before_request: Callable[[RemotingCommand], None] | None = None  # what it raises, the caller gets

    async def invoke(self, address: str, request: RemotingCommand, *, timeout_s: float = 3.0) -> RemotingCommand:
        """Send a request and return its answer, whatever its code. Raises ConnectError or RequestTimeout."""
        self.home.enter()
        connection = self._connections.get(address)
        if connection is None or not connection.takes_calls:
            connection, timeout_s = await self._ready_connection(address, request, timeout_s)
        return await self.submit(connection, request, timeout_s)

    async def invoke_for(self, answered: Answered, address: str, request: RemotingCommand, *, timeout_s: float) -> None:
        """Send a request whose answer or failure goes to `answered` when it comes. Raises when it can't be sent."""
        self.home.enter()
        connection = self._connections.get(address)
        if connection is None or not connection.takes_calls:
            connection, timeout_s = await self._ready_connection(address, request, timeout_s)
        self.submit_for(answered, connection, request, timeout_s)

    async def invoke_oneway(self, address: str, request: RemotingCommand, *, timeout_s: float = 3.0) -> None:
        """Send a request that gets no answer. Raises when it can't be handed to a connection."""
        request.mark_oneway()
        self.home.enter()
        connection = self._connections.get(address)
        if connection is None or not connection.takes_calls:
            connection, timeout_s = await self._ready_connection(address, request, timeout_s)
        self.prepare(request, connection.stamper)
        connection.send(request)

    def open_connection(self, address: str) -> ClientConnection | None:
        """The connection to the address, if one is open."""
        connection = self._connections.get(address)
        return None if connection is None or connection.is_closing else connection

    def free_connection(self, address: str) -> ClientConnection | None:
        """The connection to the address, if one is open and has room."""
        connection = self._connections.get(address)
        return None if connection is None or not connection.takes_calls else connection

    def silent_for(self, seconds: float) -> set[str]:
        """The addresses where a call waits that long for anything from the peer. Long polls don't count."""
        return {address for address, each in self._connections.items() if each.waits_s() >= seconds}

    def end_silent(self, address: str, seconds: float, reason: str) -> None:
        """Close the connection to the address when calls wait, long polls too, and nothing came for that long;
        otherwise end its long polls. One that is being made is given up: a host that was cut off answers nothing."""
        if address in self._connecting:
            self._connecting[address].cancel()
        connection = self._connections.get(address)
        if connection is None:
            return
        if connection.waits_s(long_polls=True) >= seconds:
            connection.close(reason)
        else:
            connection.end_long_polls(reason)

    async def connection(self, address: str, request: RemotingCommand, timeout_s: float) -> ClientConnection:
        """A connection with room for the request: for callers that pipeline with submit."""
        self.home.enter()
        connection = self._connections.get(address)
        if connection is None or not connection.takes_calls:
            connection, _ = await self._ready_connection(address, request, timeout_s)
        return connection

    def submit(
        self, connection: ClientConnection, request: RemotingCommand, timeout_s: float
    ) -> asyncio.Future[RemotingCommand]:
        """Send on a connection got from `connection`, without waiting."""
        self.prepare(request, connection.stamper)
        return connection.submit(request, timeout_s)

    def submit_for(
        self, answered: Answered, connection: ClientConnection, request: RemotingCommand, timeout_s: float
    ) -> None:
        """As `submit`, for one that is called in place of a future."""
        self.prepare(request, connection.stamper)
        connection.submit_for(answered, request, timeout_s)

    def prepare(self, request: RemotingCommand, stamper: Stamper) -> None:
        """Give the request the client's header encoding, and its signature for the connection of the stamper."""
        if self.before_request is not None:
            self.before_request(request)
        request.serialize_type = self._serialize_type
        if self._credentials is not None:
            self._credentials.sign(request, stamper)

    async def close(self) -> None:
        """Close every connection and end every handler. Calls in flight fail with ConnectError.

        ClientClosed in another loop; when the client's own will never run again, the sockets are closed
        without a word to the peers."""
        if self.home.is_gone:
            self.abandon()
        self.home.require()
        self._closed = True
        tasks: list[asyncio.Task[ClientConnection] | asyncio.Task[None]] = [*self._connecting.values(), *self._handling]
        tasks = [task for task in tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close("client closed")
        await asyncio.gather(*(connection.wait_closed() for connection in connections))

    def abandon(self) -> None:
        """Close the sockets without a word to the peers: in a child of a fork, where the parent goes on with its own,
        or when the event loop is gone."""
        self._closed = True
        for connection in self._connections.values():
            connection.abandon()

    # -- connecting ---------------------------------------------------------------------------------------------------

    async def _ready_connection(
        self, address: str, request: RemotingCommand, timeout_s: float
    ) -> tuple[ClientConnection, float]:
        """Return a connection with room, and what is left of the time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            async with timeout_at(deadline):
                connection = await self.connect(address)
                while not connection.has_room:
                    await connection.room(deadline - loop.time())
        except TimeoutError:
            raise timed_out(address, request.code, timeout_s) from None
        except ConnectError as exc:  # several callers may wait for one connection: each gets its own error
            raise not_connected(address, exc.reason, request.code, hint=exc.hint) from exc.__cause__
        return connection, deadline - loop.time()

    async def connect(self, address: str) -> ClientConnection:
        """The open connection to the address; callers that come while it is being made wait for the same one.

        ConnectError when none can be made."""
        if self._closed:
            raise ClientClosed("the client is closed")
        connection = self._connections.get(address)
        if connection is not None and not connection.is_closing:
            return connection
        task = self._connecting.get(address)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open(address), name=f"connect {address}")
            self._connecting[address] = task
            task.add_done_callback(lambda done: self._connecting_done(address, done))
        before = _cancelling()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled() or _cancelling() > before:  # the caller was
                raise
            if self._closed:
                raise ClientClosed("the client was closed") from None
            raise ConnectError(address, "given up: the broker's master serves elsewhere") from None

    def _connecting_done(self, address: str, task: asyncio.Task[ClientConnection]) -> None:
        self._connecting.pop(address, None)
        if not task.cancelled():
            task.exception()  # every caller may have given up by now; the failure was theirs to see

    async def _open(self, address: str) -> ClientConnection:
        try:
            connection = await self._connected(address)
        except ConnectError as exc:
            if self._outages is not None:
                self._outages.unreachable(address, exc.reason)
            raise
        self._connections[address] = connection
        self.on_connected(address)
        return connection

    async def _connected(self, address: str) -> ClientConnection:
        host, port = split_address(address)
        loop = asyncio.get_running_loop()
        try:
            async with timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: ClientConnection(
                        address, self._request_received, in_flight_max=self._in_flight_max, outages=self._outages
                    ),
                    host,
                    port,
                    ssl=self._tls.context() if self._tls is not None else None,
                )
        except TimeoutError:
            raise ConnectError(address, f"no connection within {self._connect_timeout_s:g} s") from None
        except OSError as exc:  # ssl.SSLError is one
            reason, hint = why_not_connected(exc, uses_tls=self._tls is not None)
            raise ConnectError(address, reason, hint=hint) from exc
        except RuntimeError as exc:  # the interpreter ends: there is no thread any more to look a name up
            raise ConnectError(address, str(exc)) from exc
        return connection

    # -- requests from servers ----------------------------------------------------------------------------------------

    def _request_received(self, connection: ClientConnection, request: RemotingCommand) -> None:
        handler = self.request_handlers.get(request.code)
        if handler is None:
            if not request.is_oneway:
                connection.send(
                    request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f"request type {request.code} not supported")
                )
            return
        if len(self._handling) >= HANDLERS_RUNNING_MAX or self._closed:
            logger.warning(
                "server request dropped (code=%s)",
                request.code,
                extra={"event": "server_request_dropped", "code": request.code},
            )
            return
        task = asyncio.get_running_loop().create_task(self._handle(connection, request, handler))
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    async def _handle(self, connection: ClientConnection, request: RemotingCommand, handler: RequestHandler) -> None:
        try:
            answer = await handler(connection.address, request)
        except GantryError as exc:  # expected: the server is told which
            answer = request.reply(ResponseCode.SYSTEM_ERROR, str(exc))
        except Exception:
            logger.exception(
                "request handler failed (code=%s)",
                request.code,
                extra={"event": "request_handler_failed", "code": request.code},
            )
            answer = request.reply(ResponseCode.SYSTEM_ERROR, "system error")
        if answer is not None and not request.is_oneway and not connection.is_closing:
            connection.send(answer)


def _cancelling() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
