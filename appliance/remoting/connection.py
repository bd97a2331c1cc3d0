"""How one client's requests are read: from the bytes of its socket to the lanes.

A connection decodes every frame that has arrived, submits the requests to their lanes, and wakes the lanes once, so the
overhead is that of a read event, not of a message. Where there is a compiled reader it reads the socket of a plain
connection, as long as nothing of it waits. If a peer does not read its answers, its requests are not read either (the
write buffer is bounded).

Requests are read no faster than they are served: a connection with more requests than the lanes take is *parked*, and
its socket is not read until it has its turn (see Lanes). So a flood slows down its sender and not the other clients;
reading a request only to refuse it would cost a third of serving it. If a peer disconnects, its one-way requests and
its messages are still served.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from typing import TYPE_CHECKING, cast

from appliance.remoting.acceptor import peer_address
from appliance.remoting.access_gate import is_permitted
from appliance.remoting.client_peer import ClientPeer
from appliance.remoting.error_response import not_supported
from appliance.remoting.fast_path import FastPath
from appliance.remoting.lane import Lane, Route, Turn
from appliance.remoting.lanes import LONG_SECONDS, ROUND_AFTER_SECONDS
from appliance.remoting.request_decoder import decode_request, decode_request_with_fields
from gantrymq.errors import FrameError
from gantrymq.message.ids import encode_host
from gantrymq.remoting.command import RESPONSE_FLAG, RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol

if TYPE_CHECKING:
    from appliance.process.fair_queue import ConnectionUsage
    from appliance.remoting.server import RemotingServer

logger = logging.getLogger(__name__)

PARKED_BYTES_MAX = 32 * 1024  # with less a parked connection is still read, to have requests when its turn comes
MESSAGE_LANE = "send"
PULL_LANE = "pull"
REQUEST_HEADER_BYTES_MAX = 256 * 1024  # a message's properties fill 200 KiB at most, with each byte escaped


class ServerConnection(ClientPeer, asyncio.Protocol):
    """One client's connection.

    last_seen: monotonic seconds of the last bytes. turn: its queued requests; usage: the time that they took.
    number: counts the process's connections. opened_at: monotonic seconds. frame_count: requests that were read.
    """

    _numbers = itertools.count(1)

    def __init__(self, server: RemotingServer) -> None:
        super().__init__(server)
        self._routes = server.routes
        self._access = server.access
        self._fast_path = server.fast_path
        if self._fast_path is not None:
            self._sends, self._pulls = self._lanes.by_name[MESSAGE_LANE], self._lanes.by_name[PULL_LANE]
        decode = decode_request if server.access is None else decode_request_with_fields
        self._protocol = RemotingProtocol(
            frame_bytes_max=server.frame_bytes_max, header_bytes_max=REQUEST_HEADER_BYTES_MAX, decode=decode
        )
        self.last_seen = self.opened_at = 0.0
        self.number = next(self._numbers)
        self.usage: ConnectionUsage  # opened when the address is known
        self.turn: Turn
        self.frame_count = 0
        self.held_bytes = 0  # read and not decoded yet; may be part of a frame
        self.frame_count_seen = 0  # at the server's last scan
        self.stuck_since = 0.0  # monotonic: since when no frame was completed although bytes are held
        self._has_more = False  # more requests than it could submit in its last turn
        self._is_parked = False  # waits for its turn
        self._is_reading_paused = False
        self._awaits_work = False  # waits until some of its coroutines have ended
        self._held: tuple[Lane, Route, RemotingCommand] | None = None  # a decoded request whose lane was full
        self._served_at_once = self._pulls_at_once = 0  # in this turn, by the fast path; how many of them are pulls
        self._is_writing_paused = False

    # -- asyncio.Protocol ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.remote_address = host, port = peer_address(transport)
        self.remote_text = f"{host}:{port}"
        self.usage = self._lanes.usage_table.open(host)
        self.turn = Turn(self.usage)
        self.local_host = transport.get_extra_info("sockname")[0]
        self.born_host = encode_host(host, port)
        self.last_seen = self.stuck_since = self.opened_at = time.monotonic()
        self._server.tune(self._transport)
        self.has_tls = transport.get_extra_info("sslcontext") is not None
        if self._server.reader is not None and not self.has_tls:
            self._descriptor = transport.get_extra_info("socket").fileno()
        if not self._server.admit(self):
            self.close("too many connections")
            return
        if self._server.log_limit.allows("connection_opened", host):
            logger.info("connection opened", extra={"event": "connection_opened", "peer": self.remote_text})

    def data_received(self, data: bytes) -> None:
        self.last_seen = time.monotonic()
        is_turn_over = was_asked = False
        if self._fast_path is not None and self.is_nothing_waiting():
            data, is_turn_over, was_asked = self._serve_on_arrival(self._fast_path, data)
            if not data:
                if self._descriptor >= 0 and not self.is_watched:
                    self._be_watched()
                return
        self._take(data, is_turn_over, was_asked=was_asked)

    def take_rest(self, data: bytes, is_turn_over: bool) -> None:
        """Take what the compiled reader has left of the bytes that it read."""
        self._take(data, is_turn_over, was_asked=True)

    def _take(self, data: bytes, is_turn_over: bool, *, was_asked: bool) -> None:
        """Take bytes that were not served on arrival, and submit the requests if it is this connection's turn."""
        self._protocol.receive_data(data)
        lanes = self._lanes
        if not self._is_parked and not self._awaits_work:
            # Requests may be submitted at once only when none of this connection wait (order), the lanes take more
            # (budget), and not too many of its coroutines run.
            usage = self.usage
            is_allowed = not is_turn_over and not self.turn.left and lanes.budget_seconds() > 0
            if is_allowed and not (usage.begun and lanes.has_enough_begun(usage)):
                self.read_requests(was_asked=was_asked)
            else:
                lanes.begin_waiting(usage)
                self._park(is_new=not is_turn_over)
        if self._is_parked or self._awaits_work:
            self._note_held_bytes()
            self._pause_or_resume()
        if not lanes.is_scheduled:
            lanes.wake()

    def is_nothing_waiting(self) -> bool:
        """Whether no byte, request or coroutine of this connection waits, so that what arrives now comes next."""
        return not (
            self.held_bytes
            or self._is_parked
            or self._awaits_work
            or self._is_discarding
            or self._held is not None
            or self.turn.left
            or self.usage.begun
        )

    def _be_watched(self) -> None:
        """Have the compiled reader read the socket, which is plain; what is unusual comes back by `take_rest`."""
        reader, transport = self._server.reader, self._transport
        if reader is None or transport is None or transport.is_closing() or self._is_reading_paused:
            return
        if reader.watch(self, self._descriptor):
            self.is_watched = True
            transport.pause_reading()
        else:
            self._descriptor = -1

    def read_by_transport(self) -> None:
        """The reader met the end of the stream, or an error: the transport reads on, and knows what to do."""
        self._leave_reader()
        self._descriptor = -1
        if self._transport is not None and not self._transport.is_closing() and not self._is_reading_paused:
            self._transport.resume_reading()

    def _serve_on_arrival(self, fast_path: FastPath, data: bytes) -> tuple[bytes, bool, bool]:
        """Have the fast path serve the plain requests at the start of `data`, and write the answers without a round.

        Returns the bytes behind them, whether the turn is over, and whether it was asked. A shorter way to the same as
        `read_requests`: most messages that come one by one take it, and what they cost is what is done for each read
        event.
        """
        lanes, usage, since = self._lanes, self.usage, self.last_seen
        count_max = lanes.wanted_at_once(usage, self._sends, self._pulls)
        if not count_max:
            return data, False, False
        self._is_served_now = True
        try:
            taken = fast_path.serve(data, 0, count_max, self)
        finally:
            self._is_served_now = False
            if self._out:
                lanes.flush_answered(self)
        count = fast_path.count
        if not count:
            return data, False, True
        self.frame_count += count
        seconds = time.monotonic() - since
        if seconds >= LONG_SECONDS:
            seconds = lanes.own_seconds(since, since + seconds)
        pull_count = fast_path.pull_count
        lanes.served_at_once(usage, seconds, self._sends, count - pull_count, self._pulls, pull_count)
        usage.charge(seconds)
        if lanes.at_once_seconds >= ROUND_AFTER_SECONDS:  # only a round renews the budget
            lanes.wake()
        return data[taken:], count >= count_max, True

    def read_requests(self, *, was_asked: bool = False) -> None:
        """Submit requests that have arrived: at least one, at most as many as the lanes take; park if there are more.

        Called when its turn has come, and on arrival when it is not parked. was_asked: the fast path has just left the
        first of them to the Python path.
        """
        now = self.last_seen = time.monotonic()
        lanes, usage = self._lanes, self.usage
        turn = self.turn
        if turn.left:  # requests of the last turn are still queued and refer to their Turn
            turn = self.turn = Turn(usage)
        turn.arrived, turn.served = now, lanes.served
        was_parked, self._is_parked, body_bytes = self._is_parked, False, 0
        try:
            body_bytes = self._submit(lanes.requests_wanted(usage), was_asked=was_asked)
        except FrameError as exc:
            self._server.warn("bad frame", self, why=str(exc))
            self.close(f"bad frame: {exc}")
        if turn.left:
            lanes.book(turn, body_bytes, prepay=was_parked)
        seconds = time.monotonic() - now
        if seconds >= LONG_SECONDS:
            seconds = lanes.own_seconds(now, now + seconds)
        turn.read_seconds += seconds
        if self._served_at_once:
            pull_count = self._pulls_at_once
            lanes.served_at_once(
                usage, seconds, self._sends, self._served_at_once - pull_count, self._pulls, pull_count
            )
            self._served_at_once = 0
        if not turn.left:  # no request is queued whose settlement would charge the reading
            usage.charge(turn.read_seconds)
            turn.read_seconds = 0.0
        has_more = self._has_more and not self._is_discarding
        if has_more != was_parked:  # the lanes count waiting connections, to share what is read ahead
            (lanes.begin_waiting if has_more else lanes.end_waiting)(usage)
        if has_more:
            self._park(is_new=False)
        if self.held_bytes or self._protocol.pending_bytes:
            self._note_held_bytes()
        if has_more or self._is_reading_paused:
            self._pause_or_resume()

    def _submit(self, count_max: int, *, was_asked: bool) -> int:
        """Submit up to `count_max` requests, and set `_has_more`. Returns the size of their bodies. Raises FrameError.

        A request whose lane is full is held, and goes first next time.
        """
        self._has_more = False
        count = body_bytes = 0
        next_command, routes, access, submit = (
            self._protocol.next_command,
            self._routes,
            self._access,
            self._lanes.submit,
        )
        if self._held is not None:
            lane, route, held = self._held
            if not submit(lane, self, held, route):
                self._has_more = True
                return 0
            self._held = None
            body_bytes += len(held.body)
        elif self._fast_path is not None and not was_asked:
            count = self._serve_at_once(self._fast_path, count_max)
            if count >= count_max:
                self.frame_count += count
                self._has_more = self._protocol.pending_bytes > 0
                return 0
        while not self._is_discarding and (command := next_command()) is not None:
            if command.flag & RESPONSE_FLAG:
                self._answer_arrived(command)
            elif (entry := routes.get(command.code)) is None:
                self._answer_unknown(command)
            elif (access is None or is_permitted(access, self, command)) and (
                self._transport is not None or _needs_no_reader(entry[0], command)
            ):
                if not submit(entry[0], self, command, entry[1]):
                    self._held = (*entry, command)
                    self._has_more = True
                    break
                body_bytes += len(command.body)
            count += 1  # also for refused requests and for responses: decoding them took time
            if count >= count_max:
                self._has_more = self._protocol.pending_bytes > 0
                break
        self.frame_count += count
        return body_bytes

    def _serve_at_once(self, fast_path: FastPath, count_max: int) -> int:
        """Have the fast path serve the plain requests that come first, up to `count_max`. Returns how many it took.

        Requests of its lanes that run, or wait, may have filled one: then the rules of a full lane count.
        """
        sends, pulls = self._sends, self._pulls
        if self._is_discarding or sends.is_full or pulls.is_full:
            return 0
        count = self._protocol.take_frames(fast_path, count_max, self)
        if count:
            self._served_at_once, self._pulls_at_once = count, fast_path.pull_count
        return count

    def _park(self, *, is_new: bool = True) -> None:
        """Wait for a turn, or, with too many running coroutines, for the end of some of them first."""
        if self._lanes.has_enough_begun(self.usage):
            self._awaits_work = True
        else:
            self._is_parked = True
            self._lanes.park(self, is_new=is_new)

    def work_ended(self) -> None:
        """Called when a coroutine that served this connection has ended."""
        if self._awaits_work and not self._lanes.has_enough_begun(self.usage):
            self._awaits_work = False
            self._is_parked = True
            self._lanes.park(self)
            self._lanes.wake()

    def _note_held_bytes(self) -> None:
        is_over = self._transport is None and not self._is_parked and not self._awaits_work
        held_bytes = 0 if is_over else self._protocol.pending_bytes
        if held_bytes != self.held_bytes:
            self._server.hold_bytes(self, held_bytes)

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self._pause_or_resume()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        """Read the socket unless the peer must wait: for its turn, or until it has read its answers."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        is_waiting = (self._is_parked or self._awaits_work) and self.held_bytes > PARKED_BYTES_MAX
        if (is_waiting or self._is_writing_paused) != self._is_reading_paused:
            self._is_reading_paused = not self._is_reading_paused
            if self._is_reading_paused:
                self._leave_reader()
                transport.pause_reading()
            else:
                transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"{type(exc).__name__}: {exc}" if exc else self._close_reason
        self._leave_reader()
        self._client_requests.connection_lost(self.remote_text, reason)
        self._out.clear()
        self._transport = None
        # Requests that arrived before the disconnect are served: the client may have sent messages and closed at once.
        is_served_on = (self._is_parked or self._awaits_work) and not self._is_discarding
        self._is_discarding = not self._server.forget(self, is_served_on=is_served_on)
        if self._server.log_limit.allows("connection_closed", self.remote_address[0]):
            facts = {"event": "connection_closed", "peer": self.remote_text, "why": reason}
            logger.info("connection closed", extra=facts)

    @property
    def waits_for_bytes(self) -> bool:
        """Whether an incomplete frame waits for the peer, and not for a turn or the write buffer."""
        return self.held_bytes > 0 and not self._is_parked and not self._is_writing_paused

    def _answer_unknown(self, request: RemotingCommand) -> None:
        if not request.is_oneway:
            self.write(not_supported(request).encode())
        if self._access is not None and self._access.unknown_code(self, request.code):
            self.close("too many unknown request codes without an account")

    def _answer_arrived(self, response: RemotingCommand) -> None:
        if not self._client_requests.answered(response):
            logger.debug("response without a request", extra={"event": "stray_answer", "peer": self.remote_text})


def _needs_no_reader(lane: Lane, request: RemotingCommand) -> bool:
    """Whether a request is served although its client has disconnected: one-way requests and messages."""
    return request.is_oneway or lane.name == MESSAGE_LANE
