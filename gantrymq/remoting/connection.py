"""One asyncio connection of a client: requests out, answers matched by opaque, the peer's own requests handed on.

Made for many small calls in flight. A call is a dictionary entry and a future: no task, no lock and no timer for each.
One timer a connection wakes at the earliest deadline and fails what is overdue. A request that is alone on its way is
written at once; others are joined with those of the same turn of the event loop and written in one piece, at the end
of the turn in which those act who waited for the answers that were read last.

Connecting, reconnecting and choosing where to send is RemotingClient's.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

from gantrymq.errors import ConnectError, FrameError, GantryError
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import WANTS_TLS, not_connected, timed_out
from gantrymq.remoting.outages import Outages
from gantrymq.remoting.protocol import RemotingProtocol
from gantrymq.remoting.signature import Stamper
from gantrymq.timeouts import timeout, timeout_at

logger: logging.Logger = logging.getLogger(__name__)

IN_FLIGHT_MAX = 4096  # calls without an answer, a connection; more wait for room
WRITE_BUFFER_BYTES = 1 << 20  # unsent bytes a connection holds before callers wait
CLOSE_WAIT_S = 2.0
CLOSED_BY_PEER = "closed by the peer"
READ_BYTES = 1 << 16  # at once; a buffer of the connection's own, for asyncio's is mapped and unmapped for each read
FRAMES_A_WRITE = 64  # joined at most: the peer begins with them meanwhile
GIVE_UP_S = 1.0  # a peer that said nothing for so long after a request whose time is up
SWEEP_STEP_S = 0.01  # deadlines this close together share one wake-up
LONG_POLLS = frozenset(
    {
        RequestCode.PULL_MESSAGE.value,
        RequestCode.LITE_PULL_MESSAGE.value,
        RequestCode.POP_MESSAGE.value,
        RequestCode.NOTIFICATION.value,
    }
)

RequestReceived = Callable[["ClientConnection", RemotingCommand], None]


class Answered(Protocol):
    """Who waits for an answer, such as a future. Called on the event loop, once with the answer or its failure."""

    def done(self) -> bool: ...

    def set_result(self, answer: RemotingCommand, /) -> None: ...

    def set_exception(self, failure: GantryError, /) -> None: ...

    def exception(self) -> BaseException | None: ...


class _Call(NamedTuple):
    """A request on its way, and who waits for its answer."""

    code: int
    future: Answered
    started_at: float
    timeout_s: float
    deadline: float


_call = functools.partial(tuple.__new__, _Call)  # _Call(…) costs twice as much


class ClientConnection(asyncio.BufferedProtocol):
    """One connection to one address. Unusable after `is_closing`; a new one is made then."""

    def __init__(
        self,
        address: str,
        request_received: RequestReceived,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        outages: Outages | None = None,
    ) -> None:
        """outages: told when the peer is first heard, and when it was silent."""
        self.address = address
        self._outages = outages
        self.greeting: RemotingCommand | None = None  # what the peer answered to the last heartbeat over it
        self.stamper: Stamper = Stamper()  # a stamp is good for one connection only
        self._request_received = request_received
        self._in_flight_max = in_flight_max
        self._loop = asyncio.get_running_loop()
        self._protocol = RemotingProtocol()
        self._read = memoryview(bytearray(READ_BYTES))
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, _Call] = {}
        self._outgoing: list[bytes] = []
        self._is_flush_due = False  # `_flush_turn` is among what the loop has to do
        self._writing_paused = False
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = math.inf  # a call with an earlier deadline moves the sweep
        self._received_at = 0.0
        self._unanswered_since = -math.inf  # when the first of those began that timed out since then
        self.has_heard: bool = False  # a byte from the peer
        self._close_reason = ""
        self.lost_at: float | None = None  # time.monotonic()
        self._closed = self._loop.create_future()

    # -- calls --------------------------------------------------------------------------------------------------------

    @property
    def is_closing(self) -> bool:
        return bool(self._close_reason) or self._transport is None or self._transport.is_closing()

    @property
    def in_flight(self) -> int:
        """Calls that wait for their answer."""
        return len(self._calls)

    def waits_s(self, *, long_polls: bool = False) -> float:
        """For how long the oldest call waits for anything from the peer; 0 when none does. long_polls: count them."""
        calls = self._calls.values()
        oldest = next((call for call in calls if long_polls or call.code not in LONG_POLLS), None)
        return 0.0 if oldest is None else self._loop.time() - max(oldest.started_at, self._received_at)

    def end_long_polls(self, reason: str) -> None:
        """Fail those that wait, with ConnectError. The connection and all else go on; late answers are left out."""
        for opaque in [opaque for opaque, call in self._calls.items() if call.code in LONG_POLLS]:
            call = self._calls.pop(opaque)
            if not call.future.done():
                call.future.set_exception(not_connected(self.address, reason, call.code))
        self._wake_room_waiters()

    @property
    def has_room(self) -> bool:
        """Whether another call may be submitted now; see room."""
        return len(self._calls) < self._in_flight_max and not self._writing_paused

    @property
    def takes_calls(self) -> bool:
        """Whether it is open and has room."""
        return len(self._calls) < self._in_flight_max and not self._writing_paused and not self.is_closing

    async def room(self, timeout_s: float) -> None:
        """Wait until another call may be submitted. Raises TimeoutError, or ConnectError when it closes."""
        deadline = self._loop.time() + timeout_s
        while not self.has_room:
            if self.is_closing:
                raise ConnectError(self.address, self._close_reason or "connection closed")
            waiter = self._loop.create_future()
            self._room_waiters.append(waiter)
            async with timeout_at(deadline):
                await waiter

    def submit(self, request: RemotingCommand, timeout_s: float) -> asyncio.Future[RemotingCommand]:
        """Send a request now; the future gets the answer, RequestTimeout or ConnectError. See has_room."""
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        self.submit_for(future, request, timeout_s)
        return future

    def submit_for(self, answered: Answered, request: RemotingCommand, timeout_s: float) -> None:
        """As `submit`, for one that is called in place of a future."""
        if self.is_closing:
            raise not_connected(self.address, self._close_reason or "connection closed", request.code)
        # Encoded before anything is noted: what can't be encoded waits for no answer.
        self.submit_frame(answered, request.code, request.opaque, request.encode(), timeout_s)

    def submit_frame(self, answered: Answered, code: int, opaque: int, frame: bytes, timeout_s: float) -> None:
        """As `submit_for`, of a request that is encoded already, and only while the connection takes calls."""
        now = self._loop.time()
        deadline = now + timeout_s
        calls = self._calls
        calls[opaque] = _call((code, answered, now, timeout_s, deadline))
        if deadline < self._sweep_at:
            self._sweep_by(deadline)
        if len(calls) == 1 and not self._outgoing:
            self._transport.write(frame)  # type: ignore[union-attr]  # it is there unless is_closing
        else:
            self._write(frame)

    def send(self, command: RemotingCommand) -> None:
        """Send a command that gets no answer: a one-way request, or an answer to the peer."""
        if self.is_closing:
            raise not_connected(self.address, self._close_reason or "connection closed", command.code)
        self._write(command.encode())

    def close(self, reason: str) -> None:
        """Flush what was written, then close; every open call fails with ConnectError."""
        if self._close_reason or self._transport is None:
            return
        self._close_reason = reason
        self._flush()
        self._transport.close()
        self._fail_all()

    def when_lost(self, act: Callable[[], None]) -> None:
        """Have `act` called once the connection has ended."""
        self._closed.add_done_callback(lambda closed: act())

    async def wait_lost(self) -> None:
        """Wait until the connection has ended, for whatever reason. Does not close it."""
        await asyncio.shield(self._closed)

    async def wait_closed(self) -> None:
        """After `close`: wait until all is written and the socket closed; a peer that does not read is cut off."""
        try:
            async with timeout(CLOSE_WAIT_S):
                await asyncio.shield(self._closed)
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()

    def abandon(self) -> None:
        """In a child of a fork: put the null device in the socket's place. Otherwise the peer would not see the parent
        close the connection before this process ends. Nothing is written, and the event loop is not asked."""
        sock = None if self._transport is None else self._transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, sock.fileno(), inheritable=False)
        os.close(null)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _write(self, frame: bytes) -> None:
        """Write it together with what else comes in this turn of the loop."""
        outgoing = self._outgoing
        outgoing.append(frame)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_turn)
        elif len(outgoing) >= FRAMES_A_WRITE:
            self._flush()

    def _flush_turn(self) -> None:
        self._is_flush_due = False
        self._flush()

    def _flush(self) -> None:
        if self._outgoing:
            data = b"".join(self._outgoing)
            self._outgoing.clear()
            if self._transport is not None and not self._transport.is_closing():
                self._transport.write(data)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._wake_room_waiters()

    def _wake_room_waiters(self) -> None:
        """Wake as many waiting callers as there is room for; one that finds no room after all waits again."""
        free = self._in_flight_max - len(self._calls)
        while self._room_waiters and free > 0:
            waiter = self._room_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1

    # -- reading ------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._received_at = self._loop.time()
        logger.info(
            "connection opened (address=%s)",
            self.address,
            extra={"event": "connection_opened", "address": self.address},
        )

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._read

    def buffer_updated(self, nbytes: int) -> None:
        self._received_at = self._loop.time()
        if not self.has_heard:
            self.has_heard = True
            if self._outages is not None:
                self._outages.reachable(self.address)
        protocol, calls = self._protocol, self._calls
        protocol.receive_data(bytes(self._read[:nbytes]))
        try:
            while (command := protocol.next_command()) is not None:
                if not command.flag & 1:
                    self._request_received(self, command)
                    continue
                call = calls.pop(command.opaque, None)
                if call is None:
                    logger.debug(
                        "answer without a call (address=%s)",
                        self.address,
                        extra={"event": "answer_unknown", "address": self.address},
                    )
                elif not call.future.done():
                    call.future.set_result(command)
        except FrameError as exc:
            logger.warning(
                "peer sent a bad frame (address=%s): %s",
                self.address,
                exc,
                extra={"event": "bad_frame", "address": self.address, "error": str(exc)},
            )
            self._abort(f"bad frame: {exc}")
            return
        if self._room_waiters and self.has_room:
            self._wake_room_waiters()
        if calls and not self._is_flush_due:  # what the answers lead to at once is written behind it, a turn earlier
            self._is_flush_due = True
            self._loop.call_soon(self._flush_turn)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_at = time.monotonic()
        if not self._close_reason:
            self._close_reason = f"connection lost: {exc}" if exc else CLOSED_BY_PEER
            if not self.has_heard:
                self._note_unreachable(f"{self._close_reason} ({WANTS_TLS})")
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._fail_all()
        if not self._closed.done():
            self._closed.set_result(None)
        logger.info(
            "connection closed (address=%s): %s",
            self.address,
            self._close_reason,
            extra={"event": "connection_closed", "address": self.address, "reason": self._close_reason},
        )

    # -- failing ------------------------------------------------------------------------------------------------------

    def _sweep_by(self, deadline: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep = self._loop.call_at(deadline, self._fail_overdue)
        self._sweep_at = deadline - SWEEP_STEP_S

    def _fail_overdue(self) -> None:
        """Fail the calls whose time is up; a peer that said nothing since such a call began is given up altogether, but
        not within GIVE_UP_S: a call may have little time, and all others would be tried again, or stored twice."""
        self._sweep, self._sweep_at = None, math.inf
        now = self._loop.time()
        horizon = now + SWEEP_STEP_S
        silent = False
        overdue = [opaque for opaque, call in self._calls.items() if call.deadline <= horizon or call.future.done()]
        for opaque in overdue:
            call = self._calls.pop(opaque)
            if not call.future.done():
                failure = timed_out(self.address, call.code, call.timeout_s, was_silent=not self.has_heard)
                call.future.set_exception(failure)
                silent = silent or self._is_silent_since(call.started_at, now)
        if silent:
            self._note_unreachable("no answer in time")
            self._abort("no answer in time")
        elif self._calls:
            self._sweep_by(min(call.deadline for call in self._calls.values()))
        if self._room_waiters and self.has_room:
            self._wake_room_waiters()

    def _is_silent_since(self, started_at: float, now: float) -> bool:
        """Whether the peer has said nothing for long, after a call that began then has timed out."""
        if started_at <= self._received_at:
            return False
        if self._unanswered_since <= self._received_at:
            self._unanswered_since = started_at
        return now - self._unanswered_since >= GIVE_UP_S

    def _note_unreachable(self, reason: str) -> None:
        if self._outages is not None:
            self._outages.unreachable(self.address, reason)

    def _abort(self, reason: str) -> None:
        self._close_reason = self._close_reason or reason
        if self._transport is not None:
            self._transport.abort()
        self._fail_all()

    def _fail_all(self) -> None:
        calls, self._calls = self._calls, {}
        hint = "" if self.has_heard or self._close_reason != CLOSED_BY_PEER else WANTS_TLS
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(not_connected(self.address, self._close_reason, call.code, hint=hint))
                call.future.exception()  # marks it as seen: asyncio must not warn when the caller has stopped waiting
        while self._room_waiters:
            waiter = self._room_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
