"""Writes the book's blocks to the database, beside the sampler: a locked database holds up no look."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.db.models import Q
from django.utils.translation import gettext_noop

from dashboard.history.block_builder import HOUR, MINUTE, SECOND, HistoryBook, Key, block_start
from dashboard.history.series import each_second, now_and_then
from dashboard.models.history import HistoryBlock, HistoryMark
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
SLOW_EACH_S = 10  # what is looked at in turn changes no faster
BLOCKS_A_TURN = 500
KEPT = {SECOND: timedelta(days=1), MINUTE: timedelta(days=30), HOUR: timedelta(days=30)}
FORGET_EACH_S = 3600.0
MARKS_MAX = 1000
BEGINS_WITHIN_S = 60.0  # a new master began anew for that; Apache's do not


class HistoryKeeper:
    """`note` takes what the sampler saw, `run` writes it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._book = HistoryBook()
        self._is_adopted = False
        self._forgotten_at = float("-inf")
        self._slow_at = 0
        self._boots: dict[str, int] = {}  # address of a broker → when it started (ms)
        self._masters: dict[str, str] = {}  # name of a broker → its master's address
        self._marks = [(clock(), gettext_noop("dashboard started"))]

    def note(self, snapshot: Snapshot) -> None:
        """One second."""
        readings = each_second(snapshot)
        if abs(int(snapshot.at) - self._slow_at) >= SLOW_EACH_S:
            self._slow_at = int(snapshot.at)
            readings |= now_and_then(snapshot)
        self._book.add(readings, snapshot.at)
        for broker in snapshot.brokers:
            if broker.facts is not None and broker.facts.boot_ms is not None:
                self._mark(broker, broker.facts, broker.facts.boot_ms)

    def _mark(self, broker: BrokerState, facts: BrokerFacts, boot_ms: int) -> None:
        """Whether it started, or became the master: it begins anew for that, while its process goes on."""
        name, address, found = broker.name, broker.address, None
        if self._boots.get(address, boot_ms) != boot_ms:
            found = boot_ms / 1000, f"{name} started"
        if not broker.is_slave:
            if self._masters.get(name, address) != address:
                began = boot_ms / 1000
                found = began if facts.at - began < BEGINS_WITHIN_S else facts.at, f"{name} master {address}"
            self._masters[name] = address
        self._boots[address] = boot_ms
        if found is not None and len(self._marks) < MARKS_MAX:
            self._marks = [*self._marks, found]

    async def run(self) -> None:
        """Write until cancelled. What can't be written now stays in the book, which is bounded."""
        try:
            while True:
                await asyncio.sleep(PERIOD_S)
                await self._try_to_write()
        finally:
            self._book.flush()
            await self._try_to_write()

    async def write(self) -> None:
        """Write what is due; at first go on with the hour and the day that run."""
        now = self._clock()
        if not self._is_adopted:
            self._book.adopt(await _running_blocks(now))
            self._is_adopted = True
        while blocks := self._book.due(BLOCKS_A_TURN):
            rows = [
                HistoryBlock(series=key.series[: HistoryBlock.SERIES_MAX], step_s=key.step_s, start=key.start,
                             values=values)
                for key, values in blocks
            ]  # fmt: skip
            await HistoryBlock.objects.abulk_create(
                rows, update_conflicts=True, update_fields=["values"], unique_fields=["series", "step_s", "start"]
            )
            self._book.written(blocks)
        if marks := self._marks:
            await _write_marks(marks)
            self._marks = self._marks[len(marks) :]
        if time.monotonic() - self._forgotten_at >= FORGET_EACH_S:
            await _forget(now)
            self._forgotten_at = time.monotonic()

    async def _try_to_write(self) -> None:
        try:
            await self.write()
        except DatabaseError as exc:  # the database's own check says it on the page
            logger.debug("history not written", extra={"event": "history_not_written", "error": str(exc)})
        except Exception:  # a bug here must not stop the watching for good
            logger.exception("writing history failed", extra={"event": "sampling_failed"})


async def _running_blocks(now: float) -> list[tuple[Key, bytes]]:
    running = Q()
    for step in KEPT:
        running |= Q(step_s=step, start=block_start(step, now))
    rows = HistoryBlock.objects.filter(running)
    return [(Key(row.series, row.step_s, row.start), bytes(row.values)) async for row in rows]


async def _write_marks(marks: list[tuple[float, str]]) -> None:
    await HistoryMark.objects.abulk_create(
        HistoryMark(at=datetime.fromtimestamp(at, UTC), text=text[: HistoryMark.TEXT_MAX]) for at, text in marks
    )


@sync_to_async
def _forget(now: float) -> None:
    for step, kept in KEPT.items():
        HistoryBlock.objects.filter(step_s=step, start__lt=int(now - kept.total_seconds())).delete()
    HistoryMark.objects.filter(at__lt=datetime.fromtimestamp(now, UTC) - KEPT[HOUR]).delete()
