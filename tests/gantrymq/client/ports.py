"""Addresses without a listener, or without an answer."""

from __future__ import annotations

import atexit
import contextlib
import functools
import random
import socket
from collections.abc import Iterator

OF_NOBODY = range(20_000, 30_000)  # Linux gives out ports from 32768 on


@functools.cache
def closed_port() -> str:
    """An address of this host that refuses connections, as long as this process lives.

    The port is taken, but not listened at: no other process gets it, nor does a connection to it as its own end.
    """
    sock = socket.socket()
    atexit.register(sock.close)
    sock.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{sock.getsockname()[1]}"


@contextlib.contextmanager
def silent_host() -> Iterator[str]:
    """An address that answers no attempt to connect, as a host that was cut off."""
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):  # accepted by nobody: who comes next hears nothing from the kernel
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"127.0.0.1:{full.getsockname()[1]}"


def lasting_port(*, below: int) -> int:
    """A port that a server may come back to, free now with the one so far below: the kernel gives out neither."""
    for port in random.sample(OF_NOBODY, 100):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for each in (port, port - below):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", each))
            return port
    raise OSError("a hundred ports are taken")
