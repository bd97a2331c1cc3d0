"""The Python load generator, a process of its own: gets a LoadSpec, prints a LoadResult, both as JSON.

It puts on the latency load, and where there is no C compiler what else it can; the compiled one is `bench/generator/`.

One thread, blocking sockets, epoll only with more than one connection, frames encoded in advance. Responses are counted
by their length words; the code of each is checked at its usual position, and a response that does not begin as a
success is decoded in full. Times are assigned first in, first out: exact for a broker that answers in order, and a good
approximation of the distribution for others.
"""

from __future__ import annotations

import gc
import re
import select
import struct
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict

import orjson

from appliance.bench import rpc
from appliance.bench.frames import FrameRing, PullFrame, batch_ring, send_ring
from appliance.bench.load_spec import LoadResult, LoadSpec, percentile_of_counts
from appliance.bench.python_load.latency import run_latency
from gantrymq.remoting.command import RemotingCommand

_LENGTH = struct.Struct(">i").unpack_from
_SUCCESS = b'{"code":0,'
_NEXT_OFFSET = re.compile(rb'"nextBeginOffset":"(\d+)"')
_BUFFER_BYTES = 1 << 20
DRAIN_TIMEOUT_S = 20.0


class Stream:
    """One connection and the answers that have arrived on it."""

    def __init__(self, address: str, errors: Counter[str], *, keep_header: bool = False) -> None:
        self.socket = rpc.connect(address)
        self.socket.settimeout(None)  # driver.py kills this process when it hangs
        self.sent: deque[tuple[int, int]] = deque()  # (when in ns, how many frames) still unanswered
        self._errors = errors
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self.refused = 0  # of the answers that the last `receive` returned
        self._keep_header = keep_header
        self.last_header = b""  # the start of the newest answer's header, when it is kept
        self.last_bytes = 0  # and its size

    def send(self, views: list[memoryview], frames: int, now_ns: int) -> None:
        self.sent.append((now_ns, frames))
        for view in views:
            self.socket.sendall(view)

    def receive(self) -> int:
        """Read what is there, waiting for the first byte; returns how many answers became whole."""
        got = self.socket.recv_into(self._view[self._filled :])
        if not got:
            raise ConnectionError("the broker closed the connection")
        self.refused = 0
        buffer, position, end, answers = self._buffer, 0, self._filled + got, 0
        while end - position >= 4:
            following = position + 4 + _LENGTH(buffer, position)[0]
            if following > end:
                break
            if not buffer.startswith(_SUCCESS, position + 8):
                self._look_closer(bytes(self._view[position + 4 : following]))
            answers += 1
            if self._keep_header:
                self.last_header = bytes(self._view[position + 8 : position + 400])
                self.last_bytes = following - position
            position = following
        if position:
            self._view[: end - position] = bytes(self._view[position:end])
        self._filled = end - position
        return answers

    def _look_closer(self, frame: bytes) -> None:
        command = RemotingCommand.decode(frame)
        if not command.is_response:
            raise ConnectionError(f"the broker sent a request: {command!r}")
        if command.code != 0:
            self.refused += 1
            self._errors[f"{command.code} {(command.remark or '')[:80]}"] += 1


class Meter:
    """Counts messages that were acknowledged or pulled, and in the measured part the times of all answers."""

    def __init__(self, spec: LoadSpec) -> None:
        self.errors: Counter[str] = Counter()
        self.times_us: Counter[int] = Counter()
        self._start_ns = time.perf_counter_ns()
        self._warm_ns = self._start_ns + int(spec.warm_s * 1e9)
        self._measure_ns = int(spec.measure_s * 1e9)
        self._end_ns = self._warm_ns + self._measure_ns
        self._messages_max = spec.messages_max or sys.maxsize
        self.messages = 0
        self._from: tuple[int, int, float] | None = None  # when, messages, cpu at the end of the warm-up
        self._to: tuple[int, int, float] | None = None

    def answered(self, stream: Stream, answers: int, messages: int, now_ns: int) -> None:
        self.messages += messages
        measuring = self._from is not None and self._to is None
        sent = stream.sent
        while answers:
            sent_ns, frames = sent[0]
            covered = min(frames, answers)
            if measuring:
                self.times_us[(now_ns - sent_ns) // 1000] += covered
            if covered == frames:
                sent.popleft()
            else:
                sent[0] = (sent_ns, frames - covered)
            answers -= covered

    def goes_on(self, now_ns: int) -> bool:
        """Whether to keep sending; marks the borders of the measured part as they pass."""
        if self._to is not None:
            return False
        if self._from is None and now_ns >= self._warm_ns:
            self._from = (now_ns, self.messages, time.process_time())
            self._end_ns = now_ns + self._measure_ns  # from now on: on a busy machine the warm-up may end late
        if (now_ns < self._end_ns or self._is_without_answer()) and self.messages < self._messages_max:
            return True
        self._to = (now_ns, self.messages, time.process_time())
        if self._from is None or self._from[0] == now_ns:
            self._from = (self._start_ns, 0, 0.0)
        return False

    def _is_without_answer(self) -> bool:
        """A server that stood still all the while has no rate yet: it is measured to its first answer."""
        return self._from is not None and self.messages == self._from[1] and not self.times_us

    def result(self) -> LoadResult:
        assert self._from is not None and self._to is not None
        seconds = (self._to[0] - self._from[0]) / 1e9
        measured = self._to[1] - self._from[1]
        cpu_s = self._to[2] - self._from[2]
        return LoadResult(
            rate=measured / seconds,
            acknowledged=self.messages,
            measured=measured,
            measured_s=seconds,
            p50_ms=percentile_of_counts(self.times_us, 50) / 1000,
            p99_ms=percentile_of_counts(self.times_us, 99) / 1000,
            max_ms=max(self.times_us, default=0) / 1000,
            cpu_share=cpu_s / seconds,
            cpu_us_per_message=cpu_s / max(measured, 1) * 1e6,
            errors=dict(self.errors),
        )


def run_send(spec: LoadSpec) -> LoadResult:
    """Keep `in_flight` requests under way on every connection."""
    meter = Meter(spec)
    rings: dict[int, tuple[Stream, FrameRing]] = {}
    for index in range(spec.connections):
        queue_ids = [(index + turn) % spec.queue_count for turn in range(spec.queue_count)]
        ring = (
            send_ring(spec.topic, queue_ids, spec.body_bytes, spec.in_flight)
            if spec.kind == "send"
            else batch_ring(spec.topic, queue_ids, spec.body_bytes, spec.in_flight, spec.batch)
        )
        stream = Stream(spec.address, meter.errors)
        rings[stream.socket.fileno()] = (stream, ring)

    def ready(descriptor: int, go_on: bool) -> None:
        stream, ring = rings[descriptor]
        answers = stream.receive()
        now_ns = time.perf_counter_ns()
        meter.answered(stream, answers, (answers - stream.refused) * ring.messages_per_frame, now_ns)
        if answers and go_on:
            stream.send(ring.take(answers), answers, now_ns)

    for stream, ring in rings.values():
        stream.send(ring.take(spec.in_flight), spec.in_flight, time.perf_counter_ns())
    _turn([stream for stream, _ in rings.values()], meter, ready)
    return meter.result()


def run_pull(spec: LoadSpec) -> LoadResult:
    """One pull of 32 under way on every connection, each connection reading a queue of its own round and round."""
    meter = Meter(spec)
    pulls: dict[int, list[Stream | PullFrame | int]] = {}
    streams = []
    for index in range(spec.connections):
        stream = Stream(spec.address, meter.errors, keep_header=True)
        frame = PullFrame(spec.topic, index % spec.queue_count, suspend=False)
        pulls[stream.socket.fileno()] = [stream, frame, 0]
        streams.append(stream)
        stream.send([memoryview(frame.at(0))], 1, time.perf_counter_ns())

    def ready(descriptor: int, go_on: bool) -> None:
        pull = pulls[descriptor]
        stream, frame, offset = pull
        assert isinstance(stream, Stream) and isinstance(frame, PullFrame) and isinstance(offset, int)
        answers = stream.receive()
        if not answers:
            return
        assert answers == 1
        found = _NEXT_OFFSET.search(stream.last_header)
        following = int(found[1]) if found and stream.last_header.startswith(_SUCCESS) else 0
        if stream.last_bytes < (following - offset) * spec.body_bytes:
            raise ValueError(f"{stream.last_bytes} bytes can't hold the messages {offset} to {following}")
        now_ns = time.perf_counter_ns()
        meter.answered(stream, 1, max(following - offset, 0), now_ns)
        pull[2] = offset = following if following < spec.queue_length else 0
        if go_on:
            stream.send([memoryview(frame.at(offset))], 1, now_ns)

    _turn(streams, meter, ready)
    return meter.result()


def _turn(streams: list[Stream], meter: Meter, ready: Callable[[int, bool], None]) -> None:
    """Serve the connections until the load is over and every answer has arrived."""
    if len(streams) == 1:
        (stream,) = streams
        descriptor = stream.socket.fileno()
        while stream.sent:
            ready(descriptor, meter.goes_on(time.perf_counter_ns()))
        return
    poller = select.epoll(len(streams))
    for stream in streams:
        poller.register(stream.socket.fileno(), select.EPOLLIN)
    deadline = None
    while True:
        go_on = meter.goes_on(time.perf_counter_ns())
        if not go_on:
            deadline = deadline or time.monotonic() + DRAIN_TIMEOUT_S
            if not any(stream.sent for stream in streams):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("answers are missing")
        for descriptor, _ in poller.poll(1.0):
            ready(descriptor, go_on)


RUNNERS: dict[str, Callable[[LoadSpec], LoadResult]] = {
    "send": run_send,
    "batch": run_send,
    "pull": run_pull,
}


def main() -> None:
    spec = LoadSpec(**orjson.loads(sys.argv[1]))
    gc.disable()
    result = run_latency(spec) if spec.kind == "latency" else RUNNERS[spec.kind](spec)
    sys.stdout.buffer.write(orjson.dumps(asdict(result)))


if __name__ == "__main__":
    main()
