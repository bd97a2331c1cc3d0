"""Pulls that found nothing and wait: woken by the next matching message, or answered when their time is up.

The store tells of every dispatched message; a queue without waiting pulls costs one dictionary lookup. Woken pulls run
after the round that stored their messages, so one answer takes all of them (RocketMQ: PullRequestHoldService), and are
written at once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.pull_request import PullRequest
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.queues.filter import Filter, may_match_code

PropertiesOf = Callable[[str, int, int, int], list[bytes]]
PullAgain = Callable[[ServerConnection, RemotingCommand | PullRequest], None]

HELD_MAX = 100_000  # pulls waiting at once
HELD_PER_CONNECTION_MAX = 20_000  # a consumer holds one a queue
HELD_BYTES_MAX = 128 << 20  # of pulls that bring more than a usual one: long expressions, bodies
USUAL_BYTES = 1024
BYTES_OF_A_CHARACTER = 24  # of an expression: two make a tag, with its place in a set
SWEEP_SECONDS = 1.0  # RocketMQ looks every 5 s, so there 15 s mean up to 20


class HeldPull(NamedTuple):
    """A waiting pull. wanted_offset: a message at it or above wakes the pull. deadline: monotonic seconds."""

    connection: ServerConnection
    request: RemotingCommand | PullRequest
    wanted_offset: int
    wanted: Filter | None
    deadline: float
    extra_bytes: int = 0  # beyond what any pull takes, about


class PullRequestHold:
    """All waiting pulls, by topic and queue.

    properties_of: (topic, queue id, queue offset, count) to the encoded properties of those messages. Nothing may be
    parked before `answer_with`.
    """

    def __init__(self, properties_of: PropertiesOf) -> None:
        self._answer: PullAgain = _no_answer
        self._properties_of = properties_of
        self.closed_for = ""  # why nothing new can come; "": it can
        self.held: dict[tuple[str, int], list[HeldPull]] = {}
        self.topics: dict[str, Callable[[str], None]] = {}  # of others that wait for any message of a topic
        self._woken: list[HeldPull] = []
        self._counts: dict[ServerConnection, int] = {}
        self.held_count = 0
        self.held_bytes = 0  # of unusual pulls

    def answer_with(self, answer: PullAgain) -> None:
        """Have `answer` run a pull again, without letting it wait once more: pulls are parked by what answers them."""
        self._answer = answer

    def check_open(self) -> None:
        """BrokerError SERVICE_NOT_AVAILABLE where nothing new can come: consumers look where their master is."""
        if self.closed_for:
            raise BrokerError(ResponseCode.SERVICE_NOT_AVAILABLE, f"nothing to wait for here: {self.closed_for}")

    def park(self, topic: str, queue_id: int, pull: HeldPull) -> None:
        """Let a pull wait. BrokerError SYSTEM_BUSY when too many do: consumers come again after a second; as
        check_open."""
        self.check_open()
        count = self._counts.get(pull.connection, 0)
        if count >= HELD_PER_CONNECTION_MAX or self.held_count >= HELD_MAX:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]too many pulls wait already")
        extra_bytes = _extra_bytes(pull.request)
        if extra_bytes:
            if self.held_bytes + extra_bytes > HELD_BYTES_MAX:
                raise BrokerError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]pulls that wait take too much memory already")
            self.held_bytes += extra_bytes
            pull = pull._replace(extra_bytes=extra_bytes)
        self._counts[pull.connection] = count + 1
        self.held_count += 1
        self.held.setdefault((topic, queue_id), []).append(pull)

    def is_waiting(self, group: str, topic: str, queues: int) -> bool:
        """Whether a pull of the group waits for one of the topic's first `queues` queues."""
        return any(
            pull.request.ext_fields.get("consumerGroup") == group
            for queue_id in range(queues)
            for pull in self.held.get((topic, queue_id), ())
        )

    def messages_arrived(self, topic: str, queue_id: int, first_offset: int, tags_codes: Sequence[int]) -> None:
        """Messages were stored in a queue from `first_offset` on. Called for every put: hot."""
        if self.topics and (tell := self.topics.get(topic)) is not None:
            tell(topic)
        waiting = self.held.get((topic, queue_id)) if self.held else None
        if waiting is None:
            return
        end = first_offset + len(tags_codes)
        kept = []
        for pull in waiting:
            new_offset = max(pull.wanted_offset, first_offset)
            if new_offset < end and self._has_match(
                pull.wanted, topic, queue_id, new_offset, tags_codes[new_offset - first_offset :]
            ):
                self._wake(pull)
            else:
                kept.append(pull)
        if kept:
            self.held[topic, queue_id] = kept
        else:
            del self.held[topic, queue_id]

    def _has_match(
        self, wanted: Filter | None, topic: str, queue_id: int, offset: int, tags_codes: Sequence[int]
    ) -> bool:
        """Ask the filter about messages with these tags codes, the first of which is at `offset`.

        It looks into them if the codes do not decide; more than one read may look into count as a match: the pull
        will tell.
        """
        if not any(may_match_code(wanted, code) for code in tags_codes):
            return False
        if wanted is None or not wanted.records_max:
            return True
        count = len(tags_codes)
        return count > wanted.records_max or any(
            wanted.matches(properties) for properties in self._properties_of(topic, queue_id, offset, count)
        )

    def _release(self, pull: HeldPull) -> None:
        """A pull waits no longer."""
        connection = pull.connection
        self.held_count -= 1
        self.held_bytes -= pull.extra_bytes
        count = self._counts[connection] - 1
        if count:
            self._counts[connection] = count
        else:
            del self._counts[connection]

    def _wake(self, pull: HeldPull) -> None:
        self._release(pull)
        if not self._woken:
            asyncio.get_running_loop().call_soon(self.answer_woken)
        self._woken.append(pull)

    def answer_woken(self) -> None:
        """Answer the pulls that were woken. The loop does it in its next turn; who knows that no more messages come in
        this one does it now. The answers are not kept for the end of a round: their clients have waited enough."""
        woken, self._woken = self._woken, []
        for pull in woken:
            if not pull.connection.is_closing:
                try:
                    self._answer(pull.connection, pull.request)
                except Exception as exc:  # a bug: the others are answered
                    pull.connection.reading_failed(exc)
        for pull in woken:
            pull.connection.flush()

    async def run(self) -> None:
        """Answer pulls whose time is up and forget those whose client is gone."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep(time.monotonic())

    def wake_all(self) -> None:
        """Have all look again, also those who wait for any message of a topic."""
        self.sweep(math.inf)
        for topic, tell in list(self.topics.items()):
            tell(topic)

    def sweep(self, now: float) -> None:
        """One look at every waiting pull."""
        for key, waiting in list(self.held.items()):
            kept = []
            for pull in waiting:
                if pull.connection.is_closing:
                    self._release(pull)
                    continue
                if now >= pull.deadline:
                    self._wake(pull)
                else:
                    kept.append(pull)
            if kept:
                self.held[key] = kept
            else:
                del self.held[key]


def _extra_bytes(request: RemotingCommand | PullRequest) -> int:
    """About how much memory a waiting pull takes beyond a usual one."""
    if isinstance(request, PullRequest):
        chars = len(request.fields.subscription)
    else:
        chars = sum(map(len, request.ext_fields)) + sum(map(len, request.ext_fields.values()))
    if chars + len(request.body) <= USUAL_BYTES:
        return 0
    return chars * BYTES_OF_A_CHARACTER + len(request.body)


def _no_answer(connection: ServerConnection, request: RemotingCommand | PullRequest) -> None:
    raise AssertionError("a pull was parked before there was anyone to answer it")
