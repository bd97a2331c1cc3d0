"""A sender that writes down every answer: one message at a time, each sent once, to the member that it is told."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.kit.nodes import Node
from tests.faults.kit.replicas import runtime_info
from tests.faults.replication.history import Answer, QueueKey, Send, check
from tests.faults.replication.logs import read_log
from tests.harness import LocalCluster
from tests.waiting import Beside, wait_until

# Said before anything is appended.
REFUSALS = (ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_BUSY, ResponseCode.NO_PERMISSION)
ANSWER_TIMEOUT_S = 10.0
PAUSE_S = 0.002
AWAY_S = 0.05  # before the next try, when the member refuses or is gone
QUIET_S = 0.9
LOOK_S = 0.05


class Pace:
    """Of all that send to a group: as they like, about once a second, or not at all while it is silent."""

    def __init__(self) -> None:
        self.is_quiet = self.is_silent = False

    def rest(self, ends: threading.Event, pause_s: float) -> bool:
        """Wait until the next one is due. Whether this is the end instead."""
        began = time.monotonic()
        ends.wait(pause_s)
        while self.is_silent or (self.is_quiet and time.monotonic() - began < QUIET_S):
            if ends.wait(LOOK_S):
                break
        return ends.is_set()


class Recorder(Beside):
    """Sends while its block runs. member: "host:port" of who gets the next message, "" while none is to."""

    def __init__(
        self, sender: str, topic: str, member: Callable[[], str], *, body_bytes: int = 200, pace: Pace | None = None
    ) -> None:
        self.sender = sender
        self._topic = topic
        self._member = member
        self._body_bytes = body_bytes
        self._pace = pace or Pace()
        super().__init__(self._run, f"recorder {sender}")
        self.sends: list[Send] = []
        self.acknowledged_at: list[float] = []
        self.last_acknowledged: tuple[float, str] | None = None  # when, on the monotonic clock, and by which member
        self.turns: list[tuple[float, float, str]] = []  # of answers: where another kind begins; sent, answered, what
        self._said = ""

    def count(self, answer: Answer) -> int:
        return sum(send.answer is answer for send in list(self.sends))

    def more(self, count: int = 30) -> None:
        """Wait until so many more were acknowledged."""
        enough = self.count(Answer.ACKNOWLEDGED) + count
        wait_until(lambda: self.count(Answer.ACKNOWLEDGED) >= enough)

    def _run(self) -> None:
        while not self.ends.is_set():
            member, began = self._member(), time.monotonic()
            send = self._send(member) if member else None
            if send is not None:
                self.sends.append(send)
                self._see_turn(began, f"{send.answer.value}{self._said}")
                if send.answer is Answer.ACKNOWLEDGED:
                    self.acknowledged_at.append(time.monotonic())
                    self.last_acknowledged = self.acknowledged_at[-1], send.member
            is_taken = send is not None and send.answer is Answer.ACKNOWLEDGED
            self._pace.rest(self.ends, PAUSE_S if is_taken else AWAY_S)

    def _see_turn(self, began: float, what: str) -> None:
        if not self.turns or self.turns[-1][2] != what:
            self.turns.append((began, time.monotonic(), what))

    def _send(self, member: str) -> Send:
        self._said = ""
        number = len(self.sends)
        body = b"<%s:%d:%s>" % (self.sender.encode(), number, os.urandom(self._body_bytes // 2).hex().encode())
        unknown = Send(self.sender, number, body, Answer.UNKNOWN, member)
        request = RemotingCommand.request(
            RequestCode.SEND_MESSAGE_V2, send_fields("Recorder", self._topic, 0, ""), body
        )
        try:
            connection = rpc.connect(member, timeout_s=ANSWER_TIMEOUT_S)
        except GantryError as exc:  # nothing was sent
            self._said = f": {exc}"
            return Send(self.sender, number, body, Answer.REFUSED, member)
        with connection:
            try:
                answer = rpc.call(connection, request)
            except GantryError as exc:
                self._said = f": {exc}"
                return unknown
        if answer.code != ResponseCode.SUCCESS:
            self._said = f": {answer.code} {answer.remark}"
        if answer.code in REFUSALS:
            return Send(self.sender, number, body, Answer.REFUSED, member)
        if answer.code != ResponseCode.SUCCESS:
            return unknown
        fields = answer.ext_fields
        _host, _port, place = decode_offset_message_id(fields["msgId"])
        queue = QueueKey(self._topic, int(fields["queueId"]))
        offset = int(fields["queueOffset"])
        return Send(self.sender, number, body, Answer.ACKNOWLEDGED, member, queue, offset, place)


@contextlib.contextmanager
def sending(members: Sequence[Node], topic: str, pace: Pace | None = None) -> Iterator[list[Recorder]]:
    """A sender to each of them, whatever it is: two masters would both be found."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Recorder(each.node, topic, lambda each=each: each.broker_address, pace=pace))  # type: ignore[misc]
            for each in members
        ]


def acknowledged(recorders: Sequence[Recorder]) -> int:
    return sum(recorder.count(Answer.ACKNOWLEDGED) for recorder in recorders)


def assert_as_told(recorders: Sequence[Recorder], members: Sequence[LocalCluster], counts: LocalCluster) -> None:
    """All logs alike, and as every sender was told. counts: whose log consumers get."""
    wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in members}) == 1)
    logs = [read_log(each.broker_address, each.store) for each in members]
    assert check([send for recorder in recorders for send in recorder.sends], logs, counts.broker_address) == []
