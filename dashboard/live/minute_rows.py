"""What is sampled each second, as rows of a minute for the reports' lake: slaves, groups and brokers."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic

from django.conf import settings

from appliance.reports.samples.kinds import Row, SampleKind
from appliance.reports.samples.lines import append
from dashboard.live.history import HISTORY_STEP_S
from dashboard.status.board import Snapshot

logger = logging.getLogger(__name__)


class MinuteRows(ABC, Generic[Row]):
    """The minute that runs."""

    kind: SampleKind[Row]

    def __init__(self) -> None:
        self._minute: int | None = None

    def add(self, snapshot: Snapshot) -> list[Row]:
        """Take one second; return the rows of the finished minute when this second belongs to a later one."""
        minute = int(snapshot.at) // HISTORY_STEP_S * HISTORY_STEP_S
        finished: list[Row] = []
        if self._minute is not None and minute > self._minute:
            finished = self._finish(self._minute * 1000)
        self._minute = max(minute, self._minute or 0)  # a clock that is set back does not begin a minute again
        self._take(snapshot)
        return finished

    @abstractmethod
    def _take(self, snapshot: Snapshot) -> None:
        """Add what is seen in this second."""

    @abstractmethod
    def _finish(self, at_ms: int) -> list[Row]:
        """The rows of the minute that began then; forget it."""


async def keep_rows(kind: SampleKind[Row], rows: Sequence[Row]) -> None:
    """Write one minute's rows; on a disk that takes none they are lost, and the log says so."""
    try:
        await asyncio.to_thread(append, settings.APPLIANCE.data, kind, rows)
    except OSError as exc:
        facts = {"event": "samples_lost", "kind": kind.name, "why": str(exc)}
        logger.warning("samples not written", extra=facts)


def mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known; None when none is."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
