"""Keeps tests marked `unit` from what they promise not to use: sockets and other processes.

Connecting a datagram socket sends nothing (it is how a host learns its own address), so it is allowed.
The pair of sockets that an asyncio loop wakes itself with is made without connecting or binding, so it is not touched.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing import util
from typing import Any

import pytest

GUARDED: tuple[tuple[object, str], ...] = (
    (socket.socket, "bind"),
    (socket.socket, "connect"),
    (socket.socket, "connect_ex"),
    (subprocess.Popen, "__init__"),
    (os, "fork"),
    (os, "posix_spawn"),
    (os, "posix_spawnp"),
    (util, "spawnv_passfds"),  # how multiprocessing starts a fresh interpreter
)


_brokers_beside = 0


@contextlib.contextmanager
def brokers_beside() -> Iterator[None]:
    """While the block runs, brokers of a fixture live on the session's loop, and connect while other tests run."""
    global _brokers_beside
    _brokers_beside += 1
    try:
        yield
    finally:
        _brokers_beside -= 1


def are_brokers_beside() -> bool:
    """Whether a connection may be such a broker's, and says nothing of a test. A fast run has no such brokers."""
    return _brokers_beside > 0


@contextlib.contextmanager
def nothing_outside(module: str) -> Iterator[None]:
    """While the block runs, a socket that connects or binds and a process that starts fail the test."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in GUARDED:
            patch.setattr(owner, name, _refusal(owner, name, module))
        yield


def _refusal(owner: object, name: str, module: str) -> Callable[..., Any]:
    original = getattr(owner, name)
    what = f"{getattr(owner, '__name__', owner)}.{name}"

    def refuse(*arguments: Any, **options: Any) -> Any:
        if name.startswith("connect") and arguments[0].type == socket.SOCK_DGRAM:
            return original(*arguments, **options)
        pytest.fail(
            f"a unit test called {what}. Tests marked unit use no socket and no other process: "
            f"if this one has to, name it, or all of {module}, in tests/suite/outside.txt"
        )

    return refuse
