"""A visitor of a running dashboard, seen from its socket: a browser's cookies and forms, without a browser."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import psutil
import websocket

from tests.appliance_process import RunningAppliance

PASSWORD = "a long way from 1234"
SECONDS_MAX = 60.0


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    text: str


class Visitor:
    """`base` as the address line shows it; `tls` to trust more than the system does; `source`: from which address."""

    def __init__(self, base: str, tls: ssl.SSLContext | None = None, *, source: str = "127.0.0.1") -> None:
        self.base = base.rstrip("/")
        self.tls = tls
        self._source = (source, 0)
        self.cookies: dict[str, str] = {}
        self.set_cookies: dict[str, str] = {}  # name to the whole line, as last set
        self.headers: dict[str, str] = {}

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        url = urlsplit(self.base)
        assert url.hostname is not None
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(
                url.hostname, url.port, timeout=SECONDS_MAX, context=self.tls, source_address=self._source
            )
        else:
            connection = http.client.HTTPConnection(
                url.hostname, url.port, timeout=SECONDS_MAX, source_address=self._source
            )
        try:
            sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
            if self.cookies:
                sent["Cookie"] = self.cookie_header()
            connection.request(method, path, body or None, sent)
            answer = connection.getresponse()
            self._keep_cookies(answer.headers)
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def submit(self, path: str, fields: dict[str, str], *, page: str = "", form: str | None = None) -> Answer:
        """Load `page` (else `path`), fill its form in and send it to `form` (else `path`), as a browser would."""
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get(page or path).text)
        assert found is not None, "the page has no form"
        return self.post(form or path.partition("?")[0], fields | {"csrfmiddlewaretoken": found[1]})

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        """Send a form as it stands; without a `csrfmiddlewaretoken` among its fields it is refused."""
        return self.request(
            "POST", path, urlencode(fields).encode(), Origin=self.base, Content_Type="application/x-www-form-urlencoded"
        )

    def become_admin(self, first_run_token: str) -> None:
        """Use the link of the first run; the visitor is logged in then."""
        fields = {"username": "admin", "password": PASSWORD, "again": PASSWORD, "token": first_run_token}
        answer = self.submit(f"/first-run?token={first_run_token}", fields)
        assert answer.status == 302, answer.text

    def send_message(self, topic: str, body: str) -> Answer:
        """Make a topic and send one message to it, by the forms."""
        made = self.submit("/topics/create", {"name": topic, "queues": "1", "perm": "read-write"})
        assert made.status in (200, 302), made.text
        return self.submit(f"/topic/{topic}/send", {"body": body, "delay_level": "0"}, page=f"/topic/{topic}")

    def log_in(self, password: str = PASSWORD) -> Answer:
        return self.submit("/login", {"username": "admin", "password": password})

    def live(self, origin: str = "") -> websocket.WebSocket:
        """The live socket of a page that came from `origin`, the visitor's own address when empty."""
        return websocket.create_connection(
            f"{self.base.replace('http', 'ws', 1)}/live", cookie=self.cookie_header(), origin=origin or self.base,
            sslopt={"context": self.tls} if self.tls else None, timeout=SECONDS_MAX,
        )  # fmt: skip

    def cookie_header(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _keep_cookies(self, headers: http.client.HTTPMessage) -> None:
        for line in headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                self.set_cookies[name] = line


def admin_of(gantry: RunningAppliance, tls: ssl.SSLContext | None = None) -> Visitor:
    """The first administrator, by the link that the appliance has printed."""
    visitor = Visitor(gantry.url, tls)
    visitor.become_admin(first_run_token(gantry.output))
    return visitor


def first_run_token(output: str) -> str:
    """The token of the link that an appliance without users prints."""
    found = re.search(r"first-run\?token=(\S+)", output)
    assert found is not None, output
    return found[1]


class RawAnswer(NamedTuple):
    sent_bytes: int
    text: str

    @property
    def status(self) -> int:
        return int(self.text.split(" ", 2)[1]) if self.text else 0


def talk(address: str, head: str, body: bytes = b"", *, body_bytes: int = 0) -> RawAnswer:
    """Send a head as it stands and then `body`, over and over, until so much is sent or nobody takes more."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), SECONDS_MAX) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        sent_bytes = 0
        try:
            while sent_bytes < body_bytes:
                sent_bytes += connection.send(body[: body_bytes - sent_bytes])
        except ConnectionError:
            pass  # the answer is there all the same
        return RawAnswer(sent_bytes, _read(connection))


def _read(connection: socket.socket) -> str:
    """The head of an answer, and what came with it."""
    received = b""
    while b"\r\n\r\n" not in received:
        try:
            data = connection.recv(65536)
        except ConnectionError:
            break
        if not data:
            break
        received += data
    return received.decode("latin-1")


def web_process(gantry: RunningAppliance) -> psutil.Process:
    """The process that listens on the dashboard's port."""
    port = int(gantry.http.rpartition(":")[2])
    first = psutil.Process(gantry.process.pid)
    for process in (first, *first.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if any(item.status == psutil.CONN_LISTEN and item.laddr.port == port for item in process.net_connections()):
                return process
    raise AssertionError(f"nobody listens on {gantry.http}")
