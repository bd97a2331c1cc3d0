"""The latency load: an open loop with a constant rate, and a consumer with long polling.

Messages are sent on time even if responses are late, so a stall of the broker counts for every message that it delays.
Two times are measured: to the producer's response, matched by opaque, and end to end, from the time in the message.
Run as a program it reads a LoadSpec and prints a LoadResult, both as JSON.
"""

from __future__ import annotations

import re
import select
import socket
import sys
import time
from collections import Counter
from dataclasses import asdict

import orjson

from appliance.bench import rpc
from appliance.bench.frames import OPAQUE_START, TIME_DIGITS, TIME_MARK, PullFrame, TimedFrame
from appliance.bench.load_spec import LoadResult, LoadSpec, percentile_of_counts
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol

_SENT_AT = re.compile(re.escape(TIME_MARK) + rb"(\d{%d})" % TIME_DIGITS)
_LAST_ANSWERS_S = 5.0
_PULL_NOT_FOUND = 19


def run_latency(spec: LoadSpec) -> LoadResult:
    """Send `rate` messages a second to queue 0 and pull them; returns the times of the measured part."""
    load = _LatencyLoad(spec)
    load.run()
    return load.result()


class _LatencyLoad:
    def __init__(self, spec: LoadSpec) -> None:
        self._spec = spec
        self._producer = rpc.connect(spec.address)
        self._consumer = rpc.connect(spec.address)
        self._frame = TimedFrame(spec.topic, 0, spec.body_bytes)
        self._pull = PullFrame(spec.topic, 0, suspend=True)
        (self._offset,) = rpc.max_offsets(spec.address, spec.topic, 1)
        self._answers = RemotingProtocol()
        self._pulled = RemotingProtocol()
        self._unanswered: dict[int, int] = {}  # opaque to when it was sent, ns
        self._ack_us: Counter[int] = Counter()
        self._end_to_end_us: Counter[int] = Counter()
        self._errors: Counter[str] = Counter()
        self._sent = self._acknowledged = self._received = 0
        self._measure_from_ns = 0
        self._measured_s = self._cpu_s = 0.0

    def run(self) -> None:
        spec = self._spec
        interval_ns = int(1e9 / spec.rate)
        total = int((spec.warm_s + spec.measure_s) * spec.rate)
        start_ns = time.perf_counter_ns()
        self._measure_from_ns = start_ns + int(spec.warm_s * 1e9)
        self._consumer.sendall(self._pull.at(self._offset))
        cpu_from: float | None = None
        while self._sent < total:
            due_ns = start_ns + self._sent * interval_ns
            now_ns = time.perf_counter_ns()
            if cpu_from is None and now_ns >= self._measure_from_ns:
                cpu_from = time.process_time()
            if now_ns >= due_ns:
                self._send(now_ns)
            else:
                self._wait((due_ns - now_ns) / 1e9)
        end_ns = time.perf_counter_ns()
        self._measured_s = (end_ns - self._measure_from_ns) / 1e9
        self._cpu_s = time.process_time() - (cpu_from or 0.0)
        deadline = time.monotonic() + _LAST_ANSWERS_S
        while (self._unanswered or self._received < self._acknowledged) and time.monotonic() < deadline:
            self._wait(0.1)

    def _send(self, now_ns: int) -> None:
        opaque = OPAQUE_START + self._sent
        self._sent += 1
        self._unanswered[opaque] = now_ns
        self._producer.sendall(self._frame.at(opaque, now_ns))

    def _wait(self, timeout_s: float) -> None:
        """select, unlike epoll, waits for fractions of a millisecond."""
        readable, _, _ = select.select((self._producer, self._consumer), (), (), timeout_s)
        if self._producer in readable:
            self._read_answers()
        if self._consumer in readable:
            self._read_messages()

    def _read_answers(self) -> None:
        self._answers.receive_data(_read(self._producer))
        now_ns = time.perf_counter_ns()
        while (answer := self._answers.next_command()) is not None:
            sent_ns = self._unanswered.pop(answer.opaque)
            if answer.code != 0:
                self._count_error(answer)
                continue
            self._acknowledged += 1
            if sent_ns >= self._measure_from_ns:
                self._ack_us[(now_ns - sent_ns) // 1000] += 1

    def _read_messages(self) -> None:
        self._pulled.receive_data(_read(self._consumer))
        now_ns = time.perf_counter_ns()
        while (answer := self._pulled.next_command()) is not None:
            if answer.code == 0:
                for found in _SENT_AT.finditer(answer.body):
                    sent_ns = int(found[1])
                    self._received += 1
                    if sent_ns >= self._measure_from_ns:
                        self._end_to_end_us[(now_ns - sent_ns) // 1000] += 1
            elif answer.code != _PULL_NOT_FOUND:
                self._count_error(answer)
            self._offset = int(answer.ext_fields.get("nextBeginOffset", self._offset))
            self._consumer.sendall(self._pull.at(self._offset))

    def _count_error(self, answer: RemotingCommand) -> None:
        self._errors[f"{answer.code} {(answer.remark or '')[:80]}"] += 1

    def result(self) -> LoadResult:
        measured = self._ack_us.total()
        if lost := self._acknowledged - self._received:
            self._errors[f"{lost} acknowledged messages were not consumed"] += 1
        return LoadResult(
            rate=measured / self._measured_s,
            acknowledged=self._acknowledged,
            measured=measured,
            measured_s=self._measured_s,
            p50_ms=percentile_of_counts(self._end_to_end_us, 50) / 1000,
            p99_ms=percentile_of_counts(self._end_to_end_us, 99) / 1000,
            ack_p50_ms=percentile_of_counts(self._ack_us, 50) / 1000,
            ack_p99_ms=percentile_of_counts(self._ack_us, 99) / 1000,
            cpu_share=self._cpu_s / self._measured_s,
            cpu_us_per_message=self._cpu_s / max(measured, 1) * 1e6,
            errors=dict(self._errors),
        )


def _read(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 20)
    if not data:
        raise ConnectionError("the broker closed the connection")
    return data


if __name__ == "__main__":
    print(orjson.dumps(asdict(run_latency(LoadSpec(**orjson.loads(sys.stdin.buffer.read()))))).decode())
