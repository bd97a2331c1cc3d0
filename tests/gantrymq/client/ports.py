"""Addresses without a listener."""

from __future__ import annotations

import socket


def closed_port() -> str:
    """An address of this host whose port was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"
