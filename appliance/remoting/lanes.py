"""Request lanes: a bounded queue for each kind of request, drained fairly by the event loop.

RocketMQ has a thread pool for each kind of request; here one loop serves all of them. Each round serves up to SHARE
requests of every lane in turn, so a flood of sends can't starve heartbeats. A round ends after a few milliseconds, so
that the loop can look at sockets and timers. The lanes correspond to the queues of RocketMQ's pools: their size,
capacity and head wait are the *queue watermarks*.

    lane full of running coroutines       -> SYSTEM_BUSY [OVERLOAD], at once
    others served for longer than its limit -> SYSTEM_BUSY [TIMEOUT_CLEAN_QUEUE], unserved (RocketMQ: BrokerFastFailure)

A burst gets neither of these: it is slowed down. Before a connection is read, the lanes say how much work may still be
queued (`budget_seconds`): READ_AHEAD_SECONDS in all. Requests are counted by the measured time of the connection's last
ones, so a slow machine reads fewer. Connections with more requests are *parked*: their sockets are not read, and they
get turns by the time that each has used so far (fair_queue.py). Their requests wait in the sockets, without a limit.

A request's wait is the time that the lanes have worked since it came, not wall time: a process that was stopped, or had
no core or disk, still serves what it had read before. One-way requests never expire, because no response would tell.

A handler returns bytes (a whole frame), a RemotingCommand, None (no response now), or a coroutine that returns one of
these. Coroutines run as tasks, in slices, and count as queued until they end.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import ReferenceType

from appliance.process.cooperative import charged_usage, slice_scheduler
from appliance.process.fair_queue import ConnectionUsage, FairQueue, UsageTable
from appliance.remoting.error_response import error_response
from appliance.remoting.lane import Answer, Handler, Lane, LaneLimits, Route, Turn
from appliance.remoting.step_timer import timed_steps
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.client_peer import ClientPeer
    from appliance.remoting.connection import ServerConnection

ROUND_SECONDS_MAX = 0.004  # one drain round; the loop looks at sockets and timers between rounds
LANE_SECONDS_MAX = 0.002  # one lane in a round: some requests cost as much as hundreds of others
COSTLY_BODY_BYTES = 64 * 1024  # the clock is read after every fourth request, and after each with a larger body
SHARE = 64  # requests of one lane before the next lane has its turn
READ_AHEAD_SECONDS = 0.010  # expected time to serve all queued requests; above it connections are parked
TURN_SECONDS = 0.004  # expected time of the requests that one connection may submit in one turn
TURN_REQUESTS_MAX = 256  # the same as a number, however cheap its last requests were
BACKLOG_BYTES_WANTED = 32 * 1024 * 1024  # queued bodies, above which connections are parked to save memory
AT_ONCE_SECONDS = 0.040  # served on arrival before a round, one request of each connection, while all others are idle
ROUND_AFTER_SECONDS = 0.001  # of requests served on arrival; a round for each of them would cost more than they do
BEGUN_MAX = 64  # running coroutines of one connection, above which it is not read
LONG_SECONDS = 0.001  # a longer step may include other processes' time: the thread's CPU time decides
WORKED_SECONDS_OLD_MAX = 0.010  # the greatest age of the last CPU time reading


class Lanes:
    """All lanes of a process; requests are served here and nowhere else."""

    def __init__(self, limits: Mapping[str, LaneLimits]) -> None:
        self.by_name = {name: Lane(name, limit) for name, limit in limits.items()}
        self._lanes = tuple(self.by_name.values())
        self.usage_table = UsageTable()
        self.queued_seconds = 0.0  # expected time to serve all queued requests
        self.queued_bytes = 0  # bodies queued in all lanes
        self.served = 0.0  # seconds that the lanes have worked since the start
        self.at_once_seconds = 0.0  # of these, since the last round: requests that the fast path served on arrival
        self.worked = 0.0  # CPU seconds of the loop's thread, at the last reading
        self.worked_at = 0.0  # monotonic seconds of that reading
        self.parked_count = 0  # connections with more requests than they may submit now
        self._parked: FairQueue[ServerConnection] = FairQueue()  # those of them that wait for a turn
        self._dirty: list[ClientPeer] = []  # with answers to write at the end of the round
        self._answered: list[ClientPeer] = []  # on arrival, with answers that are not written yet
        self._answered_last: ReferenceType[ClientPeer] | None = None  # on arrival; it may be gone
        self.is_scheduled = False  # a round comes: who wakes the lanes may look here first
        self._is_round_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, lane: Lane, connection: ServerConnection, request: RemotingCommand, route: Route) -> bool:
        """Queue a request. Returns False when the lane is full: the connection keeps the request and tries again.

        The caller calls `wake` when it has submitted all of its requests.
        """
        queue = lane.queue
        if len(queue) + lane.running >= lane.capacity or lane.queued_bytes >= lane.queued_bytes_max:
            if queue:
                return False
            # Running coroutines alone fill the lane. They may wait for anything, so there is no telling when there
            # will be room: only then a request is refused.
            lane.rejected += 1
            self._refuse(lane, connection, request, "[OVERLOAD]system busy, start flow control for a while")
            return True
        turn = connection.turn
        turn.left += 1
        lane.queued_bytes += len(request.body)
        queue.append((turn, connection, request, route.handler))
        return True

    def budget_seconds(self) -> float:
        """How much more work may be queued, seconds; 0 or less: none."""
        if self.queued_bytes > BACKLOG_BYTES_WANTED:
            return 0.0
        return READ_AHEAD_SECONDS - self.queued_seconds - self.at_once_seconds

    @staticmethod
    def has_enough_begun(usage: ConnectionUsage) -> bool:
        """Whether a connection has so many running coroutines, or such expensive ones, that it is not read."""
        return usage.begun > 0 and (
            usage.begun >= BEGUN_MAX or usage.begun * usage.request_seconds >= READ_AHEAD_SECONDS
        )

    def requests_wanted(self, usage: ConnectionUsage) -> int:
        """How many requests a connection may submit now, at least one."""
        if not usage.is_known:  # its address may have been measured since the connection was opened
            usage.request_seconds = usage.address.request_seconds
        seconds = READ_AHEAD_SECONDS - self.queued_seconds
        if seconds > TURN_SECONDS:
            seconds = TURN_SECONDS
        if self.parked_count:  # short turns, so that requests of many connections are queued side by side
            seconds = min(seconds, READ_AHEAD_SECONDS * self.usage_table.share(usage))
        count = int(seconds / usage.request_seconds)
        return 1 if count < 1 else TURN_REQUESTS_MAX if count > TURN_REQUESTS_MAX else count

    def book(self, turn: Turn, body_bytes: int, *, prepay: bool) -> None:
        """Count the queued requests of a turn. prepay: charge their expected time now instead of when it is known."""
        # Several parked connections are read before any of their requests is served. Without prepayment the fair queue
        # would see the same usage for all of these turns. _settle corrects it.
        turn.request_seconds = each = turn.usage.request_seconds
        self.queued_seconds += each * turn.left
        self.queued_bytes += body_bytes
        turn.prepaid = 0.0
        if prepay:
            turn.prepaid = each
            turn.usage.charge(each * turn.left)

    def wanted_at_once(self, usage: ConnectionUsage, sends: Lane, pulls: Lane) -> int:
        """How many sends and pulls may be served on arrival; 0: a lane is full, or requests have to wait."""
        if sends.is_full or pulls.is_full:
            return 0
        if (
            self.queued_seconds + self.at_once_seconds < READ_AHEAD_SECONDS
            and self.queued_bytes <= BACKLOG_BYTES_WANTED
        ):
            return self.requests_wanted(usage)
        return 1 if self._is_only_busy_with(usage) else 0

    def _is_only_busy_with(self, usage: ConnectionUsage) -> bool:
        """Whether the budget is used up, and one request more of this connection keeps no other one waiting.

        Of a thousand connections with a request each all are ready in one turn of the loop. To park those for which the
        budget is too small costs more than to serve them, and they would have their turn next in any case.
        """
        table = self.usage_table
        return (
            self.at_once_seconds < AT_ONCE_SECONDS
            and not self.queued_bytes
            and not any(lane.queue for lane in self._lanes)
            and table.waiting == (usage.address.waiting > 0)
        )

    def served_at_once(
        self, usage: ConnectionUsage, seconds: float, sends: Lane, send_count: int, pulls: Lane, pull_count: int
    ) -> None:
        """Count requests that the fast path served when they were read, in so many seconds. Who calls charges them."""
        sends.served += send_count
        if send_count > sends.size_peak:
            sends.size_peak = send_count
        pulls.served += pull_count
        if pull_count > pulls.size_peak:
            pulls.size_peak = pull_count
        usage.note(seconds, send_count + pull_count)
        self.served += seconds
        self.at_once_seconds += seconds

    def look_at_worked(self, now: float) -> None:
        """Read the CPU time of the loop's thread. It takes a microsecond, so not for each request."""
        self.worked, self.worked_at = time.thread_time(), now

    def own_seconds(self, since: float, now: float) -> float:
        """This thread's part of a long step: other processes may have had the core for most of the wall time."""
        before = self.worked
        self.look_at_worked(now)
        return min(now - since, self.worked - before)

    def begin_waiting(self, usage: ConnectionUsage) -> None:
        """Count a connection that waits for its turn, until `end_waiting`."""
        self.parked_count += 1
        self.usage_table.begin_waiting(usage)

    def end_waiting(self, usage: ConnectionUsage) -> None:
        """Stop counting the connection: all of its requests are submitted."""
        self.parked_count -= 1
        self.usage_table.end_waiting(usage)

    def park(self, connection: ServerConnection, *, is_new: bool = True) -> None:
        """Put the connection into the fair queue. is_new: False when its last turn left requests over."""
        if connection.turn.left:  # it queues up when these are served; before that its usage is not known
            connection.turn.has_more = True
            return
        self._parked.put(connection.usage, connection, time.monotonic(), is_new=is_new)

    def wake(self) -> None:
        """Schedule a round, which serves queued requests and writes answers."""
        if not self.is_scheduled:
            self.is_scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self.serve_round)

    def flush_answered(self, connection: ClientPeer) -> None:
        """Write what a connection was answered on arrival: at once, or when all that is readable now has been read.

        Who is alone saves the step between. Of many, each would wake its client before the others have been read: fewer
        sockets would be ready at a time, and all pay more often for waking up.
        """
        last = self._answered_last
        if last is not None and last() is connection:
            connection.flush()
            return
        self._answered_last = connection.reference
        if not self._answered:
            asyncio.get_running_loop().call_soon(self._flush_collected)
        self._answered.append(connection)

    def _flush_collected(self) -> None:
        answered, self._answered = self._answered, []
        _flush_each(answered)

    def mark_dirty(self, connection: ClientPeer) -> None:
        """Have the connection's answers written at the end of the round."""
        self._dirty.append(connection)
        if not self.is_scheduled:
            self.wake()

    async def close(self) -> None:
        """Cancel running coroutines and drop waiting requests; call it after the listeners are closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self._lanes:
            lane.queue.clear()
        self._parked.clear()

    # -- one round ----------------------------------------------------------------------------------------------------

    def serve_round(self) -> None:
        """Serve queued requests for at most ROUND_SECONDS_MAX, then write all answers together."""
        monotonic = time.monotonic
        now = monotonic()
        if now - self.worked_at > WORKED_SECONDS_OLD_MAX:
            self.look_at_worked(now)
        deadline = now + ROUND_SECONDS_MAX
        has_more = True
        self._is_round_over = False
        self.at_once_seconds = 0.0
        while has_more and now < deadline and not self._is_round_over:
            has_more = False
            for lane in self._lanes:
                if lane.queue:
                    self._serve(lane, now)
                    now = monotonic()
                    if lane.queue:
                        has_more = True
            if not has_more:
                # All lanes are empty, so both sums are 0; this removes the rounding errors that floats accumulate.
                self.queued_seconds, self.queued_bytes = 0.0, 0
                has_more = len(self._parked) > 0
                if has_more and self.at_once_seconds >= READ_AHEAD_SECONDS:
                    break  # nothing may be read in this round any more: without this it would never end
                if has_more:
                    self._read_on(now)
                    now = monotonic()
        # A round cut off by its deadline must read parked connections too: with lanes that never run empty they would
        # wait for ever.
        if has_more and now >= deadline:
            self._read_on(now)
        dirty = self._dirty
        self._dirty = []
        _flush_each(dirty)
        self.is_scheduled = False
        if has_more:
            self.wake()

    def _read_on(self, now: float) -> None:
        """Read from parked connections, each in its turn, until enough is queued or reading has taken long."""
        deadline = now + ROUND_SECONDS_MAX
        for _ in range(len(self._parked)):  # each at most once: a connection with more requests parks itself again
            if self.budget_seconds() <= 0:
                return
            self._parked.take().read_requests()
            if time.monotonic() > deadline:
                return

    def _serve(self, lane: Lane, now: float) -> None:
        """Serve up to SHARE requests of one lane."""
        queue = lane.queue
        size = len(queue)
        if size > lane.size_peak:
            lane.size_peak = size
        turn, owner = queue[0][:2]
        wait = now - turn.arrived
        if wait > lane.wait_peak:
            lane.wait_peak = wait
        oldest_allowed = now - lane.wait_seconds_max
        # The clock is read once for a run of requests of one turn, not for each: most requests take microseconds.
        popleft, monotonic = queue.popleft, time.monotonic
        deadline = now + LANE_SECONDS_MAX
        body_bytes = turn_bytes = count = 0
        for number in range(min(size, SHARE)):
            if (number & 3 == 3 or body_bytes > COSTLY_BODY_BYTES) and monotonic() > deadline:
                _let_others_first(queue, turn)  # this turn's requests cost more than expected
                break
            its_turn, connection, request, handler = popleft()
            if its_turn is not turn:  # the time until now is charged to the turn that used it
                now = self._settle(lane, owner, turn, now, count, turn_bytes)
                turn, owner, turn_bytes, count = its_turn, connection, 0, 0
            body_bytes = len(request.body)
            turn_bytes += body_bytes
            count += 1
            if turn.arrived < oldest_allowed and self._is_expired(lane, turn, request):
                lane.expired += 1
                self._refuse_expired(lane, connection, request, now - turn.arrived)
                continue
            lane.served += 1
            try:
                answer = handler(connection, request)
            except Exception as exc:  # expected or a bug: the client gets a response, and the lane goes on
                answer = error_response(request, exc)
            if answer is None:
                continue
            if not isinstance(answer, bytes):
                if not isinstance(answer, RemotingCommand):
                    self._follow(lane, connection, request, answer)
                    # A coroutine uses its time later, so the clock shows nothing of it here. Coroutines with large
                    # bodies are begun one in a round, or all of them would run in the same turn of the loop.
                    if body_bytes > COSTLY_BODY_BYTES:
                        self._is_round_over = True
                        break
                    continue
                answer = answer.encode()
            if not request.flag & ONEWAY_FLAG:
                connection.write(answer)
        self._settle(lane, owner, turn, now, count, turn_bytes)

    def _settle(
        self, lane: Lane, owner: ServerConnection, turn: Turn, since: float, count: int, body_bytes: int
    ) -> float:
        """Charge the time since `since` for `count` served requests of a turn. Returns the current time."""
        now = time.monotonic()
        seconds = now - since
        if seconds > LONG_SECONDS:
            seconds = self.own_seconds(since, now)
        self.served += seconds
        seconds += turn.read_seconds
        turn.read_seconds = 0.0
        turn.left -= count
        usage = turn.usage
        usage.charge(seconds - turn.prepaid * count)
        usage.note(seconds, count)
        self.queued_seconds -= turn.request_seconds * count
        self.queued_bytes -= body_bytes
        lane.queued_bytes -= body_bytes
        if turn.has_more and not turn.left:
            turn.has_more = False
            self.park(owner, is_new=False)
        return now

    def _is_expired(self, lane: Lane, turn: Turn, request: RemotingCommand) -> bool:
        """Whether the lanes have worked for longer than the limit since the request came. Never for one-way requests:
        their clients would not learn of it."""
        return not request.flag & ONEWAY_FLAG and self.served - turn.served >= lane.wait_seconds_max

    # -- handlers that take longer ------------------------------------------------------------------------------------

    def _follow(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        lane.running += 1
        connection.usage.begun += 1
        task = asyncio.get_running_loop().create_task(self._await_answer(lane, connection, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_answer(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        usage = connection.usage
        charged_usage.set(usage)
        taken = 0.0  # seconds of the loop in all steps so far

        def spend(since: float, now: float) -> None:
            nonlocal taken
            seconds = now - since
            if seconds > LONG_SECONDS:
                seconds = self.own_seconds(since, now)
            taken += seconds
            usage.charge(seconds)

        try:
            result: Answer
            try:
                if slice_scheduler().is_busy:  # others walk long tables: the first step counts as a slice, too
                    await slice_scheduler().next_turn()
                result = await timed_steps(answer, spend)
            except Exception as exc:  # as in _serve: the client gets a response
                result = error_response(request, exc)
            if result is not None and not request.is_oneway:
                connection.send(result)
        finally:
            lane.running -= 1
            usage.begun -= 1
            usage.note(taken, 1)
            connection.work_ended()

    # -- refusals -----------------------------------------------------------------------------------------------------

    def _refuse(self, lane: Lane, connection: ServerConnection, request: RemotingCommand, remark: str) -> None:
        if request.is_oneway:
            lane.oneway_refused += 1
        else:
            connection.write(request.reply(ResponseCode.SYSTEM_BUSY, remark).encode())

    def _refuse_expired(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, waited_seconds: float
    ) -> None:
        self._refuse(
            lane,
            connection,
            request,
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            f"period in queue: {int(waited_seconds * 1000)}ms, size of queue: {len(lane.queue)}",
        )


def _flush_each(connections: Sequence[ClientPeer]) -> None:
    """Write the answers of each; one that can't be written to ends no other's round."""
    for connection in connections:
        try:
            connection.flush()
        except Exception as exc:  # a bug, or a transport that has ended without a word
            connection.reading_failed(exc)


def _let_others_first(queue: deque[tuple[Turn, ServerConnection, RemotingCommand, Handler]], turn: Turn) -> None:
    """Move the rest of a turn behind the requests of other connections."""
    for _ in range(min(turn.left, len(queue))):
        if queue[0][0] is not turn:
            return
        queue.append(queue.popleft())
