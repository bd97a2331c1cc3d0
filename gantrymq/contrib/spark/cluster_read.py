"""What a task does with a cluster: pulls of one queue's range, several on their way, their records decoded together.

A broker answers a pull with what fits into some 256 KiB, often 32 messages. So a range is read in pieces, IN_FLIGHT of
them at once and given out in order; a piece holds PIECE_BYTES and what one more answer has, at most.

A piece in which a record is damaged is read again, carefully: up to the damage, then that message alone, which tells
the broker to look at it, then what comes behind. Our broker leaves out what it knows to be damaged: what an answer
lacks, and the queue still has, is that.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple, TypeVar

import numpy as np

from gantrymq.client.admin.calls import AdminCalls
from gantrymq.client.connection.answer_fields import int_field
from gantrymq.client.connection.broker_calls import PULL_READ_AGAIN, PULL_SUBSCRIPTION
from gantrymq.contrib.arrow.record_blocks import Ints, RecordBlock, bodies_are_sound, decode_each, follow_chain
from gantrymq.contrib.spark.errors import ReadFailed
from gantrymq.contrib.spark.ranges import NOWHERE, Bounds, Lost, Queue, QueueRange
from gantrymq.errors import ConnectError, NoBrokerYet, RequestTimeout, ResponseError, RouteNotFound
from gantrymq.message.record import place_in_log
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

PIECE_MESSAGES = 2048
PIECE_BYTES = 4 << 20
IN_FLIGHT = 4
PULL_MESSAGES = 1024  # a broker gives as many as its own limits allow
PULL_TIMEOUT_S = 30.0
PAUSE_S, PAUSE_S_MAX = 0.1, 3.0

T = TypeVar("T")

_PASSING = {ResponseCode.SYSTEM_BUSY.value, ResponseCode.SERVICE_NOT_AVAILABLE.value}  # a broker that starts or stops
_OUTCOMES = (
    ResponseCode.SUCCESS.value,
    ResponseCode.PULL_NOT_FOUND.value,
    ResponseCode.PULL_RETRY_IMMEDIATELY.value,
    ResponseCode.PULL_OFFSET_MOVED.value,
)


async def patiently(
    ask: Callable[[], Awaitable[T]],
    timeout_s: float,
    *,
    after_failure: Callable[[], object] = lambda: None,
    is_known: bool = False,
) -> T:
    """What `ask` returns; what fails because a server is away or busy is asked again until the time is over.

    is_known: the topic was there before. A name server forgets the routes of a broker that is away.
    """
    passing = (ConnectError, RequestTimeout, ResponseError, RouteNotFound if is_known else NoBrokerYet)
    until = asyncio.get_running_loop().time() + timeout_s
    pause_s = PAUSE_S
    while True:
        try:
            return await ask()
        except passing as failure:
            passes = not isinstance(failure, ResponseError) or failure.code in _PASSING
            if not passes or asyncio.get_running_loop().time() + pause_s > until:
                raise
            after_failure()
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


class Answer(NamedTuple):
    """What a broker said to a pull. `next_offset`: where to go on."""

    records: bytes
    next_offset: int


class Pulls:
    """Pulls of one queue. `find`: looks up the address of its broker anew."""

    def __init__(self, calls: AdminCalls, group: str, find: Callable[[], Awaitable[str]], timeout_s: float) -> None:
        self._calls, self._group, self._find, self._timeout_s = calls, group, find, timeout_s
        self._address = ""
        self._finding = asyncio.Lock()

    async def bounds(self, queue: Queue) -> Bounds:
        """Where the queue begins and ends now."""

        async def once() -> Bounds:
            address = await self._known_address()
            least = await self._calls.min_offset(address, queue.topic, queue.queue_id)
            return Bounds(least, await self._calls.max_offset(address, queue.topic, queue.queue_id))

        return await patiently(once, self._timeout_s, after_failure=self._forget, is_known=True)

    async def pull(self, item: QueueRange, *, is_second: bool = False) -> Answer:
        """Some messages from the beginning of the range on; where there are none any more, where to go on.

        is_second: the first message alone, which could not be read.
        """
        until = asyncio.get_running_loop().time() + self._timeout_s
        while True:
            ask = functools.partial(self._ask, item, is_second=is_second)
            answer = await patiently(ask, self._timeout_s, after_failure=self._forget, is_known=True)
            found = self._outcome(answer, item)
            if found is not None:
                return found
            if asyncio.get_running_loop().time() > until:
                raise ReadFailed(
                    f"{item}: the broker has nothing from {item.begin} on, although its queue was longer before: is it "
                    "a slave that is behind, or was the topic deleted and created again?"
                )
            await asyncio.sleep(PAUSE_S_MAX / 3)
            self._forget()

    def _forget(self) -> None:
        self._address = ""

    async def _known_address(self) -> str:
        async with self._finding:
            self._address = self._address or await self._find()
            return self._address

    async def _ask(self, item: QueueRange, *, is_second: bool) -> RemotingCommand:
        address = await self._known_address()
        queue = item.queue
        fields = {
            "consumerGroup": self._group,
            "topic": queue.topic,
            "queueId": str(queue.queue_id),
            "queueOffset": str(item.begin),
            "maxMsgNums": "1" if is_second else str(min(len(item), PULL_MESSAGES)),
            "sysFlag": str(PULL_SUBSCRIPTION | (PULL_READ_AGAIN if is_second else 0)),
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subVersion": "0",
            "expressionType": "TAG",
            "subscription": "*",
        }
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, fields)
        answer = await self._calls.remoting.invoke(address, request, timeout_s=PULL_TIMEOUT_S)
        if answer.code not in _OUTCOMES:
            raise refused(answer, address, RequestCode.PULL_MESSAGE)
        return answer

    def _outcome(self, answer: RemotingCommand, item: QueueRange) -> Answer | None:
        """None: nothing yet."""
        if answer.code == ResponseCode.SUCCESS:
            records, next_offset = bytes(answer.body), int_field(answer, "nextBeginOffset", self._address)
            return Answer(records, next_offset) if next_offset > item.begin else None
        if answer.code == ResponseCode.PULL_OFFSET_MOVED:  # the offset is outside of the queue
            least = int_field(answer, "minOffset", self._address)
            most = int_field(answer, "maxOffset", self._address)
            if least > item.begin:
                return Answer(b"", least)
            return Answer(b"", item.end) if most < item.begin else None  # made anew: all of the range is gone
        if answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY:  # the broker left out what it has not any more
            next_offset = int_field(answer, "nextBeginOffset", self._address)
            return Answer(b"", next_offset) if next_offset > item.begin else None
        return None


class Piece(NamedTuple):
    """Records of a part of the range, and what of that part is lost."""

    block: RecordBlock | None
    lost: list[Lost]


class ClusterReading:
    """Reads one range. `next` until it returns None, then or before that `close`.

    checks_bodies: a message whose body does not match its checksum is damaged.
    """

    def __init__(self, pulls: Pulls, item: QueueRange, *, checks_bodies: bool = False) -> None:
        self._pulls = pulls
        self._item = item
        self._checks_bodies = checks_bodies
        self._begun = item.begin  # what comes before is asked for
        self._careful: AsyncGenerator[Piece] | None = None
        self._window: deque[tuple[QueueRange, asyncio.Task[tuple[bytes, int]]]] = deque()

    async def next(self) -> Piece | None:
        """The next records of the range. ReadFailed and what a request raises."""
        if self._careful is not None:
            piece = await anext(self._careful, None)
            if piece is not None:
                return piece
            self._careful = None
        while len(self._window) < IN_FLIGHT and self._begun < self._item.end:
            end = min(self._begun + PIECE_MESSAGES, self._item.end)
            self._ask(QueueRange(self._item.queue, self._begun, end))
            self._begun = end
        if not self._window:
            return None
        item, task = self._window.popleft()
        try:
            records, reached = await task
        except BaseException:
            task.cancel()
            raise
        if reached < item.end:
            rest = QueueRange(item.queue, reached, item.end)
            self._window.appendleft((rest, asyncio.ensure_future(self._fetch(rest))))
        part = QueueRange(item.queue, item.begin, min(reached, item.end))
        block, is_whole = self._sound(records, part.begin, reached)
        if is_whole:
            return await self._piece(block, part)
        self._careful = self._carefully(part)
        return await self.next()

    async def first_since(self, time_ms: int) -> int:
        """The offset of the first message stored at that time or later, else the range's end."""
        async with contextlib.aclosing(self._carefully(self._item)) as pieces:
            async for block, _ in pieces:
                if block is not None and (block.store_timestamp >= time_ms).any():
                    return int(block.queue_offset[np.argmax(block.store_timestamp >= time_ms)])
        return self._item.end

    async def _carefully(self, item: QueueRange) -> AsyncGenerator[Piece]:
        """The range answer by answer, and message by message where one is damaged."""
        at = item.begin
        while at < item.end:
            answer = await self._pulls.pull(QueueRange(item.queue, at, item.end))
            block, is_whole = self._sound(answer.records, at, answer.next_offset)
            place = None
            if is_whole:
                reached = answer.next_offset
            elif block is not None:
                reached = int(block.queue_offset[-1]) + 1
            else:
                answer = await self._pulls.pull(QueueRange(item.queue, at, item.end), is_second=True)
                reached = answer.next_offset
                block, is_whole = self._sound(answer.records, at, reached)
                is_ours = not is_whole and reached <= item.end
                place = place_in_log(answer.records) if is_ours else None
            part = QueueRange(item.queue, at, min(reached, item.end))
            yield await self._piece(block, part, place)
            at = reached

    def _sound(self, records: bytes, begin: int, end: int) -> tuple[RecordBlock | None, bool]:
        """The records up to the first that is damaged or not of these queue offsets, None for none; and whether all are
        there."""
        if not records:
            return None, True
        buffer = np.frombuffer(records, dtype=np.uint8)
        positions, _, _ = follow_chain(buffer, len(buffer))
        if not len(positions):
            return None, False
        block, is_sound = decode_each(buffer, positions, None)
        offsets = block.queue_offset
        is_sound &= (offsets >= begin) & (offsets < end) & (np.diff(offsets, prepend=begin - 1) > 0)
        if self._checks_bodies:
            is_sound[is_sound] = bodies_are_sound(block.take(is_sound))
        if not is_sound.all():
            block = block.head(int(np.argmin(is_sound)))
            return block if len(block) else None, False
        return block, int(positions[-1] + block.size_bytes[-1]) == len(buffer)

    async def _piece(self, block: RecordBlock | None, item: QueueRange, place: int | None = None) -> Piece:
        """The records of the range, and what of it is missing among them. place: of the message at its end, which is
        damaged."""
        if block is not None:
            block = block.take((block.queue_offset >= item.begin) & (block.queue_offset < item.end))
        missing = _missing(block.queue_offset if block is not None else np.empty(0, dtype=np.int64), item)
        if not missing:
            return Piece(block, [])
        bounds = await self._pulls.bounds(item.queue)
        lost: list[Lost] = []
        for gap in missing:
            low = min(max(gap.begin, bounds.begin), gap.end) if gap.begin < bounds.end else gap.end
            end = gap.end if place is None or gap.end < item.end else max(low, gap.end - 1)
            lost += [
                Lost(QueueRange(gap.queue, gap.begin, low)),
                Lost(QueueRange(gap.queue, low, end), NOWHERE),
                Lost(QueueRange(gap.queue, end, gap.end), place),
            ]
        return Piece(block, [each for each in lost if len(each.range)])

    async def close(self) -> None:
        """End what is on its way."""
        if self._careful is not None:
            await self._careful.aclose()
        tasks = [task for _, task in self._window]
        self._window.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, item: QueueRange) -> None:
        self._window.append((item, asyncio.ensure_future(self._fetch(item))))

    async def _fetch(self, item: QueueRange) -> tuple[bytes, int]:
        """Records of the range from its beginning on, and the offset behind them."""
        parts: list[bytes] = []
        size_bytes, at = 0, item.begin
        while at < item.end and size_bytes < PIECE_BYTES:
            answer = await self._pulls.pull(QueueRange(item.queue, at, item.end))
            parts.append(answer.records)
            size_bytes += len(answer.records)
            at = answer.next_offset
        return b"".join(parts), at


def _missing(offsets: Ints, item: QueueRange) -> list[QueueRange]:
    """The offsets of a range that are not among these, which rise."""
    edges = np.concatenate([[item.begin - 1], offsets, [item.end]])
    holes = np.flatnonzero(np.diff(edges) > 1)
    return [QueueRange(item.queue, int(edges[hole]) + 1, int(edges[hole + 1])) for hole in holes]
