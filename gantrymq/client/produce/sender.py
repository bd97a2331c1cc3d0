"""Sender: one message to one of its topic's queues, tried again until its time is up.

A message goes to the topic's queues in turn, or to the queue that was chosen for it. One deadline bounds everything:
looking up the route, connecting, the tries, and the pauses between them. `retry` decides what is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Collection, Sequence

from gantrymq.client.connection.send_codec import Outgoing, pack_aside, send_request, send_result
from gantrymq.client.connection.send_frames import PLAIN_CODE, SendFrames, is_plain
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.fault_latency import FaultLatency, Silences
from gantrymq.client.produce.retry import TRIES_A_CALL, TRY_S, Retry
from gantrymq.client.produce.timed_messages import at_level, keeps_times, rejected
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import ConnectError, GantryError, MessageRejected, RequestTimeout, WrongType
from gantrymq.message import properties as names
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.properties import string_hash_code
from gantrymq.message.topics import check_topic, may_clients_send_to
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import Answered
from gantrymq.remoting.failures import timed_out
from gantrymq.remoting.signature import Stamper
from gantrymq.timeouts import timeout_at

logger: logging.Logger = logging.getLogger(__name__)

QueueSelector = Callable[[Sequence[MessageQueue], Message], MessageQueue]


def queue_by_hash(key: str) -> QueueSelector:
    """Equal keys choose equal queues while a topic keeps its queues, as the Java client's SelectMessageQueueByHash."""
    if not isinstance(key, str):
        raise WrongType(f"sharding_key={key!r:.60}: a text is wanted, not {type(key).__name__}")
    number = abs(string_hash_code(key))
    return lambda queues, message: queues[number % len(queues)]


class Sender:
    """Sends packed messages for a producer group. retries: further tries after the first, None: until time is up.
    elsewhere: try other brokers when one stored a message, but not as safely as it was asked to. faults: notes slow and
    failing brokers, and messages that may go to any queue avoid them; None: that is not wanted. round_delays_up:
    messages for a time get a delay level at brokers that have nothing else; otherwise they are rejected there."""

    def __init__(
        self,
        session: ClientSession,
        group: str,
        *,
        retries: int | None = None,
        elsewhere: bool = False,
        faults: FaultLatency | None = None,
        round_delays_up: bool = False,
    ) -> None:
        self.group = group
        self.faults = faults
        self.silences: Silences = Silences()
        session.when_moved.append(self.silences.answered)  # another host was silent
        self._session = session
        self._namespace = session.namespace
        self._routes = session.routes
        self._remoting = session.remoting
        self._retries = retries
        self._elsewhere = elsewhere
        self._round_delays_up = round_delays_up
        self._frames = SendFrames(group, session.routes.new_topic_queues)
        self._takes_frames = session.remoting.takes_frames and not session.namespace
        self._next_queue = random.randrange(1 << 16)  # so that many producers do not all begin with queue 0

    # -- routes -------------------------------------------------------------------------------------------------------

    async def queues(self, topic: str, timeout_s: float) -> Sequence[MessageQueue]:
        """The queues that take messages of the topic; for a topic that does not exist, those it will be made with.

        Asks again while no name server answers, until the time is up.
        """
        self._session.require_home()
        queues = self.known_queues(topic)
        if queues is not None:
            return queues
        deadline = asyncio.get_running_loop().time() + timeout_s
        retry = Retry(self._retries)
        told: GantryError | None = None
        while True:
            try:
                return await self._look_up(topic, deadline, timeout_s)
            except GantryError as exc:
                # a try that the deadline cut off says less than the one before it
                is_cut = isinstance(exc, RequestTimeout) and asyncio.get_running_loop().time() >= deadline
                told = told if is_cut and told is not None else exc
                await self._pause(retry, told, "", set(), deadline)

    def known_queues(self, topic: str) -> Sequence[MessageQueue] | None:
        """The queues that take messages of the topic, None when they have to be asked for."""
        route = self._routes.known.get(topic)
        return route.writable if route is not None and route.writable and self._session.is_open else None

    async def _look_up(self, topic: str, deadline: float, timeout_s: float) -> Sequence[MessageQueue]:
        """Ask the name servers once, all of them if need be, and register at brokers that are new soon.

        ClientClosed, MessageRejected (a name that is not allowed, or a system topic), RouteNotFound.
        """
        self._session.require_open()
        check_topic(self._namespace.wrap(topic))
        if not may_clients_send_to(topic):
            raise MessageRejected(f"{topic} is a system topic that clients cannot send to")
        try:
            async with timeout_at(deadline) as limit:
                route = await self._routes.to_send(topic, timeout_s=timeout_s / TRIES_A_CALL)
        except TimeoutError:
            if not limit.expired():
                raise  # RequestTimeout, of a name server
            name_servers = self._session.name_servers
            where, was_silent = ", ".join(name_servers.addresses), not name_servers.was_any_heard()
            raise timed_out(where, RequestCode.GET_ROUTEINFO_BY_TOPIC, timeout_s, was_silent=was_silent) from None
        self._session.meet_brokers()
        return route.writable

    # -- sending ------------------------------------------------------------------------------------------------------

    async def deliver(
        self,
        outgoing: Outgoing,
        timeout_s: float,
        queue: MessageQueue | None = None,
        first: MessageQueue | None = None,
    ) -> SendResult:
        """Try until a broker stored the message, or time or retries are used up; with `queue` at that queue only.

        first: where to begin, if that was decided. Raises the failure of the last try.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._remoting.home.loop:
            self._session.require_open()
        deadline = loop.time() + timeout_s
        chosen = first or self.first_queue(outgoing.topic, queue)
        answer: asyncio.Future[RemotingCommand] = loop.create_future()
        try:
            try_s = self.try_s(outgoing.topic, queue, timeout_s)
            # On return the broker has answered that it stored the message: with `deliver_again` the only ways out
            # with a result.
            if chosen is not None and self.begin(outgoing, chosen, answer, try_s):
                result = self.result(await answer, outgoing, chosen)
            else:
                if chosen is None:
                    queues = await self._look_up(outgoing.topic, deadline, timeout_s)
                    chosen = queue or self.pick(queues)
                result = await self.send_to(chosen, outgoing, self.try_s(outgoing.topic, queue, timeout_s))
            if result.status is SendStatus.SEND_OK:
                return result
            return await self.stored_safely(result, outgoing, deadline, timeout_s, queue)
        except GantryError as exc:
            failure = exc
        return await self.deliver_again(outgoing, chosen, failure, deadline, timeout_s, queue)

    async def deliver_again(
        self,
        outgoing: Outgoing,
        failed_at: MessageQueue | None,
        failure: GantryError,
        deadline: float,
        timeout_s: float,
        queue: MessageQueue | None = None,
    ) -> SendResult:
        """As `deliver`, after a first try at `failed_at` that ended with `failure`; None: it came to none."""
        loop = asyncio.get_running_loop()
        retry = Retry(self._retries)
        while True:
            # Either the broker refused, and that try stored nothing. Or its answer is missing: then it may have stored
            # the message, and the next try may store it a second time, with the same unique id. RocketMQ's producers
            # make the same choice: rather twice than not at all.
            broker = failed_at.broker_name if failed_at is not None else ""
            brokers = self._brokers(outgoing.topic, queue)
            if broker:
                moves = self._session.moves
                if isinstance(failure, ConnectError | RequestTimeout) and moves.is_at_fault(broker, failure.address):
                    self.silences.failed(broker)
                moves.report(broker, outgoing.topic, failure)
            await self._pause(retry, failure, broker, brokers, deadline)
            _log_again(outgoing, broker, failure)
            try:
                if isinstance(failure, ConnectError) and failed_at is not None:
                    self._session.look_again_soon(outgoing.topic, use_template=True)
                queues = self.known_queues(outgoing.topic)
                if queues is None:
                    queues = await self._look_up(outgoing.topic, deadline, timeout_s)
                    retry.moved()  # there was none to send to, and now there is
                failed_at = queue or self.pick(queues, avoid=retry.failed_at)
                try_s = self.try_s(outgoing.topic, queue, timeout_s, retry.rounds)
                result = await self.send_to(failed_at, outgoing, min(deadline - loop.time(), try_s))
                if result.status is SendStatus.SEND_OK:
                    return result
                return await self.stored_safely(result, outgoing, deadline, timeout_s, queue)
            except GantryError as exc:
                failure = exc

    async def stored_safely(
        self,
        result: SendResult,
        outgoing: Outgoing,
        deadline: float,
        timeout_s: float,
        queue: MessageQueue | None = None,
    ) -> SendResult:
        """The result of a broker that stored the message as asked, if there is one; else the given result.

        Each other broker is tried once: what goes wrong there does no harm, because the message is stored.
        """
        if not self._elsewhere or queue is not None:
            return result
        tried = {result.queue.broker_name}
        while self._brokers(outgoing.topic, None) - tried:
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            other = self.pick(self.known_queues(outgoing.topic) or (), avoid=tried, may_look=False)
            tried.add(other.broker_name)
            with contextlib.suppress(GantryError):
                again = await self.send_to(other, outgoing, min(left_s, timeout_s / TRIES_A_CALL))
                if again.status is SendStatus.SEND_OK:
                    return again
        return result

    def try_s(self, topic: str, queue: MessageQueue | None, timeout_s: float, rounds: int = 0) -> float:
        """Seconds for one try of a call with so much time. Short only where a message may go to another broker, and
        longer each time that none of them answered: so it does not matter how fast this machine is."""
        longest_s = timeout_s / TRIES_A_CALL
        queues = self.known_queues(topic) if queue is None else None
        if not queues or queues[0].broker_name == queues[-1].broker_name:
            return longest_s
        return min(longest_s, TRY_S * 2.0**rounds)

    def _brokers(self, topic: str, queue: MessageQueue | None) -> set[str]:
        """The brokers that could take the message."""
        if queue is not None:
            return {queue.broker_name}
        return {found.broker_name for found in self.known_queues(topic) or ()}

    async def _pause(self, retry: Retry, failure: GantryError, broker: str, brokers: set[str], deadline: float) -> None:
        """Wait until the next try; raise the failure when there is none."""
        pause_s = retry.pause_after(failure, broker, brokers)
        if pause_s is None or asyncio.get_running_loop().time() + pause_s >= deadline:
            if retry.tries > 1:
                failure.add_note(f"the last of {retry.tries} tries")
            raise failure
        if pause_s and await self._session.moves.wait(broker, failure, pause_s):
            retry.moved()

    async def send_to(self, queue: MessageQueue, outgoing: Outgoing, timeout_s: float) -> SendResult:
        """Try once. The result means: stored. ResponseError: not stored. ConnectError without an address or a
        connection: not sent. ConnectError after sending, RequestTimeout, ProtocolError: may be stored."""
        if self.faults is None:
            return await self._try(queue, outgoing, timeout_s)
        started, has_failed = time.monotonic(), True
        try:
            result = await self._try(queue, outgoing, timeout_s)
            has_failed = False
        except asyncio.CancelledError:
            has_failed = False  # the caller's end says nothing of the broker
            raise
        finally:
            self.faults.note(queue.broker_name, time.monotonic() - started, has_failed=has_failed)
        return result

    async def _try(self, queue: MessageQueue, outgoing: Outgoing, timeout_s: float) -> SendResult:
        address = self.address_of(queue)
        if outgoing.is_timed:
            deadline = asyncio.get_running_loop().time() + timeout_s
            outgoing = await self.kept_by(address, outgoing, timeout_s)
            timeout_s = deadline - asyncio.get_running_loop().time()
        request = self.request(outgoing, queue)
        answer = await self._remoting.invoke(address, request, timeout_s=timeout_s)
        if self.silences.known:
            self.silences.answered(queue.broker_name)
        return send_result(answer, outgoing, queue, address)

    async def kept_by(self, address: str, outgoing: Outgoing, timeout_s: float) -> Outgoing:
        """The message as the broker there keeps it until its time. MessageRejected when it would deliver it at once;
        ConnectError, RequestTimeout, … when it can't be asked."""
        if not outgoing.is_timed:
            return outgoing
        try:
            greeting = await self._session.greeting(address, timeout_s)
        except RequestTimeout:
            raise
        except TimeoutError:
            raise timed_out(address, RequestCode.HEART_BEAT, timeout_s) from None
        if keeps_times(greeting):
            return outgoing
        if not self._round_delays_up:
            raise rejected(address)
        return at_level(outgoing, address, time.time())

    def first_queue(self, topic: str, queue: MessageQueue | None = None) -> MessageQueue | None:
        """Where a message tries first, with `queue` there. None when the route has to be asked for.

        Asked once for each message, and the message goes there: the next answer is the next queue, and of messages
        for a broker that was silent only one looks whether it answers again.
        """
        queues = self.known_queues(topic)
        return None if queues is None else queue or self.pick(queues)

    def begin(self, outgoing: Outgoing, at: MessageQueue, answered: Answered, timeout_s: float) -> bool:
        """Write the request of a first try; its answer or failure goes to `answered`. False, and nothing written, when
        something has to be waited for (a connection to the broker, room on it), or faults are noted."""
        if self.faults is not None:
            return False
        address = self._routes.address(at.broker_name)
        connection = None if address is None else self._remoting.free_connection(address)
        if connection is None or (outgoing.is_timed and not keeps_times(connection.greeting)):
            return False
        if self._takes_frames and is_plain(outgoing):
            opaque, frame = self._frames.frame(outgoing, at)
            connection.submit_frame(answered, PLAIN_CODE, opaque, frame, timeout_s)
        else:
            self._remoting.submit_for(answered, connection, self.request(outgoing, at), timeout_s)
        return True

    def address_for_thread(self, outgoing: Outgoing, at: MessageQueue) -> str | None:
        """Where a thread may try on its own connection. None when something has to be waited for, or faults are noted.
        A broker counts only while the event loop is connected to it: then it was reached, and it is there."""
        if self.faults is not None or self._remoting.uses_tls:
            return None
        address = self._routes.address(at.broker_name)
        connection = None if address is None else self._remoting.open_connection(address)
        if connection is None or (outgoing.is_timed and not keeps_times(connection.greeting)):
            return None
        return address

    def encoded(self, outgoing: Outgoing, queue: MessageQueue, stamper: Stamper) -> tuple[int, int, bytes]:
        """Code, opaque and frame of a new request that stores the message in the queue."""
        if self._takes_frames and is_plain(outgoing):
            return PLAIN_CODE, *self._frames.frame(outgoing, queue)
        request = self.request(outgoing, queue)
        self._remoting.prepare(request, stamper)
        return request.code, request.opaque, request.encode()

    def result(self, answer: RemotingCommand, outgoing: Outgoing, queue: MessageQueue) -> SendResult:
        """What the answer of the queue's broker says. ResponseError when it did not store the message."""
        if self.silences.known:
            self.silences.answered(queue.broker_name)
        return send_result(answer, outgoing, queue, self._routes.address(queue.broker_name) or queue.broker_name)

    def request(self, outgoing: Outgoing, queue: MessageQueue) -> RemotingCommand:
        """The request that stores the message in the queue."""
        request = send_request(outgoing, self.group, queue.queue_id, self._routes.new_topic_queues)
        if self._namespace:
            self._add_namespace(request.ext_fields, outgoing)
        return request

    def _add_namespace(self, fields: dict[str, str], outgoing: Outgoing) -> None:
        topic = self._namespace.wrap(outgoing.topic)
        fields["a"], fields["b"] = self._namespace.wrap(self.group), topic
        mark = f"{names.INSTANCE_ID}{names.NAME_VALUE_SEPARATOR}"
        if topic != outgoing.topic and mark not in outgoing.properties:  # as in Java
            fields["i"] = f"{outgoing.properties}{names.PAIR_SEPARATOR}{mark}{self._namespace.name}"

    async def reply(self, request: MessageExt, answer: Message, timeout_s: float) -> SendResult:
        """Send the answer to a request. Tried once, at the broker that stored the request if its name is known: the
        requester is certain to be connected there."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        self._namespace.exclude(answer.topic)  # each cluster has one for all
        queues = await self.queues(answer.topic, timeout_s)
        there = [queue for queue in queues if queue.broker_name == request.broker_name]
        outgoing = await pack_aside(answer)
        left_s = deadline - asyncio.get_running_loop().time()
        return await self.send_to(self.pick(there or queues, may_look=False), outgoing, left_s)

    def address_of(self, queue: MessageQueue) -> str:
        """The address of the queue's master. ConnectError when it is not known."""
        address = self._routes.address(queue.broker_name)
        if address is None:
            raise ConnectError(queue.broker_name, "no address of this broker is known")
        return address

    def pick(
        self, queues: Sequence[MessageQueue], *, avoid: Collection[str] = (), may_look: bool = True
    ) -> MessageQueue:
        """The next queue in turn, at another broker than those to avoid when there is one. may_look: the message may be
        the one that looks whether a silent broker answers again, because it is told what became of it."""
        if self.faults is not None:
            queues, avoid = self._without_faults(self.faults, queues, avoid)
        elif self.silences.known:
            queues = self.silences.usable(queues, avoid, may_look=may_look)
            chosen = self._in_turn(queues, avoid)
            if may_look:
                self.silences.chosen(chosen.broker_name)
            return chosen
        return self._in_turn(queues, avoid)

    def _in_turn(self, queues: Sequence[MessageQueue], avoid: Collection[str]) -> MessageQueue:
        if not avoid:
            self._next_queue += 1
            return queues[self._next_queue % len(queues)]
        for _ in queues:
            self._next_queue += 1
            queue = queues[self._next_queue % len(queues)]
            if queue.broker_name not in avoid:
                return queue
        return queues[self._next_queue % len(queues)]

    @staticmethod
    def _without_faults(
        faults: FaultLatency, queues: Sequence[MessageQueue], avoid: Collection[str]
    ) -> tuple[Sequence[MessageQueue], Collection[str]]:
        """The queues at brokers that are not to be left alone, or at the least bad one; what else to avoid."""
        names = {queue.broker_name for queue in queues}
        names = (names - set(avoid)) or names
        good = {name for name in names if faults.is_available(name)} or {faults.least_bad(sorted(names))}
        return [queue for queue in queues if queue.broker_name in good], ()


def _log_again(outgoing: Outgoing, broker: str, failure: GantryError) -> None:
    """A message that is sent again may be stored twice, unless it was refused: who counts messages looks for the reason
    here."""
    may_be_stored = isinstance(failure, ConnectError | RequestTimeout)
    logger.debug(
        "send tried again (topic=%s, msg_id=%s, broker=%s, may_be_stored=%s): %s",
        outgoing.topic,
        outgoing.msg_id,
        broker,
        may_be_stored,
        failure,
        extra={
            "event": "send_again",
            "topic": outgoing.topic,
            "msg_id": outgoing.msg_id,
            "broker": broker,
            "may_be_stored": may_be_stored,
            "error": str(failure),
        },
    )
