"""One request to an address that was looked at: no redirect is followed, no proxy asked, a bounded answer is read."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dashboard.language.sentences import gettext
from dashboard.outward.targets import split_url

STEP_TIMEOUT_S = 10.0  # for each wait: who asks ends the whole of it after some more
Resolve = Callable[[str, int], str]  # host and port to the address to connect to; raises TargetRefused, NotResolved


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. trust: a file with the authorities (PEM) that count; empty: the machine's."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    trust: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came. is_whole: the body had no more bytes than were to be read."""

    status: int
    body: bytes
    is_whole: bool


class Call:
    """`send` blocks; `close` from another thread ends it."""

    def __init__(self, request: Request, resolve: Resolve, bytes_max: int) -> None:
        self._request = request
        self._resolve = resolve
        self._bytes_max = bytes_max
        self._socket: socket.socket | None = None
        self._is_closed = False

    def send(self) -> Answer:
        """The answer, up to `bytes_max` of it. Raises TargetRefused, NotResolved, OSError, HTTPException."""
        asked = self._request
        scheme, host, port = split_url(asked.url)
        plain = socket.create_connection((self._resolve(host, port), port), timeout=STEP_TIMEOUT_S)
        self._socket = plain
        try:
            if self._is_closed:
                raise TimeoutError(gettext("it was ended"))
            if scheme == "https":
                context = ssl.create_default_context(cafile=asked.trust or None)
                plain = self._socket = context.wrap_socket(plain, server_hostname=host)
            connection = http.client.HTTPConnection(host, port)
            connection.sock = plain
            parts = urlsplit(asked.url)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = dict(asked.headers) | {"Host": _host_header(scheme, host, port), "Connection": "close"}
            connection.request(asked.method, target, asked.body, headers)
            response = connection.getresponse()
            body = response.read(self._bytes_max + 1)
            return Answer(response.status, body[: self._bytes_max], len(body) <= self._bytes_max)
        finally:
            plain.close()

    def close(self) -> None:
        """End a send that takes too long; a send after it fails."""
        self._is_closed = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


def _host_header(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port == {"http": 80, "https": 443}[scheme] else f"{shown}:{port}"
