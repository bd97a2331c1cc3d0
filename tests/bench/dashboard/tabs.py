"""A browser's tab without the browser: it does what the page's script would do, in a thread of its own.

It loads the page, opens the live socket where the page names a channel, and asks again where the page says how often.
"""

from __future__ import annotations

import json
import re
import threading
import time
from html import unescape

import websocket

from tests.visitor import Visitor

CHANNEL = re.compile(r'data-channel="([^"]+)"')
REFRESH = re.compile(r'data-refresh="([^"]+)" data-refresh-s="(\d+)"([^>]*)>')
TARGET = re.compile(r'data-refresh-target="([^"]+)"')


class Tab(threading.Thread):
    """`visitor` is logged in; counts what came until `leave`."""

    def __init__(self, visitor: Visitor, path: str) -> None:
        super().__init__(daemon=True)
        self.visitor = visitor
        page = visitor.get(path).text
        self.channels = sorted({unescape(found) for found in CHANNEL.findall(page)})
        again = REFRESH.search(page)
        self.again = (unescape(again[1]), float(again[2]), TARGET.search(again[3])) if again else None
        self.is_only_offline = bool(again and "offline" in again[3])
        self.frames = self.bytes_in = self.asked = 0
        self.error = ""
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            if self.channels:
                self._listen()
            elif self.again:
                self._ask()
        except (OSError, websocket.WebSocketException) as exc:
            if not self._ended.is_set():
                self.error = repr(exc)

    def leave(self) -> None:
        """Have it end soon. A tab notices between two frames, so tell all before the first `join`."""
        self._ended.set()

    def _listen(self) -> None:
        socket = self.visitor.live()
        socket.send(json.dumps({"subscribe": self.channels}))
        socket.settimeout(1.0)
        asked_at = time.monotonic()
        while not self._ended.is_set():
            try:
                text = socket.recv()
            except websocket.WebSocketTimeoutException:
                continue
            if not text:
                self.error = "the socket was closed"
                return
            self.frames += 1
            self.bytes_in += len(text)
            if self.again and not self.is_only_offline and time.monotonic() - asked_at >= self.again[1]:
                asked_at = time.monotonic()
                self._ask_once()
        socket.close()

    def _ask(self) -> None:
        assert self.again is not None
        while not self._ended.wait(self.again[1]):
            self._ask_once()

    def _ask_once(self) -> None:
        assert self.again is not None
        path, _, target = self.again
        headers = {"HX_Request": "true"} | ({"HX_Target": target[1]} if target else {})
        answer = self.visitor.get(path, **headers)
        self.asked += 1
        self.bytes_in += len(answer.text)
        if answer.status != 200:
            self.error = f"{path}: {answer.status}"
