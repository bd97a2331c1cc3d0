"""The server: it listens, and limits its connections in number, silence, slowness and memory.

A connection is closed when it is silent for two minutes, or when a frame takes as long to arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Set
from typing import Any

from appliance.remoting.acceptor import PlainListener
from appliance.remoting.access_gate import AccessGate
from appliance.remoting.client_peer import WRITE_BUFFER_HIGH_BYTES
from appliance.remoting.connection import ServerConnection
from appliance.remoting.fast_path import FastPath, SocketReader
from appliance.remoting.lane import Lane, Route
from appliance.remoting.lanes import Lanes
from appliance.remoting.tls import ServerTls
from appliance.remoting.tls_listener import TlsListener
from appliance.settings.sockets import SocketSettings
from gantrymq.log_limit import LogLimit
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

IDLE_SCAN_SECONDS = 10
CONNECTIONS_MAX = 10_000
CONNECTIONS_PER_ADDRESS_MAX = CONNECTIONS_MAX // 2  # one host, or all clients behind one gateway, leave room for others
FRAME_SECONDS_MAX = 120.0  # from a frame's first byte to its last
LEFT_BYTES_MAX = 64 * 1024 * 1024  # unserved requests of connections that are gone
STANDSTILL_SECONDS = 5.0  # a scan so late means that this process stalled, and has not read what clients sent
HELD_BYTES_MAX = 512 * 1024 * 1024  # read from all connections and not served yet: mostly incomplete frames
CROWD = 1000  # with more connections new sockets get a smaller receive buffer, since each of them may be flooded
CROWD_RECEIVE_BUFFER_BYTES = 32 * 1024
DEFAULT_SOCKETS = SocketSettings()


class RemotingServer:
    """A listener whose connections feed the lanes.

    `open` binds, `serve` takes connections, `run` closes idle peers, `close` closes everything. Two steps, because the
    handlers may have to know the port.
    """

    def __init__(
        self,
        lanes: Lanes,
        *,
        host: str,
        port: int,
        on_close: Callable[[ServerConnection], None] | None = None,
        access: AccessGate | None = None,
        tls: ServerTls | None = None,
        sockets: SocketSettings = DEFAULT_SOCKETS,
    ) -> None:
        self.lanes = lanes
        self.routes: dict[int, tuple[Lane, Route]] = {}
        self.sockets = sockets
        self.frame_bytes_max = sockets.frame_bytes_max
        self.access = access  # None: no access control
        self.fast_path: FastPath | None = None  # the compiled twin of plain requests, where there is one
        self.reader: SocketReader | None = None  # reads for it
        self._host = host
        self._requested_port = port
        self._on_close = on_close
        self._connections: set[ServerConnection] = set()
        self._per_address: Counter[str] = Counter()
        self.held_bytes = 0  # of all connections
        self.left_bytes = 0  # of those that are gone
        self.log_limit = LogLimit()
        self._tls = tls
        self._listener: PlainListener | None = None
        self._all_gone = asyncio.Event()  # set when the last connection goes
        self.port = port

    async def open(self) -> int:
        """Bind and listen; returns the port (useful when port 0 was requested). Raises OSError when it is taken.

        Connections wait until `serve`.
        """
        make, host, port = lambda: ServerConnection(self), self._host, self._requested_port
        if self._tls is not None:
            self._listener = TlsListener(make, self._tls, host=host, port=port, backlog=self.sockets.backlog)
        else:
            self._listener = PlainListener(make, host=host, port=port, backlog=self.sockets.backlog)
        self.port = await self._listener.open()
        return self.port

    def serve(
        self,
        routes: Mapping[int, Route],
        fast_path: FastPath | None = None,
        make_reader: Callable[[FastPath, Lanes], SocketReader | None] | None = None,
    ) -> None:
        """Take connections from now on, their requests by these routes. Without `open` there is no port to serve.

        fast_path: serves those that it knows before they get to a route; what `make_reader` makes reads for it.
        """
        self.fast_path = fast_path
        if fast_path is not None and make_reader is not None:
            self.reader = make_reader(fast_path, self.lanes)
        if self.reader is not None:
            asyncio.get_running_loop().add_reader(self.reader.fileno(), self.reader.drain)
        self.routes.update({int(code): (self.lanes.by_name[route.lane], route) for code, route in routes.items()})
        if self._listener is not None:
            self._listener.accept()

    async def run(self) -> None:
        """Close connections that are silent for idle_seconds_max, or whose frame takes too long."""
        while True:
            pause_seconds = min(IDLE_SCAN_SECONDS, self.sockets.idle_seconds_max / 4, FRAME_SECONDS_MAX / 4)
            due = time.monotonic() + pause_seconds
            await asyncio.sleep(pause_seconds)
            now = time.monotonic()
            # After a stall the clients look silent, but their bytes wait in the sockets: skip this scan.
            if now - due < STANDSTILL_SECONDS:
                self.close_the_lost(now)

    def close_the_lost(self, now: float) -> None:
        """Scan every connection once."""
        idle_seconds_max = self.sockets.idle_seconds_max
        for connection in list(self._connections):
            if now - connection.last_seen > idle_seconds_max:
                connection.close(f"silent for {idle_seconds_max} s")
            elif not connection.waits_for_bytes or connection.frame_count != connection.frame_count_seen:
                connection.frame_count_seen = connection.frame_count
                connection.stuck_since = now
            elif now - connection.stuck_since > FRAME_SECONDS_MAX:
                self.warn("frame too slow", connection, seconds=FRAME_SECONDS_MAX, held_bytes=connection.held_bytes)
                connection.close(f"a frame took longer than {FRAME_SECONDS_MAX:g} s")

    async def close(self) -> None:
        """Stop accepting and close every connection."""
        self._all_gone.clear()
        if self._listener is not None:
            await self._listener.close()
        self.drop_connections("server stops")
        with contextlib.suppress(TimeoutError):
            async with timeout(2):
                if self._connections:
                    await self._all_gone.wait()  # a TLS close needs the peer's close_notify
        if self.reader is not None:
            asyncio.get_running_loop().remove_reader(self.reader.fileno())
            self.reader.close()
            self.reader = None
        self._listener = None

    def drop_connections(self, reason: str) -> None:
        """Close all there are, with what was answered until now; new ones are served."""
        for connection in list(self._connections):
            connection.close(reason)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def connections(self) -> Set[ServerConnection]:
        """Those that are open, for looking at."""
        return self._connections

    @property
    def refused_for_files(self) -> tuple[int, float | None]:
        """(connections refused because the process had too few files left, monotonic seconds of the last time)."""
        acceptor = self._listener.acceptor if self._listener is not None else None
        return (acceptor.refused, acceptor.refused_at) if acceptor is not None else (0, None)

    def tune(self, transport: asyncio.Transport) -> None:
        """Set the buffer sizes of a new connection as the settings say."""
        sockets = self.sockets
        receive_buffer_bytes = sockets.receive_buffer_bytes
        if len(self._connections) >= CROWD:
            receive_buffer_bytes = min(receive_buffer_bytes or CROWD_RECEIVE_BUFFER_BYTES, CROWD_RECEIVE_BUFFER_BYTES)
        transport.set_write_buffer_limits(high=sockets.write_high_bytes or WRITE_BUFFER_HIGH_BYTES)
        sizes = ((socket.SO_SNDBUF, sockets.send_buffer_bytes), (socket.SO_RCVBUF, receive_buffer_bytes))
        for which, size_bytes in sizes:
            if size_bytes:
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, which, size_bytes)

    def admit(self, connection: ServerConnection) -> bool:
        """Count a new connection; False when there are too many."""
        address = connection.remote_address[0]
        if len(self._connections) >= CONNECTIONS_MAX or self._per_address[address] >= CONNECTIONS_PER_ADDRESS_MAX:
            self.warn("too many connections", connection, all=len(self._connections), here=self._per_address[address])
            return False
        self._connections.add(connection)
        self._per_address[address] += 1
        return True

    def hold_bytes(self, connection: ServerConnection, held_bytes: int) -> None:
        """Update a connection's unserved bytes. Above HELD_BYTES_MAX in all, close the connection that holds most."""
        more = held_bytes - connection.held_bytes
        connection.held_bytes = held_bytes
        if connection.is_gone:
            self.left_bytes += more
            return
        self.held_bytes += more
        if self.held_bytes <= HELD_BYTES_MAX:
            return
        worst = max((item for item in self._connections if not item.is_closing), key=_held_bytes, default=connection)
        self.warn("too much is held", worst, held_bytes=worst.held_bytes, all_bytes=self.held_bytes)
        worst.close("incomplete frames of all connections take too much memory")

    def warn(self, what: str, connection: ServerConnection, **facts: Any) -> None:
        """Log a warning about a peer; LogLimit bounds their number."""
        event = what.replace(" ", "_")
        left_out = self.log_limit.left_out(event, connection.remote_address[0])
        if left_out is not None:
            known = {"event": event, "peer": connection.remote_text}
            logger.warning("connection misused", extra=known | facts | ({"left_out": left_out} if left_out else {}))

    def forget(self, connection: ServerConnection, *, is_served_on: bool = False) -> bool:
        """Remove a closed connection. is_served_on: it still holds requests. Returns whether these may be kept."""
        self.held_bytes -= connection.held_bytes
        is_served_on = is_served_on and self.left_bytes + connection.held_bytes <= LEFT_BYTES_MAX
        if is_served_on:
            self.left_bytes += connection.held_bytes
        else:
            connection.held_bytes = 0
        self.lanes.usage_table.close(connection.usage)
        if connection in self._connections:
            self._connections.discard(connection)
            address = connection.remote_address[0]
            self._per_address[address] -= 1
            if not self._per_address[address]:
                del self._per_address[address]
            if not self._connections:
                self._all_gone.set()
            if self._on_close is not None:
                self._on_close(connection)
        return is_served_on


def _held_bytes(connection: ServerConnection) -> int:
    return connection.held_bytes
