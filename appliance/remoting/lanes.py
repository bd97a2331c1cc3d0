"""Request lanes: a bounded queue per kind of request, drained fairly by the event loop.

RocketMQ has a thread pool per kind of request; here one loop serves all of them. Each round takes up to a share from
every lane in turn, so a flood of sends can't starve heartbeats, and a round ends after a few milliseconds, so sockets
and timers stay alive. What the pools' queues were, the lanes are: their size, capacity and head wait are the *queue
watermarks*.

    full of work under way                 -> SYSTEM_BUSY [OVERLOAD], at once
    waited longer than its limit for others -> SYSTEM_BUSY [TIMEOUT_CLEAN_QUEUE], unserved (RocketMQ: BrokerFastFailure)

Neither is the answer to a burst: a burst is slowed down. Before a connection reads on it asks for how many seconds more
may be queued (`budget_seconds`): READ_AHEAD_SECONDS in all, by what requests of each connection took lately. That is
measured, so on a slow machine it is fewer requests. Connections that have more are *parked*, their sockets left alone,
and read on in turns; whose turn it is depends on what each has cost so far (fair_queue.py). What waits, waits in its
socket, for as long as it takes.

A wait is counted by what the lanes served meanwhile, not by the clock: a process that was stopped, or that others kept
from its core or its disk, serves what it had read before. One-way requests never expire, for nobody would be told.

A handler answers with bytes (a whole frame), a RemotingCommand, None (no answer now), or a coroutine that ends in one
of these; coroutines run as tasks, in slices, and count as queued until they end.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from appliance.process.cooperative import paid_by, turnstile
from appliance.process.fair_queue import Account, Ledger, TurnQueue
from appliance.remoting.error_response import failure_answer
from appliance.remoting.lane import Answer, Handler, Lane, LaneLimits, Route, Turn
from appliance.remoting.step_timer import metered
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

ROUND_SECONDS_MAX = 0.004  # one drain round; the loop looks at sockets and timers between rounds
LANE_SECONDS_MAX = 0.002  # of one lane in it: there are requests that cost as much as hundreds
COSTLY_BODY_BYTES = 64 * 1024  # the clock is looked at each fourth request, and behind each with a larger body
SHARE = 64  # requests of one lane before the next lane has its turn
READ_AHEAD_SECONDS = 0.010  # what is queued takes so long to serve; above it connections are parked
TURN_SECONDS = 0.004  # what one connection may bring at once
TURN_REQUESTS_MAX = 256  # however cheap its last ones were
BACKLOG_BYTES_WANTED = 32 * 1024 * 1024  # bodies queued, above which connections are parked: memory, not time
BEGUN_MAX = 64  # coroutines of one connection under way, before it is read on
LONG_SECONDS = 0.001  # a stretch above it may be another process's: the CPU's clock decides
WORKED_SECONDS_OLD_MAX = 0.010  # how old what that clock said may be


class Lanes:
    """All lanes of a process, and the loop's one place where requests are served."""

    def __init__(self, context: Any, limits: Mapping[str, LaneLimits]) -> None:
        self._context = context
        self.by_name = {name: Lane(name, limit) for name, limit in limits.items()}
        self._lanes = tuple(self.by_name.values())
        self.ledger = Ledger()
        self.queued_seconds = 0.0  # what serving all that is queued will probably take
        self.queued_bytes = 0  # bodies queued in all lanes
        self.served = 0.0  # seconds that the lanes have worked since the start
        self.worked = 0.0  # CPU seconds of the loop's thread, when they were looked at last
        self.worked_at = 0.0  # monotonic seconds: when that was
        self.parked_count = 0  # connections that have more requests at hand than are wanted now
        self._parked: TurnQueue[ServerConnection] = TurnQueue()  # have more requests at hand than were wanted
        self._dirty: list[ServerConnection] = []  # have answers to write at the end of the round
        self._is_scheduled = False
        self._is_round_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, lane: Lane, connection: ServerConnection, request: RemotingCommand, route: Route) -> bool:
        """Queue a request; False when it has to wait with its connection until there is room in the lane.

        Refused is only what finds the lane full of coroutines, which may take as long as they like. The caller wakes
        the lanes when it has submitted all.
        """
        queue = lane.queue
        if len(queue) + lane.running >= lane.capacity or lane.queued_bytes >= lane.queued_bytes_max:
            if queue:
                return False
            lane.rejected += 1
            self._refuse(lane, connection, request, "[OVERLOAD]system busy, start flow control for a while")
            return True
        turn = connection.turn
        turn.left += 1
        lane.queued_bytes += len(request.body)
        queue.append((turn, connection, request, route.handler))
        return True

    def budget_seconds(self) -> float:
        """How much more may be queued, by the time that serving it will take; 0 or less: nothing."""
        return READ_AHEAD_SECONDS - self.queued_seconds if self.queued_bytes <= BACKLOG_BYTES_WANTED else 0.0

    @staticmethod
    def has_enough_begun(account: Account) -> bool:
        """Whether so much work of a connection is under way that it is not read on: many, or a few that cost much."""
        return account.begun > 0 and (
            account.begun >= BEGUN_MAX or account.begun * account.request_seconds >= READ_AHEAD_SECONDS
        )

    def requests_wanted(self, account: Account) -> int:
        """How many requests a connection may bring now, one at least."""
        if not account.is_known:
            account.request_seconds = account.address.request_seconds
        seconds = READ_AHEAD_SECONDS - self.queued_seconds
        if seconds > TURN_SECONDS:
            seconds = TURN_SECONDS
        if self.parked_count:  # with long turns few would be there to choose from
            seconds = min(seconds, READ_AHEAD_SECONDS * self.ledger.share(account))
        count = int(seconds / account.request_seconds)
        return 1 if count < 1 else TURN_REQUESTS_MAX if count > TURN_REQUESTS_MAX else count

    def book(self, turn: Turn, body_bytes: int, *, prepay: bool) -> None:
        """The requests of a turn are queued. prepay: more turns are given in one go, each by what was paid before."""
        turn.request_seconds = each = turn.account.request_seconds
        self.queued_seconds += each * turn.left
        self.queued_bytes += body_bytes
        turn.prepaid = 0.0
        if prepay:
            turn.prepaid = each
            turn.account.charge(each * turn.left)

    def look_at_worked(self, now: float) -> None:
        """Ask the kernel how long the loop's thread has worked; that takes a microsecond, so not for each request."""
        self.worked, self.worked_at = time.thread_time(), now

    def own_seconds(self, since: float, now: float) -> float:
        """What of a long stretch by the clock was this process's own: others may have had the core for most of it."""
        before = self.worked
        self.look_at_worked(now)
        return min(now - since, self.worked - before)

    def begin_waiting(self, account: Account) -> None:
        """A connection waits for its turn now, until `end_waiting`."""
        self.parked_count += 1
        self.ledger.begin_waiting(account)

    def end_waiting(self, account: Account) -> None:
        """It has all been read."""
        self.parked_count -= 1
        self.ledger.end_waiting(account)

    def park(self, connection: ServerConnection, *, is_new: bool = True) -> None:
        """Read on from this connection when it is its turn. is_new: it had none from which this is left."""
        if connection.turn.left:
            connection.turn.has_more = True
            return
        self._parked.put(connection.account, connection, time.monotonic(), is_new=is_new)

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
        if now - self.worked_at > WORKED_SECONDS_OLD_MAX:
            self.look_at_worked(now)
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
            if not has_more:
                self.queued_seconds, self.queued_bytes = 0.0, 0  # what rounding has left
                has_more = len(self._parked) > 0
                if has_more:
                    self._read_on(now)
        if has_more and now >= deadline:
            self._read_on(now)
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.flush()
        self._is_scheduled = False
        if has_more:
            self.wake()

    def _read_on(self, now: float) -> None:
        """Let parked connections bring more, each in its turn, until enough is queued or reading has taken long."""
        deadline = now + ROUND_SECONDS_MAX
        for _ in range(len(self._parked)):
            if self.budget_seconds() <= 0:
                return
            self._parked.take().read_requests()
            if time.monotonic() > deadline:
                return

    def _serve(self, lane: Lane, now: float) -> None:
        """Serve up to SHARE requests of one lane."""
        queue, context = lane.queue, self._context
        size = len(queue)
        if size > lane.size_peak:
            lane.size_peak = size
        turn, owner = queue[0][:2]
        wait = now - turn.arrived
        if wait > lane.wait_peak:
            lane.wait_peak = wait
        oldest_allowed = now - lane.wait_seconds_max
        popleft, monotonic = queue.popleft, time.monotonic
        deadline = now + LANE_SECONDS_MAX
        body_bytes = turn_bytes = count = 0
        for number in range(min(size, SHARE)):
            if (number & 3 == 3 or body_bytes > COSTLY_BODY_BYTES) and monotonic() > deadline:
                _let_others_first(queue, turn)
                break  # and the other lanes
            its_turn, connection, request, handler = popleft()
            if its_turn is not turn:  # another connection's: what it costs is another's, too
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
                        break
                    continue
                answer = answer.encode()
            if not request.flag & ONEWAY_FLAG:
                connection.write(answer)
        self._settle(lane, owner, turn, now, count, turn_bytes)

    def _settle(
        self, lane: Lane, owner: ServerConnection, turn: Turn, since: float, count: int, body_bytes: int
    ) -> float:
        """So many requests of a turn were served since then: book what they took. Returns the time."""
        now = time.monotonic()
        seconds = now - since
        if seconds > LONG_SECONDS:
            seconds = self.own_seconds(since, now)
        self.served += seconds
        seconds += turn.read_seconds
        turn.read_seconds = 0.0
        turn.left -= count
        account = turn.account
        account.charge(seconds - turn.prepaid * count)
        account.note(seconds, count)
        self.queued_seconds -= turn.request_seconds * count
        self.queued_bytes -= body_bytes
        lane.queued_bytes -= body_bytes
        if turn.has_more and not turn.left:
            turn.has_more = False
            self.park(owner, is_new=False)
        return now

    def _is_expired(self, lane: Lane, turn: Turn, request: RemotingCommand) -> bool:
        """Whether others were served for too long since the request came, and its sender will be told so."""
        return not request.flag & ONEWAY_FLAG and self.served - turn.served >= lane.wait_seconds_max

    # -- handlers that take longer ------------------------------------------------------------------------------------

    def _follow(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        lane.running += 1
        connection.account.begun += 1
        task = asyncio.get_running_loop().create_task(self._await_answer(lane, connection, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_answer(
        self, lane: Lane, connection: ServerConnection, request: RemotingCommand, answer: Awaitable[Answer]
    ) -> None:
        account = connection.account
        paid_by.set(account)
        taken = 0.0  # seconds of the loop, in however many steps

        def spend(since: float, now: float) -> None:
            nonlocal taken
            seconds = now - since
            if seconds > LONG_SECONDS:
                seconds = self.own_seconds(since, now)
            taken += seconds
            account.charge(seconds)

        try:
            result: Answer
            try:
                if turnstile().is_busy:
                    await turnstile().next_turn()
                result = await metered(answer, spend)
            except Exception as exc:  # as in _serve: an answer either way
                result = failure_answer(request, exc)
            if result is not None and not request.is_oneway:
                connection.send(result)
        finally:
            lane.running -= 1
            account.begun -= 1
            account.note(taken, 1)
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


def _let_others_first(queue: deque[tuple[Turn, ServerConnection, RemotingCommand, Handler]], turn: Turn) -> None:
    """Move what is left of a turn that took longer than expected behind those of other connections."""
    for _ in range(min(turn.left, len(queue))):
        if queue[0][0] is not turn:
            return
        queue.append(queue.popleft())
