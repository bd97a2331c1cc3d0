"""Request lanes: a bounded queue per kind of request, drained fairly by the event loop.

RocketMQ has a thread pool per kind of request; here one loop serves all of them. Each round takes up to a share from
every lane in turn, so a flood of sends can't starve heartbeats, and a round ends after a few milliseconds, so sockets
and timers stay alive. What the pools' queues were, the lanes are: their size, capacity and head wait are the *queue
watermarks*.

    full lane                       -> SYSTEM_BUSY [OVERLOAD], at once
    waited longer than its limit    -> SYSTEM_BUSY [TIMEOUT_CLEAN_QUEUE], unserved (RocketMQ: BrokerFastFailure)

Connections ask how many requests are `wanted` before they read on; those with more are parked and read in turn, a few
requests each, while the lanes hold less than BACKLOG_WANTED. What waits there is bounded so by how fast it is served,
not by how fast it can be sent, and a client that asks little is never behind one that floods.

A handler answers with bytes (a whole frame), a RemotingCommand, None (no answer now), or a coroutine that ends in one
of these; coroutines run as tasks and count as queued until they end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from appliance.errors import BrokerError
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

ROUND_SECONDS_MAX = 0.004  # one drain round; the loop looks at sockets and timers between rounds
TURN_SECONDS_MAX = 0.002  # of one lane: there are requests that cost as much as hundreds
COSTLY_BODY_BYTES = 64 * 1024  # the clock is looked at each fourth request, and behind each with a larger body
SHARE = 64  # requests of one lane before the next lane has its turn
BACKLOG_WANTED = 1024  # queued requests from which on connections are parked: some 10 ms of sends
BACKLOG_BYTES_WANTED = 32 * 1024 * 1024  # the same for their bodies: large ones take longer
READ_SHARE = 4  # requests that a connection may always bring when its turn comes, and when it was not parked
REMARK_CHARS_MAX = 2048
SMALL_BODY_BYTES = 2 * 1024  # not refused because others' large bodies fill the lane: a heartbeat, say
QUEUED_BYTES_MAX = 64 * 1024 * 1024  # bodies waiting in one lane; with 4 MiB bodies the count alone bounds nothing
QUEUED_MESSAGES_BYTES_MAX = 256 * 1024 * 1024  # where they are messages

Answer = RemotingCommand | bytes | None
Handler = Callable[[Any, "ServerConnection", RemotingCommand], "Answer | Awaitable[Answer]"]


class Route(NamedTuple):
    """Who serves a request code, and in which lane it waits."""

    handler: Handler
    lane: str


@dataclass(frozen=True)
class LaneLimits:
    """capacity: requests; wait_ms_max: how long one may wait before it is refused (None: as long as it takes)."""

    capacity: int
    wait_ms_max: int | None = None
    queued_bytes_max: int = QUEUED_BYTES_MAX


class Lane:
    """One bounded queue of requests with its watermarks."""

    __slots__ = (
        "capacity",
        "expired",
        "name",
        "queue",
        "queued_bytes",
        "queued_bytes_max",
        "rejected",
        "running",
        "served",
        "size_peak",
        "wait_peak",
        "wait_seconds_max",
    )

    def __init__(self, name: str, limits: LaneLimits) -> None:
        self.name = name
        self.set_limits(limits)
        self.queue: deque[tuple[float, ServerConnection, RemotingCommand, Handler]] = deque()
        self.queued_bytes = 0
        self.running = 0  # coroutines under way
        self.served = 0
        self.rejected = 0
        self.expired = 0
        self.size_peak = 0  # since the last look at the watermarks
        self.wait_peak = 0.0  # seconds, likewise

    def set_limits(self, limits: LaneLimits) -> None:
        """Take other limits from now on; what already waits stays."""
        self.capacity = limits.capacity
        self.queued_bytes_max = limits.queued_bytes_max
        self.wait_seconds_max = limits.wait_ms_max / 1000 if limits.wait_ms_max is not None else float("inf")

    @property
    def size(self) -> int:
        """Requests waiting or under way."""
        return len(self.queue) + self.running

    def head_wait_ms(self) -> int:
        """How long the oldest waiting request has waited, ms; 0 when none waits."""
        return int((time.monotonic() - self.queue[0][0]) * 1000) if self.queue else 0

    def take_peaks(self) -> tuple[int, int]:
        """Greatest size and wait (ms) since the last call."""
        peaks = self.size_peak, int(self.wait_peak * 1000)
        self.size_peak, self.wait_peak = self.size, 0.0
        return peaks


class Lanes:
    """All lanes of a process, and the loop's one place where requests are served."""

    def __init__(self, context: Any, limits: Mapping[str, LaneLimits]) -> None:
        self._context = context
        self.by_name = {name: Lane(name, limit) for name, limit in limits.items()}
        self._lanes = tuple(self.by_name.values())
        self.backlog = 0  # requests queued, as of the last round, and read since
        self.backlog_bytes = 0  # their bodies, as of the last round
        self._parked: deque[ServerConnection] = deque()  # have more requests at hand than were wanted
        self._dirty: list[ServerConnection] = []  # have answers to write at the end of the round
        self._is_scheduled = False
        self._is_round_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, lane: Lane, connection: ServerConnection, request: RemotingCommand, route: Route) -> None:
        """Queue a request, or refuse it when its lane is full. The caller wakes the lanes when it has submitted all."""
        queue = lane.queue
        if len(queue) + lane.running >= lane.capacity or (
            lane.queued_bytes >= lane.queued_bytes_max and len(request.body) > SMALL_BODY_BYTES
        ):
            lane.rejected += 1
            self._refuse(connection, request, "[OVERLOAD]system busy, start flow control for a while")
            return
        lane.queued_bytes += len(request.body)
        queue.append((connection.read_at, connection, request, route.handler))

    @property
    def parked_count(self) -> int:
        """Connections that have more requests at hand than are wanted now."""
        return len(self._parked)

    def wanted(self) -> int:
        """How many requests a connection may submit now before it is to park."""
        if self.backlog_bytes > BACKLOG_BYTES_WANTED:
            return 1
        return max(BACKLOG_WANTED - self.backlog, READ_SHARE)

    def park(self, connection: ServerConnection) -> None:
        """Read on from this connection when the others have had their turn."""
        self._parked.append(connection)

    def wake(self) -> None:
        """Serve what is queued, and write what connections hold, soon."""
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._round)

    def mark_dirty(self, connection: ServerConnection) -> None:
        """The connection holds bytes to write at the end of the round."""
        self._dirty.append(connection)
        self.wake()

    async def close(self) -> None:
        """Cancel coroutines under way and drop what still waits; call after the listeners are closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self._lanes:
            lane.queue.clear()
        self._parked.clear()

    # -- one round ----------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        """Serve queued requests for at most ROUND_SECONDS_MAX, then write all answers at once."""
        monotonic = time.monotonic
        now = monotonic()
        deadline = now + ROUND_SECONDS_MAX
        has_more = True
        self._is_round_over = False
        while has_more and now < deadline and not self._is_round_over:
            has_more = False
            for lane in self._lanes:
                if lane.queue:
                    self._serve(lane, now)
                    now = monotonic()
                    if lane.queue:
                        has_more = True
        self.backlog = sum([len(lane.queue) for lane in self._lanes])
        self.backlog_bytes = sum([lane.queued_bytes for lane in self._lanes]) if self.backlog else 0
        if self._parked:
            self._read_on()
            has_more = True
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.flush()
        self._is_scheduled = False
        if has_more:
            self.wake()

    def _read_on(self) -> None:
        """Let parked connections bring more, each in its turn, until enough is queued."""
        share = max(BACKLOG_WANTED // len(self._parked), READ_SHARE)  # all have had a turn in what is wanted at once
        for _ in range(len(self._parked)):
            if self.backlog >= BACKLOG_WANTED or self.backlog_bytes > BACKLOG_BYTES_WANTED:
                return
            self._parked.popleft().read_requests(share)

    def _serve(self, lane: Lane, now: float) -> None:
        """Serve up to SHARE requests of one lane."""
        queue, context = lane.queue, self._context
        size = len(queue)
        if size > lane.size_peak:
            lane.size_peak = size
        wait = now - queue[0][0]
        if wait > lane.wait_peak:
            lane.wait_peak = wait
        oldest_allowed = now - lane.wait_seconds_max
        popleft, monotonic = queue.popleft, time.monotonic
        deadline = now + TURN_SECONDS_MAX
        body_bytes = 0
        for number in range(min(size, SHARE)):
            if (number & 3 == 3 or body_bytes > COSTLY_BODY_BYTES) and monotonic() > deadline:
                return  # the other lanes first
            arrived, connection, request, handler = popleft()
            body_bytes = len(request.body)
            lane.queued_bytes -= body_bytes
            if arrived < oldest_allowed:
                lane.expired += 1
                self._refuse_expired(lane, connection, request, now - arrived)
                continue
            lane.served += 1
            try:
                answer = handler(context, connection, request)
            except Exception as exc:  # expected or a bug: either becomes an answer, and the lane goes on
                answer = failure_answer(request, exc)
            if answer is None:
                continue
            if not isinstance(answer, bytes):
                if not isinstance(answer, RemotingCommand):
                    self._follow(lane, connection, request, answer)
                    if body_bytes > COSTLY_BODY_BYTES:  # what it costs is spent later: all at once if more were begun
                        self._is_round_over = True
                        return
                    continue
                answer = answer.encode()
            if not request.flag & ONEWAY_FLAG:
                connection.write(answer)

    # -- handlers that take longer ------------------------------------------------------------------------------------

    def _follow(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        lane.running += 1
        task = asyncio.get_running_loop().create_task(self._await_answer(lane, connection, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_answer(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        try:
            result: Answer
            try:
                result = await answer
            except Exception as exc:  # as in _serve: an answer either way
                result = failure_answer(request, exc)
            if result is not None and not request.is_oneway:
                connection.send(result)
        finally:
            lane.running -= 1

    # -- refusals -----------------------------------------------------------------------------------------------------

    def _refuse(self, connection: ServerConnection, request: RemotingCommand, remark: str) -> None:
        if not request.is_oneway:
            connection.write(request.reply(ResponseCode.SYSTEM_BUSY, remark).encode())

    def _refuse_expired(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, waited_seconds: float
    ) -> None:
        self._refuse(
            connection,
            request,
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            f"period in queue: {int(waited_seconds * 1000)}ms, size of queue: {len(lane.queue)}",
        )


def failure_answer(request: RemotingCommand, exc: Exception) -> RemotingCommand:
    """The only place where an exception becomes an answer."""
    if isinstance(exc, BrokerError):  # expected: the client is told which and why
        return request.reply(exc.code, _clipped(str(exc)))
    if isinstance(exc, BodyError | MessageRejected):
        return request.reply(ResponseCode.INVALID_PARAMETER, _clipped(str(exc)))
    if isinstance(exc, KeyError | ValueError) and (remark := _about_a_field(exc, request)) is not None:
        return request.reply(ResponseCode.INVALID_PARAMETER, remark)
    # a bug: told to us in full, to the client in a word
    logger.error("handler failed", exc_info=exc, extra={"event": "handler_failed", "code": request.code})
    return request.reply(ResponseCode.SYSTEM_ERROR, "system error")


def _about_a_field(exc: KeyError | ValueError, request: RemotingCommand) -> str | None:
    """A missing ext field raises KeyError with its name; a malformed one raises ValueError that quotes its text."""
    if isinstance(exc, KeyError):
        name = exc.args[0] if exc.args else None
        is_field = isinstance(name, str) and name not in request.ext_fields
        return f"header field {name} is missing" if is_field else None
    text = str(exc)
    named = [name for name, value in request.ext_fields.items() if repr(value) in text]
    return f"header field {' or '.join(named)} is malformed: {_clipped(text)}" if named else None


def _clipped(remark: str) -> str:
    """Remarks quote what peers wrote; nobody shall be sent much more than he asked."""
    return remark if len(remark) <= REMARK_CHARS_MAX else f"{remark[:REMARK_CHARS_MAX]}…"
