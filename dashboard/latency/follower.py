"""Reads what clients report, as it arrives, and writes each minute's histograms.

It begins at the end of the trace topic, and reads at most BYTES_A_LOOK a look: when more arrives than that, the newest
is read and the rest counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from django.db import DatabaseError

from dashboard.cluster.calls import CALL_ERRORS
from dashboard.cluster.errors import GatewayError, TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import QueueExtent
from dashboard.latency.book import LatencyBook
from dashboard.latency.kept import MINUTE, condense, keep
from gantrymq.client.produce.trace_records import decode_records
from gantrymq.message.topics import TRACE_TOPIC

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
PULL_MESSAGES = 16
BYTES_A_LOOK = 1 << 20  # some 5 000 reports
BEHIND_MAX = 200  # trace messages of a queue that are caught up with
CALL_LIMIT_S = 5.0
CONDENSE_EACH_S = 600.0


class LatencyFollower:
    """`run` looks every PERIOD_S until it is cancelled; what the minute that runs has so far is written then, too."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._clock = clock
        self._book = LatencyBook()
        self._ends: dict[str, int] | None = None  # queue key → the next offset; None: not looked yet
        self._minute = self._minute_of_now()
        self._condensed_at = float("-inf")

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(PERIOD_S)
                await self._safely()
        finally:
            await self._write()

    async def _safely(self) -> None:
        try:
            await self.look()
        except (GatewayError, *CALL_ERRORS) as exc:  # its own checks say it on the Overview
            logger.debug("traces not read", extra={"event": "traces_not_read", "error": str(exc)})
        except DatabaseError as exc:
            logger.debug("latency not written", extra={"event": "history_not_written", "error": str(exc)})
        except Exception:  # a bug here must not end the following for good
            logger.exception("following traces failed", extra={"event": "sampling_failed"})

    async def look(self) -> None:
        """Take what is new; write the minute that has ended."""
        if self._minute_of_now() > self._minute:
            await self._write()
        if self._clock() - self._condensed_at >= CONDENSE_EACH_S:
            self._condensed_at = self._clock()
            await condense(self._clock())
        try:
            queues = await self._gateway.topics.queues(TRACE_TOPIC, timeout_s=CALL_LIMIT_S)
        except TopicNotFound:
            self._ends = self._ends or {}  # the topic that the first trace makes is read from its beginning
            return
        if self._ends is None:
            self._ends = {queue.key: queue.max_offset for queue in queues}
        room = BYTES_A_LOOK
        for queue in queues:
            room = await self._read(queue, self._ends, room)

    # ---- helpers

    async def _read(self, queue: QueueExtent, ends: dict[str, int], room: int) -> int:
        """Take a queue's messages as far as there is room; returns what is left of it."""
        begin = ends.get(queue.key, 0)
        if begin > queue.max_offset:  # the topic was deleted and created again
            begin = queue.min_offset
        newest = max(begin, queue.min_offset, queue.max_offset - BEHIND_MAX)
        if newest > begin:
            self._book.skip(newest - begin)
        while newest < queue.max_offset and room > 0:
            messages, lost = await self._gateway.messages.pull_new(
                TRACE_TOPIC, queue, newest, PULL_MESSAGES, CALL_LIMIT_S
            )
            if not messages and not lost:
                break
            for message in messages:
                body = bytes(message.body)
                self._book.take(decode_records(body.decode(errors="replace")), self._clock())
                room -= len(body)
                await asyncio.sleep(0)  # pages go first
            newest = max([*(one.queue_offset for one in messages), *(one.queue_offset for one in lost)]) + 1
        ends[queue.key] = newest
        return room

    async def _write(self) -> None:
        start, self._minute = self._minute, self._minute_of_now()
        await keep(start, self._book.finish())

    def _minute_of_now(self) -> int:
        return int(self._clock()) // MINUTE * MINUTE
