"""Receivers of notices on a port of their own: HTTP servers that answer as told, and a mail server."""

from __future__ import annotations

import contextlib
import http.server
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """answers: status and body, one a request; the last one stays."""

    url: str = ""
    port: int = 0
    answers: list[tuple[int, str]] = field(default_factory=lambda: [(200, "ok")])
    requests: list[Received] = field(default_factory=list)
    location: str = ""  # of a redirect


@contextlib.contextmanager
def http_receiver(*answers: tuple[int, str]) -> Iterator[Receiver]:
    receiver = Receiver(answers=list(answers) or [(200, "ok")])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append(Received(self.path, dict(self.headers), body))
            status, text = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, serving(server):
        receiver.port = server.server_address[1]
        receiver.url = f"http://127.0.0.1:{receiver.port}/hook/secret-part-of-it?key=secret-key-of-it"
        yield receiver


@contextlib.contextmanager
def mail_receiver(*, refuses: str = "") -> Iterator[Receiver]:
    """Takes one mail a connection. refuses: what it answers to MAIL FROM instead."""
    receiver = Receiver()

    class Handler(socketserver.StreamRequestHandler):
        REPLIES: ClassVar[dict[bytes, bytes]] = {b"DATA": b"354 go on", b"QUIT": b"221 bye", b"EHLO": b"250 here"}

        def handle(self) -> None:
            self.wfile.write(b"220 test\r\n")
            while line := self.rfile.readline():
                word = line.split(b" ")[0].strip().upper()
                reply = refuses.encode() if word == b"MAIL" and refuses else self.REPLIES.get(word, b"250 ok")
                self.wfile.write(reply + b"\r\n")
                if word == b"DATA":
                    body = b"".join(iter(self.rfile.readline, b".\r\n"))
                    receiver.requests.append(Received("", {}, body))
                    self.wfile.write(b"250 taken\r\n")
                if word == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server, serving(server):
        receiver.port = server.server_address[1]
        yield receiver


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
