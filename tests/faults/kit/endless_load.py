"""A producer that sends without end while brokers come and go, and remembers what was acknowledged."""

from __future__ import annotations

import os

from gantrymq import Message, SendStatus, SyncProducer
from gantrymq.errors import GantryError
from tests.waiting import Beside, wait_until


class EndlessLoad(Beside):
    """Sends while its block runs. acknowledged: the bodies that were answered SEND_OK, each another one."""

    def __init__(self, namesrv_address: str, topic: str, *, body_bytes: int) -> None:
        self._namesrv_address = namesrv_address
        self._topic = topic
        self._body_bytes = body_bytes
        super().__init__(self._run, "endless load")
        self._number = 0
        self.acknowledged: list[bytes] = []

    def _run(self) -> None:
        with SyncProducer(self._namesrv_address) as producer:
            while not self.ends.is_set():
                self._number += 1
                body = b"<%d:%s>" % (self._number, os.urandom(self._body_bytes // 2).hex().encode())
                try:
                    result = producer.send(Message(self._topic, body))
                except GantryError:  # the master is away
                    self.ends.wait(0.05)
                    continue
                if result.status is SendStatus.SEND_OK:
                    self.acknowledged.append(body)
                self.ends.wait(0.002)

    def more(self, count: int = 30) -> None:
        """Wait until so many more were acknowledged."""
        enough = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= enough)
