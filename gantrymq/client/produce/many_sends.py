"""Sending many messages with their requests on the way at once: what `Producer.send_many` does.

Each message is in one state at a time:

    waiting       its request was handed to a connection; the answer has not been looked at
    failed once   its first try failed; further tries are left to be made
    stored        a broker answered that it stored the message: the result has its place in `_results`
    given up      the error of its last try is in `_failures`

At the end every message is stored or given up. A message that was given up can still be in a queue: after a lost
connection, a timeout or an unreadable answer the broker may have stored it. The same holds for the first try of a
message that was stored later: then it is in two queues, with the same unique id.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gantrymq.client.connection.send_codec import Outgoing, pack, send_result
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult
from gantrymq.errors import GantryError, SendIncomplete
from gantrymq.message.model import Message, MessageQueue
from gantrymq.remoting.command import RemotingCommand

StoredCallback = Callable[[Sequence[Message], SendResult, float], None]


class FirstTry(NamedTuple):
    """A message and the queue it was sent to first. position: its place among all; started: time.monotonic()."""

    position: int
    message: Message
    outgoing: Outgoing
    queue: MessageQueue
    started: float


class ManySends:
    """One call of `send_many`.

    in_flight: so many messages wait for answers at most. timeout_s: for the first try of a message, and again for all
    its further tries together. on_stored: called with each stored message, its result and when its first try started.
    """

    def __init__(
        self,
        sender: Sender,
        options: ProducerOptions,
        *,
        in_flight: int,
        timeout_s: float,
        on_stored: StoredCallback | None,
    ) -> None:
        self._sender = sender
        self._compress_from_bytes = options.compress_from_bytes
        self._in_flight = in_flight
        self._timeout_s = timeout_s
        self._on_stored = on_stored
        self._waiting: deque[tuple[FirstTry, str, asyncio.Future[RemotingCommand]]] = deque()  # with broker's address
        self._failed_once: list[tuple[FirstTry, GantryError]] = []
        self._results: list[SendResult | None] = []  # by position; None unless stored
        self._failures: dict[int, GantryError] = {}

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
            raise SendIncomplete(self._failures, len(self._results) - len(self._failures))
        return [result for result in self._results if result is not None]

    async def _send_first(self, position: int, message: Message) -> None:
        try:
            outgoing = pack(message, compress_from_bytes=self._compress_from_bytes)
            queue = self._sender.pick(await self._sender.queues(message.topic))
        except GantryError as exc:
            # Nothing was sent. The message or its topic is the reason, so another broker would not help: given up.
            self._failures[position] = exc
            return
        first = FirstTry(position, message, outgoing, queue, time.monotonic())
        try:
            address, answer = await self._sender.begin_send(queue, outgoing, self._timeout_s)
        except GantryError as exc:
            await self._note_failure(first, exc)  # no request left this process
        else:
            self._waiting.append((first, address, answer))

    async def _settle_oldest(self) -> None:
        """Wait for the answer to the oldest request. Those behind it go on meanwhile."""
        first, address, answer = self._waiting.popleft()
        try:
            result = send_result(await answer, first.outgoing, first.queue.broker_name, address)
        except GantryError as exc:
            await self._note_failure(first, exc)  # refused and not stored, or without an answer and perhaps stored
        else:
            self._note_stored(first, result)

    async def _note_failure(self, first: FirstTry, failure: GantryError) -> None:
        """Failed messages are tried again together: one after the other, each could wait for a whole timeout."""
        self._failed_once.append((first, failure))
        if len(self._failed_once) >= self._in_flight:
            await self._try_again()

    async def _try_again(self) -> None:
        """Make the further tries of every message that failed once; then each of them is stored or given up."""
        failed, self._failed_once = self._failed_once, []
        tries = (
            self._sender.send_again(first.outgoing, first.queue, failure, self._timeout_s) for first, failure in failed
        )
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        for (first, _), outcome in zip(failed, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                self._failures[first.position] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._note_stored(first, outcome)

    def _note_stored(self, first: FirstTry, result: SendResult) -> None:
        self._results[first.position] = result
        if self._on_stored is not None:
            self._on_stored([first.message], result, first.started)
