"""One POST to an address that was looked at. No redirect is followed, no proxy asked, little of the answer is read."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from appliance.settings.appliance_config import Network
from dashboard.alarms.outgoing import Outgoing
from dashboard.alarms.targets import resolve, split_url

STEP_TIMEOUT_S = 10.0  # for each wait: the service ends the whole of it after some more
ANSWER_BYTES_MAX = 4096


class Post:
    """`send` blocks; `close` from another thread ends it."""

    def __init__(self, outgoing: Outgoing, allowed: Sequence[Network]) -> None:
        self._outgoing = outgoing
        self._allowed = allowed
        self._socket: socket.socket | None = None

    def send(self) -> tuple[int, str]:
        """Status, and the begin of the answer. Raises TargetRefused, NotResolved, OSError, HTTPException."""
        scheme, host, port = split_url(self._outgoing.url)
        address = resolve(host, port, self._allowed)
        plain = socket.create_connection((address, port), timeout=STEP_TIMEOUT_S)
        self._socket = plain
        try:
            if scheme == "https":
                plain = self._socket = ssl.create_default_context().wrap_socket(plain, server_hostname=host)
            connection = http.client.HTTPConnection(host, port)
            connection.sock = plain
            parts = urlsplit(self._outgoing.url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = dict(self._outgoing.headers) | {"Host": _host_header(scheme, host, port), "Connection": "close"}
            connection.request("POST", target, self._outgoing.body, headers)
            response = connection.getresponse()
            return response.status, response.read(ANSWER_BYTES_MAX).decode("utf-8", "replace")
        finally:
            plain.close()

    def close(self) -> None:
        """End a send that takes too long."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


def _host_header(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port == {"http": 80, "https": 443}[scheme] else f"{shown}:{port}"
