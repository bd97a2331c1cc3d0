"""Sending many messages with their requests on the way at once: what `Producer.send_many` does.

Each message is in one state at a time:

    waiting       its request was handed to a connection; the answer has not been looked at
    failed once   its first try failed, or came to none because nothing could be learnt of its topic just before;
                  further tries are left to be made
    stored        a broker answered that it stored the message: the result has its place in `_results`
    given up      the error of its last try is in `_failures`

At the end every message is stored or given up. A message that was given up can still be in a queue: after a lost
connection, a timeout or an unreadable answer the broker may have stored it. The same holds for the first try of a
message that was stored later: then it is in two queues, with the same unique id.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gantrymq.client.connection.send_codec import Outgoing, is_stored, pack_aside, pack_quickly
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import GantryError, SendIncomplete
from gantrymq.message.model import Message, MessageQueue
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand

StoredCallback = Callable[[Sequence[Message], SendResult, float], None]

# A waiting message: its position among all, the message, what was sent of it, its queue, time.monotonic() of the first
# try, the answer to come. A plain tuple: one is made for each message, and it costs least.
Waiting = tuple[int, Message, Outgoing, MessageQueue, float, asyncio.Future[RemotingCommand]]


class FailedOnce(NamedTuple):
    """A message whose first try, at `queue`, ended with `failure`. started: time.monotonic() of that try. Without a
    queue it came to no try, and the failure is that of an earlier message of its topic."""

    position: int
    message: Message
    outgoing: Outgoing
    queue: MessageQueue | None
    started: float
    failure: GantryError


class ManySends:
    """One call of `send_many`.

    in_flight: so many messages wait for answers at most. timeout_s: for each message, from its first try on. on_stored:
    called with each stored message, its result and when its first try started.
    """

    def __init__(
        self,
        sender: Sender,
        remoting: RemotingClient,
        options: ProducerOptions,
        *,
        in_flight: int,
        timeout_s: float,
        on_stored: StoredCallback | None,
    ) -> None:
        self._sender = sender
        self._remoting = remoting
        self._compression = options.compression
        self._message_bytes_max = options.message_bytes_max
        self._in_flight = in_flight
        self._timeout_s = timeout_s
        self._on_stored = on_stored
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Waiting] = deque()
        self._failed_once: list[FailedOnce] = []
        self._results: list[SendResult | None] = []  # by position; None unless stored
        self._failures: dict[int, GantryError] = {}
        self._lost: dict[str, GantryError] = {}  # by topic: why its queues could not be learnt the last time

    async def send(self, messages: Iterable[Message]) -> list[SendResult]:
        """Send all; the results in the order of the messages. SendIncomplete when some were given up."""
        for position, message in enumerate(messages):
            self._results.append(None)
            if len(self._waiting) >= self._in_flight:
                await self._settle_oldest()
            await self._send_first(position, message)
        while self._waiting:
            await self._settle_oldest()
        # No answer is waited for any more, so no further first try can fail: after these tries every message is stored
        # or given up.
        await self._try_again()
        if self._failures:
            raise SendIncomplete(self._failures, self._results)
        return [result for result in self._results if result is not None]

    async def _send_first(self, position: int, message: Message) -> None:
        try:
            outgoing = pack_quickly(message, self._compression, self._message_bytes_max)
            if outgoing is None:
                outgoing = await pack_aside(message, self._compression, self._message_bytes_max)
            started = time.monotonic()
            answer: asyncio.Future[RemotingCommand] = self._loop.create_future()
            at = self._sender.first_queue(message.topic)
            try_s = self._sender.try_s(message.topic, None, self._timeout_s)
            if at is not None and self._sender.begin(outgoing, at, answer, try_s):
                self._waiting.append((position, message, outgoing, at, started, answer))
                return
            failure = self._lost.get(message.topic)
            if failure is not None and at is None:
                # Each would wait for a whole timeout, so they wait together.
                await self._note_failure(FailedOnce(position, message, outgoing, None, started, failure))
                return
            queue = at or self._sender.pick(await self._queues(message.topic))
        except GantryError as exc:
            # Nothing was sent. The message or its topic is the reason, so another broker would not help: given up.
            self._failures[position] = exc
            return
        started = time.monotonic()
        try:
            address = self._sender.address_of(queue)
            try_s = self._sender.try_s(message.topic, None, self._timeout_s)
            kept = await self._sender.kept_by(address, outgoing, try_s)
            request = self._sender.request(kept, queue)
            connection = await self._remoting.connection(address, request, try_s)
            answer = self._remoting.submit(connection, request, try_s)
        except GantryError as exc:
            # No request left this process.
            await self._note_failure(FailedOnce(position, message, outgoing, queue, started, exc))
        else:
            if self._sender.faults is not None:
                answer.add_done_callback(functools.partial(self._note_latency, queue.broker_name, started))
            self._waiting.append((position, message, outgoing, queue, started, answer))

    async def _queues(self, topic: str) -> Sequence[MessageQueue]:
        try:
            return await self._sender.queues(topic, self._timeout_s)
        except GantryError as exc:
            self._lost[topic] = exc
            raise

    def _note_latency(self, broker_name: str, started: float, answer: asyncio.Future[RemotingCommand]) -> None:
        """When the answer is there, not when its turn comes: those before it may take long."""
        if self._sender.faults is not None and not answer.cancelled():
            has_failed = answer.exception() is not None or not is_stored(answer.result())
            self._sender.faults.note(broker_name, time.monotonic() - started, has_failed=has_failed)

    async def _settle_oldest(self) -> None:
        """Wait for the answer to the oldest request. Those behind it go on meanwhile."""
        position, message, outgoing, queue, started, answer = self._waiting.popleft()
        try:
            result = self._sender.result(await answer, outgoing, queue)
            if result.status is not SendStatus.SEND_OK:
                left_s = self._timeout_s - (time.monotonic() - started)
                deadline = asyncio.get_running_loop().time() + left_s
                result = await self._sender.stored_safely(result, outgoing, deadline, self._timeout_s)
        except GantryError as exc:
            # Refused and not stored, or without a usable answer and perhaps stored.
            await self._note_failure(FailedOnce(position, message, outgoing, queue, started, exc))
        else:
            self._note_stored(position, message, result, started)

    async def _note_failure(self, failed: FailedOnce) -> None:
        """Failed messages are tried again together: one after the other, each could wait for a whole timeout."""
        self._failed_once.append(failed)
        if len(self._failed_once) >= self._in_flight:
            await self._try_again()

    async def _try_again(self) -> None:
        """Make the further tries of every message that failed once; then each of them is stored or given up."""
        batch, self._failed_once = self._failed_once, []
        outcomes = await asyncio.gather(*map(self._deliver_again, batch), return_exceptions=True)
        for failed, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                self._failures[failed.position] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._note_stored(failed.position, failed.message, outcome, failed.started)

    async def _deliver_again(self, failed: FailedOnce) -> SendResult:
        if failed.queue is None:
            return await self._sender.deliver(failed.outgoing, self._timeout_s)
        left_s = self._timeout_s - (time.monotonic() - failed.started)
        deadline = asyncio.get_running_loop().time() + left_s
        return await self._sender.deliver_again(
            failed.outgoing, failed.queue, failed.failure, deadline, self._timeout_s
        )

    def _note_stored(self, position: int, message: Message, result: SendResult, started: float) -> None:
        self._results[position] = result
        if self._on_stored is not None:
            self._on_stored([message], result, started)
