"""The one Spark session of the appliance: `gantry report serve`, a child of this process, which is given run after run.

Its start is most of what a small run costs, so runs that are due together share it, and it stays for a while when
a page of reports is open. It never stays for long: it holds some hundred MiB of memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Sequence

from django.conf import settings

from appliance.settings.variables import PARENT_VARIABLE
from dashboard.models.reports import ReportRun
from dashboard.reports.runs.promises import promises_for
from gantrymq.timeouts import timeout

KEPT_AFTER_LOOK_S = 120.0  # the pages ask for news more often than that while they are open
IDLE_S_MAX = 900.0  # since the last run, however long a page is open
STOP_GRACE_S = 10.0
WORDS_MAX = 4096  # of what the process says last

looks: deque[float] = deque(maxlen=1)  # the steady clock's time of the last look at a page


def note_look() -> None:
    """A page of reports was asked for: its reader may want another run soon."""
    looks.append(time.monotonic())


def is_looked_at() -> bool:
    return any(time.monotonic() - at < KEPT_AFTER_LOOK_S for at in looks)


class WarmSession:
    """At most one process. `command` starts `gantry`."""

    def __init__(self, command: Sequence[str], data: str) -> None:
        self._arguments = [*command, "report", "serve", "--data", data]
        self._process: asyncio.subprocess.Process | None = None
        self._words = b""
        self._listener: asyncio.Task[None] | None = None
        self._idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._process is not None

    @property
    def process_id(self) -> int | None:
        """None when no process lives."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def run(self, run: ReportRun) -> str:
        """Compute the report. Returns what the process said if it died over it, which is empty if it did not.

        Raises OSError when the process can't be started. When this is cancelled, the run is stopped.
        """
        try:
            return await self._run(run)
        except asyncio.CancelledError:
            await self.stop()
            raise
        finally:
            self._idle_since = time.monotonic()

    async def close_when_idle(self) -> None:
        """Call it when there is nothing to do: ends the process unless it is worth keeping."""
        if self._process is None:
            return
        if (
            not is_looked_at()
            or time.monotonic() - self._idle_since > IDLE_S_MAX
            or self._process.returncode is not None
        ):
            await self.close()

    async def close(self) -> None:
        """End it in its own time: what it still writes makes the next start faster. Cancelled, it is stopped."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await self._process.wait()
        finally:
            await self.stop()

    async def stop(self) -> None:
        """End it now: SIGTERM, so that it kills its own children; then insist."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with timeout(STOP_GRACE_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._listener is not None:
            await self._listener

    async def _run(self, run: ReportRun) -> str:
        if self.process_id is None:
            await self.stop()
            await self._start()
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        fields = ("run_id", "report", "begin_ms", "end_ms", "topics", "zone")
        asked = {name: getattr(run, name) for name in fields} | {"promises": await promises_for(run.report)}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await process.stdin.drain()
        if await process.stdout.readline():
            return ""
        await process.wait()
        await self.stop()
        return (
            self._words.decode(errors="replace").strip() or f"gantry report ended with exit code {process.returncode}"
        )

    async def _start(self) -> None:
        self._words = b""
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments,
            cwd=settings.PROJECT_FOLDER,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},  # it ends with this process
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self._listener = asyncio.create_task(self._listen(self._process.stderr), name="words of gantry report")

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while part := await stderr.read(WORDS_MAX):
            self._words = (self._words + part)[-WORDS_MAX:]
