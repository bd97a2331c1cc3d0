"""Accepts connections while enough file descriptors are left for the store.

Each connection needs a descriptor, and so does every file of the store. If connections used them all, the broker could
not create the next file of its log. So RESERVED_FILES are kept back, and connections beyond are closed at once. That is
logged (a few lines only) and counted, because for a client it looks as if the broker were not there.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import time
from collections.abc import Callable

from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)

ACCEPTS_A_TURN = 64
ACCEPT_PAUSE_S = 1.0  # after the process ran out of descriptors
RESERVED_FILES = 512  # the store keeps up to 128 files open for reading; log files, tables and logs need the rest

GONE = ("0.0.0.0", 0)

_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def peer_address(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Host and port of a peer; GONE of one that reset the connection before it was accepted."""
    address = transport.get_extra_info("peername")
    return GONE if address is None else (str(address[0]), int(address[1]))


class Acceptor:
    """Listening sockets of one port; `arrived` gets each connection, non-blocking, and its "host:port"."""

    def __init__(self, arrived: Callable[[socket.socket, str], None], *, host: str, port: int, backlog: int) -> None:
        self._arrived = arrived
        self._host = host
        self._port = port
        self._backlog = backlog
        self._listening: list[socket.socket] = []
        self._paused: list[asyncio.TimerHandle] = []
        self._log_limit = LogLimit()
        self.refused = 0  # connections, because descriptors were short
        self.refused_at: float | None = None  # monotonic: when descriptors were short last

    async def open(self) -> int:
        """Bind and listen; returns the port. Who connects waits until `accept`. Raises OSError when it is taken."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host or None, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        port = self._port
        try:
            for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
                listening = _bound(family, str(address[0]), port, self._backlog)
                self._listening.append(listening)
                port = int(listening.getsockname()[1])
        except OSError:
            self.close()
            raise
        return port

    def accept(self) -> None:
        """Take connections from now on, those that wait already first."""
        loop = asyncio.get_running_loop()
        for listening in self._listening:
            loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Stop accepting. Connections made before stay."""
        loop = asyncio.get_running_loop()
        for pause in self._paused:
            pause.cancel()
        for listening in self._listening:
            loop.remove_reader(listening)
            listening.close()
        self._listening.clear()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as exc:
                if exc.errno not in _OUT_OF_RESOURCES:
                    raise
                self._pause(listening, exc)
                return
            peer = f"{address[0]}:{address[1]}"
            if sock.fileno() >= file_ceiling():
                sock.close()
                self._refuse(peer)
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._arrived(sock, peer)

    def _refuse(self, peer: str) -> None:
        self.refused += 1
        self.refused_at = time.monotonic()
        left_out = self._log_limit.left_out("out_of_files", "")
        if left_out is not None:
            facts = {"event": "out_of_files", "peer": peer, "files_max": files_max(), "refused": self.refused}
            logger.error(
                "connection refused: the process has too few files left; raise its limit of open files", extra=facts
            )

    def _pause(self, listening: socket.socket, exc: OSError) -> None:
        """Stop accepting for a moment when no descriptor is left: the socket stays readable, so a retry would spin."""
        self.refused_at = time.monotonic()
        facts = {"event": "accept_failed", "why": str(exc), "files_max": files_max()}
        logger.error("can't accept connections", extra=facts)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        self._paused = [pause for pause in self._paused if pause.when() > loop.time()]
        self._paused.append(loop.call_later(ACCEPT_PAUSE_S, loop.add_reader, listening, self._accept, listening))


def files_max() -> int:
    """The current limit of open files; it can be changed while the process runs (prlimit)."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def file_ceiling() -> int:
    """The first descriptor number that is refused to connections. The kernel hands out the lowest free number, so a
    connection with this number means that as many files are open."""
    limit = files_max()
    return limit - min(RESERVED_FILES, limit // 2)


def _bound(family: int, host: str, port: int, backlog: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(backlog)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class PlainListener:
    """One port. `make_protocol` is called for each connection.

    A connection that is not wanted any more while it is handed over has its socket shut down; its task is not
    cancelled. uvloop closes the transport of a task that is cancelled just then without a word to the protocol, even
    where that has heard `connection_made`: a caller that waits for its end would wait for ever.
    """

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol], *, host: str, port: int, backlog: int) -> None:
        self._make_protocol = make_protocol
        self.acceptor = Acceptor(self._arrive, host=host, port=port, backlog=backlog)
        self._arriving: dict[asyncio.Task[None], socket.socket] = {}  # oldest first

    async def open(self) -> int:
        """Bind and listen; returns the port. Who connects waits until `accept`. Raises OSError when it is taken."""
        return await self.acceptor.open()

    def accept(self) -> None:
        """Take connections from now on, those that wait already first."""
        self.acceptor.accept()

    async def close(self) -> None:
        """Stop accepting, and drop connections that are not handed over yet. The others stay open."""
        self.acceptor.close()
        arriving = dict(self._arriving)
        for sock in arriving.values():
            hang_up(sock)
        await asyncio.gather(*arriving, return_exceptions=True)

    def _arrive(self, sock: socket.socket, peer: str) -> None:
        task = asyncio.get_running_loop().create_task(self._welcome(sock, peer))
        self._arriving[task] = sock
        task.add_done_callback(lambda done: self._arriving.pop(done, None))

    async def _welcome(self, sock: socket.socket, peer: str) -> None:
        """Give the socket to the event loop, which then owns it."""
        with contextlib.suppress(OSError):  # the peer has closed it meanwhile
            await asyncio.get_running_loop().connect_accepted_socket(self._make_protocol, sock)


def hang_up(sock: socket.socket) -> None:
    """End a connection, no matter what has its socket: the next read meets the end of the stream."""
    with contextlib.suppress(OSError):  # it has ended already
        sock.shutdown(socket.SHUT_RDWR)
