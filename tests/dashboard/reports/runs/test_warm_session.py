"""How long the one Spark session is kept, seen with a process in its place that answers and does nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from dashboard.models.reports import ReportRun
from dashboard.reports.runs import warm_session
from dashboard.reports.runs.warm_session import WarmSession, note_look

ANSWERING = "import sys\nfor line in sys.stdin: print('{}', flush=True)"
RUN = ReportRun(run_id="a", report="traffic", begin_ms=0, end_ms=1)


@pytest.fixture(autouse=True)
def unseen() -> None:
    warm_session.looks.clear()


@contextlib.asynccontextmanager
async def answering() -> AsyncIterator[WarmSession]:
    session = WarmSession([sys.executable, "-c", ANSWERING], "data")
    try:
        yield session
    finally:
        await session.stop()


async def test_a_session_that_no_page_looks_at_ends_when_there_is_nothing_to_do() -> None:
    async with answering() as session:
        assert await session.run(RUN) == ""
        pid = session.process_id
        assert await session.run(RUN) == "" and session.process_id == pid is not None
        await session.close_when_idle()
        assert not session.is_open


async def test_one_that_is_looked_at_stays_for_a_time_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_session, "KEPT_AFTER_LOOK_S", 3600.0)
    async with answering() as session:
        await session.run(RUN)
        note_look()
        await session.close_when_idle()
        assert session.is_open
        monkeypatch.setattr(warm_session, "IDLE_S_MAX", -1.0)
        await session.close_when_idle()
        assert not session.is_open


async def test_one_that_died_is_started_again() -> None:
    async with answering() as session:
        await session.run(RUN)
        first = session.process_id
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while session.process_id is not None:
            await asyncio.sleep(0.01)
        assert await session.run(RUN) == "" and session.process_id not in (None, first)


async def test_one_that_dies_over_a_run_says_its_last_words() -> None:
    session = WarmSession([sys.executable, "-c", "input(); raise SystemExit('no such luck')"], "data")
    assert await session.run(RUN) == "no such luck"
    assert not session.is_open


async def test_a_stopped_run_stops_the_session() -> None:
    session = WarmSession([sys.executable, "-c", "import time\nwhile True: time.sleep(1)"], "data")
    task = asyncio.create_task(session.run(RUN))
    while not session.is_open:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not session.is_open
