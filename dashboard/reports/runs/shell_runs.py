"""Runs that were started from a command line: their folders become rows of the one table of runs, and are kept in step.

Such a run has a folder and no row. Whether it still goes on is seen from the lock that its launcher holds; one whose
launcher was killed has neither lock nor status, and counts as stopped.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from appliance.reports.errors import ReportError
from appliance.reports.runs import RunFolder, RunSpec, RunStatus, runs_in
from dashboard.models.reports import ReportRun
from dashboard.reports.runs.results import result_bytes

NEW_MAX = 50  # in one look
ERROR_CHARS_MAX = 2000


class ShellRuns:
    """Looks into the folder of runs, again and again."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._known: set[str] = set()

    async def look(self) -> list[ReportRun]:
        """Make rows of what is new, close those that have ended; return these with their status saved."""
        folders = await asyncio.to_thread(runs_in, self._data)
        self._known &= {folder.run_id for folder in folders}
        for folder in [folder for folder in folders if folder.run_id not in self._known][:NEW_MAX]:
            if await _adopt(folder):
                self._known.add(folder.run_id)
        ended = []
        async for run in ReportRun.objects.filter(from_shell=True, state=ReportRun.State.RUNNING):
            folder = RunFolder.in_data(self._data, run.run_id)
            is_running = folder.is_running()  # before the status: that is written while the lock is held
            status = folder.status()
            if status is not None or not is_running:
                close(run, status or _killed(run, folder))
                run.result_bytes = await asyncio.to_thread(result_bytes, run)
                await run.asave()
                ended.append(run)
        return ended


def close(run: ReportRun, status: RunStatus) -> None:
    """Take over how the run ended."""
    run.state = status.state
    run.rows = status.rows
    run.ingested_rows = status.ingested_rows
    run.error = status.error[:ERROR_CHARS_MAX]
    run.finished_at = datetime.fromtimestamp(status.finished_at, UTC)


async def _adopt(folder: RunFolder) -> bool:
    """Make a row of a folder that has none; False while its first file is not written."""
    if await ReportRun.objects.filter(run_id=folder.run_id).aexists():
        return True
    try:
        spec = folder.spec()
    except FileNotFoundError:
        return False
    except (ReportError, ValueError, TypeError, KeyError):  # of another version; nothing here can show it
        return True
    started_at = _time_of(folder)
    await ReportRun.objects.aget_or_create(run_id=folder.run_id, defaults=_row(spec, started_at))
    return True


def _row(spec: RunSpec, started_at: datetime) -> dict[str, object]:
    return {
        "report": spec.report,
        "state": ReportRun.State.RUNNING,
        "begin_ms": spec.begin_ms,
        "end_ms": spec.end_ms,
        "topics": list(spec.topics),
        "zone": spec.zone,
        "from_shell": True,
        "created_at": started_at,
        "started_at": started_at,
    }


def _time_of(folder: RunFolder) -> datetime:
    return datetime.fromtimestamp((folder.path / "spec.json").stat().st_mtime, UTC)


def _killed(run: ReportRun, folder: RunFolder) -> RunStatus:
    """The status of a run whose launcher was killed."""
    began = run.created_at.timestamp()
    seen_at = (folder.progress() or {}).get("at", began)
    return RunStatus(
        state="cancelled", started_at=began, finished_at=seen_at, exit_code=None, error="the command was killed"
    )
