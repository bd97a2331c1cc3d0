"""Stopping runs: a waiting one at once, the running one by ending its process. One process has views and schedule."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

from django.utils.translation import gettext_noop

from dashboard.models.reports import ReportRun

STOPPED = gettext_noop("it was stopped by hand")
_running: dict[str, asyncio.Event] = {}  # by run id: set when a person wants it to end


@contextlib.contextmanager
def stoppable(run_id: str) -> Iterator[asyncio.Event]:
    """The schedule's, around a run: the event says that the run is to end."""
    asked = _running[run_id] = asyncio.Event()
    try:
        yield asked
    finally:
        del _running[run_id]


async def stop(run: ReportRun) -> bool:
    """End the run; False when it has ended by itself, or is a command line's, which this process does not own."""
    waiting = ReportRun.objects.filter(pk=run.pk, state=ReportRun.State.QUEUED)
    if await waiting.aupdate(state=ReportRun.State.CANCELLED, error=STOPPED, finished_at=datetime.now(UTC)):
        return True
    asked = _running.get(run.run_id)
    if asked is None:
        return False
    asked.set()
    return True
