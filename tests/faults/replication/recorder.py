"""A sender that writes down every answer: one message at a time, each sent once, to the member that it is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.replication.history import Answer, QueueKey, Send
from tests.waiting import wait_until

# Said before anything is appended.
REFUSALS = (ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_BUSY, ResponseCode.NO_PERMISSION)
ANSWER_TIMEOUT_S = 10.0
PAUSE_S = 0.002
AWAY_S = 0.05  # before the next try, when the member refuses or is gone


class Recorder:
    """Sends while its block runs. member: "host:port" of who gets the next message, "" while none is to."""

    def __init__(self, sender: str, topic: str, member: Callable[[], str], *, body_bytes: int = 200) -> None:
        self._sender = sender
        self._topic = topic
        self._member = member
        self._body_bytes = body_bytes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"recorder {sender}")
        self.sends: list[Send] = []

    def count(self, answer: Answer) -> int:
        return sum(send.answer is answer for send in list(self.sends))

    def more(self, count: int = 30) -> None:
        """Wait until so many more were acknowledged."""
        enough = self.count(Answer.ACKNOWLEDGED) + count
        wait_until(lambda: self.count(Answer.ACKNOWLEDGED) >= enough)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            member = self._member()
            send = self._send(member) if member else None
            if send is not None:
                self.sends.append(send)
            self._stop.wait(PAUSE_S if send is not None and send.answer is Answer.ACKNOWLEDGED else AWAY_S)

    def _send(self, member: str) -> Send:
        number = len(self.sends)
        body = b"<%s:%d:%s>" % (self._sender.encode(), number, os.urandom(self._body_bytes // 2).hex().encode())
        unknown = Send(self._sender, number, body, Answer.UNKNOWN, member)
        request = RemotingCommand.request(
            RequestCode.SEND_MESSAGE_V2, send_fields("Recorder", self._topic, 0, ""), body
        )
        try:
            connection = rpc.connect(member, timeout_s=ANSWER_TIMEOUT_S)
        except GantryError:  # nothing was sent
            return Send(self._sender, number, body, Answer.REFUSED, member)
        with connection:
            try:
                answer = rpc.call(connection, request)
            except GantryError:
                return unknown
        if answer.code in REFUSALS:
            return Send(self._sender, number, body, Answer.REFUSED, member)
        if answer.code != ResponseCode.SUCCESS:
            return unknown
        fields = answer.ext_fields
        _host, _port, place = decode_offset_message_id(fields["msgId"])
        queue = QueueKey(self._topic, int(fields["queueId"]))
        offset = int(fields["queueOffset"])
        return Send(self._sender, number, body, Answer.ACKNOWLEDGED, member, queue, offset, place)
