"""Addresses without a listener."""

from __future__ import annotations

import atexit
import functools
import socket


@functools.cache
def closed_port() -> str:
    """An address of this host that refuses connections, as long as this process lives.

    The port is taken, but not listened at: no other process gets it, nor does a connection to it as its own end.
    """
    sock = socket.socket()
    atexit.register(sock.close)
    sock.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{sock.getsockname()[1]}"
