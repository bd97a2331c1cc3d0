"""Connections of threads: plain sockets on which a thread writes one request and waits for its answer.

No event loop has a part in it, so such a call is one write and one read: a third of what handing it to a loop's thread
and being woken by it costs. A connection has one call at a time. One that failed, or whose answer did not come in
time, is closed: a late answer must not be taken for the next call's.

Bounded: CONNECTIONS_MAX at once for a client. A thread that gets none goes the other way, through the event loop; so
does every call while a new connection can't be made, and every call of a client with TLS.
"""

from __future__ import annotations

import logging
import math
import socket
import struct
import threading
import time

from gantrymq.errors import ConnectError, FrameError
from gantrymq.remoting.client import split_address
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import CLOSED_BY_PEER
from gantrymq.remoting.failures import not_connected, timed_out
from gantrymq.remoting.protocol import RemotingProtocol
from gantrymq.remoting.signature import Stamper

logger: logging.Logger = logging.getLogger(__name__)

CONNECTIONS_MAX = 16
CONNECT_TIMEOUT_S = 1.0
PAUSE_S = 5.0  # after a connection could not be made, until the next is tried
IDLE_S = 30.0  # unused for longer, one that others would do for is closed; brokers close it after 120 s
READ_BYTES = 4096

_TIMEVAL = struct.Struct("@ll")  # seconds, microseconds


class ThreadConnection:
    """One socket to one address, for one call at a time."""

    __slots__ = ("_protocol", "_socket", "_timeout_s", "address", "called_at", "stamper", "used_at")

    def __init__(self, address: str, connected: socket.socket) -> None:
        self.address: str = address
        self.stamper: Stamper = Stamper()  # a stamp is good for one connection only
        self.used_at: float = 0.0
        self.called_at: float = math.inf  # when the call under way began
        self._socket = connected
        self._protocol = RemotingProtocol()
        self._timeout_s = 0.0

    def is_quiet(self) -> bool:
        """Whether the peer has neither closed it nor said what it was not asked for."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def call(self, code: int, opaque: int, frame: bytes, timeout_s: float) -> RemotingCommand:
        """The answer to a request. RequestTimeout, ConnectError: the connection is of no use any more."""
        self.called_at = now = time.monotonic()
        deadline = now + timeout_s
        if timeout_s != self._timeout_s:
            self._limit(timeout_s)
        try:
            self._socket.sendall(frame)
            while True:
                data = self._socket.recv(READ_BYTES)
                if not data:
                    raise not_connected(self.address, CLOSED_BY_PEER, code)
                self._protocol.receive_data(data)
                while (command := self._protocol.next_command()) is not None:
                    if command.opaque == opaque and command.is_response:
                        return command
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise timed_out(self.address, code, timeout_s)
                self._limit(left_s)
        except BlockingIOError:  # how the kernel says that the time is up
            raise timed_out(self.address, code, timeout_s) from None
        except OSError as exc:
            raise not_connected(self.address, f"connection lost: {exc}", code) from exc
        except FrameError as exc:
            raise not_connected(self.address, f"bad frame: {exc}", code) from exc

    def _limit(self, timeout_s: float) -> None:
        """Have the kernel end a write or a read after that time: Python's own limit would be one more call each."""
        whole_s = int(timeout_s)
        limit = _TIMEVAL.pack(whole_s, max(int((timeout_s - whole_s) * 1e6), 1))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._timeout_s = timeout_s

    def hang_up(self) -> None:
        """End the call of another thread: it sees the connection closed."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError as exc:  # the peer was first
            logger.debug("not shut down: %s", exc, extra={"event": "not_shut_down", "address": self.address})

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class ThreadConnections:
    """The connections of one client's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[ThreadConnection]] = {}
        self._all: set[ThreadConnection] = set()
        self._not_before: dict[str, float] = {}  # by address: time.monotonic()
        self._opening = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._all)

    def take(self, address: str) -> ThreadConnection | None:
        """A connection for one call, which ends with `give_back` or `drop`. None when there is none to be had now;
        ConnectError when the host does not answer."""
        while True:
            with self._lock:
                idle = self._idle.get(address)
                connection = idle.pop() if idle else None
            if connection is None:
                return self._open(address)
            if connection.is_quiet():
                return connection
            self.drop(connection, CLOSED_BY_PEER)

    def give_back(self, connection: ThreadConnection) -> None:
        """The call has its answer: another may follow on the connection."""
        connection.used_at = now = time.monotonic()
        connection.called_at = math.inf
        old: ThreadConnection | None = None
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                idle = self._idle.setdefault(connection.address, [])
                idle.append(connection)
                if now - idle[0].used_at > IDLE_S:
                    old = idle.pop(0)
        if is_closed:
            self.drop(connection, "client closed")
        elif old is not None:
            self.drop(old, "unused")

    def drop(self, connection: ThreadConnection, reason: str) -> None:
        """Close a connection that was taken."""
        with self._lock:
            self._all.discard(connection)
        connection.close()
        logger.info(
            "connection closed (address=%s): %s",
            connection.address,
            reason,
            extra={"event": "connection_closed", "address": connection.address, "reason": reason},
        )

    def close(self) -> None:
        """Close what is unused; calls in progress end with ConnectError."""
        with self._lock:
            self._is_closed = True
            unused = [connection for idle in self._idle.values() for connection in idle]
            self._idle.clear()
            for connection in self._all.difference(unused):
                connection.hang_up()
        for connection in unused:
            self.drop(connection, "client closed")

    def silent_for(self, seconds: float) -> set[str]:
        """The addresses where a call waits that long for its answer."""
        began_before = time.monotonic() - seconds
        with self._lock:
            return {each.address for each in self._all if each.called_at <= began_before}

    def end_silent(self, address: str, seconds: float, reason: str) -> None:
        """End the calls there that wait for that long, with ConnectError, and close what is unused."""
        began_before = time.monotonic() - seconds
        with self._lock:
            unused = self._idle.pop(address, [])
            for each in self._all:
                if each.address == address and each.called_at <= began_before:
                    each.hang_up()
        for each in unused:
            self.drop(each, reason)

    def abandon(self) -> None:
        """In a child of a fork: close this process's copies; the parent goes on with its own. The lock may be held by
        a thread that is not here."""
        for connection in self._all:
            connection.close()

    def _open(self, address: str) -> ThreadConnection | None:
        with self._lock:
            is_time = time.monotonic() >= self._not_before.get(address, 0.0)
            if self._is_closed or not is_time or len(self._all) + self._opening >= CONNECTIONS_MAX:
                return None
            self._opening += 1
        connected: socket.socket | None = None
        is_silent = False
        try:
            connected = socket.create_connection(split_address(address), CONNECT_TIMEOUT_S)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.settimeout(None)
        except (OSError, ConnectError) as exc:
            is_silent = isinstance(exc, TimeoutError)
            logger.info(
                "no connection of a thread's own (address=%s): %s",
                address,
                exc,
                extra={"event": "thread_not_connected", "address": address, "error": str(exc)},
            )
        finally:
            with self._lock:
                self._opening -= 1
                if connected is None:
                    self._not_before[address] = time.monotonic() + PAUSE_S
        if is_silent:
            raise ConnectError(address, f"no connection within {CONNECT_TIMEOUT_S:g} s")
        return None if connected is None else self._opened(address, connected)

    def _opened(self, address: str, connected: socket.socket) -> ThreadConnection | None:
        connection = ThreadConnection(address, connected)
        with self._lock:
            if not self._is_closed:
                self._all.add(connection)
        if connection not in self._all:
            connection.close()
            return None
        logger.info("connection opened (address=%s)", address, extra={"event": "connection_opened", "address": address})
        return connection
