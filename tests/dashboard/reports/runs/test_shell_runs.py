"""Runs that were started from a command line stand in the table, and what is wrong with the newest run is an alarm."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from appliance.reports.runs import HOUR_MS, RunFolder, RunSpec, RunStatus, lock_of_work, new_run_id, new_work_folder
from dashboard.models.reports import ReportRun
from dashboard.reports import checks
from dashboard.reports import schedule as schedule_module
from dashboard.reports.runs.queue import enqueue
from dashboard.reports.schedule import ReportSchedule
from tests.appliance.reports.stores import NOON
from tests.dashboard.conftest import Client
from tests.dashboard.finished_run import NOW, result_of


def begun(data: Path) -> RunFolder:
    """What `gantry report` leaves when it begins."""
    folder = RunFolder.in_data(data, new_run_id())
    folder.write_spec(RunSpec(report="traffic", data=str(data), begin_ms=NOON, end_ms=NOON + HOUR_MS))
    return folder


def ended(folder: RunFolder, state: str, error: str = "") -> None:
    folder.write_status(RunStatus(state=state, started_at=1, finished_at=9e8, exit_code=0, rows=4, error=error))


async def test_a_run_of_a_shell_is_shown_while_it_runs_and_when_it_has_ended(data: Path, log_in: Client) -> None:
    client, schedule, folder = await log_in("reader"), ReportSchedule(data=data), begun(data)
    with folder.held():
        folder.write_progress("ingest", "Reading the commit log of broker-a", 77)
        await schedule.look()
        page = (await client.get("/reports/")).content.decode()
        assert "command line" in page and "Reading the commit log of broker-a, 77 messages so far" in page
        assert (await ReportRun.objects.aget()).state == "running"
        ended(folder, "succeeded")
    for _ in range(2):
        await schedule.look()
    run = await ReportRun.objects.aget()
    assert (run.run_id, run.state, run.rows, run.from_shell) == (folder.run_id, "succeeded", 4, True)
    assert (await client.get(f"/reports/runs/{folder.run_id}")).status_code == 200


async def test_a_killed_command_is_a_stopped_run_and_its_temporary_files_go(data: Path) -> None:
    folder, living = begun(data), begun(data)
    dead_work, living_work = new_work_folder(data), new_work_folder(data)
    with lock_of_work(dead_work):
        pass
    with living.held(), lock_of_work(living_work):
        await ReportSchedule(data=data).look()
        killed = await ReportRun.objects.aget(run_id=folder.run_id)
        assert (killed.state, killed.error) == ("cancelled", "the command was killed")
        schedule_module.remove_work_of_the_dead(data)
        assert (dead_work.exists(), living_work.exists()) == (False, True)


async def test_runs_of_a_shell_are_deleted_like_others(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_module, "RUNS_KEPT", 2)
    folders = [begun(data) for _ in range(4)]
    for folder in folders:
        ended(folder, "failed", "no")
    await ReportSchedule(data=data).look()
    assert await ReportRun.objects.acount() == 2
    assert sum(folder.path.exists() for folder in folders) == 2


async def test_a_folder_that_cannot_be_understood_is_left_alone(data: Path) -> None:
    for number, text in enumerate(("", "[]", '{"report": "of tomorrow", "topics": []}')):
        folder = RunFolder.in_data(data, f"20261121T120000Z-00000{number}")
        folder.path.mkdir(parents=True)
        (folder.path / "spec.json").write_text(text)
    await ReportSchedule(data=data).look()
    assert await ReportRun.objects.acount() == 0


async def test_an_incomplete_report_shows_its_result_and_is_an_alarm_until_whole(data: Path, log_in: Client) -> None:
    client, schedule = await log_in("reader"), ReportSchedule(data=data)
    run = await enqueue("traffic", 1, requested_by=None, now=NOW)
    result_of(run, data)
    run.state, run.error, run.started_at = "incomplete", "broker-a: 7 bytes of the log were deleted", NOW
    run.finished_at = NOW + timedelta(seconds=13)
    await run.asave()
    await schedule.look()
    (problem,) = checks.problems()
    assert (problem.title, problem.evidence) == ("The last report is incomplete", run.error)
    page = (await client.get(problem.link)).content.decode()
    assert "traffic.csv" in page and "7 bytes of the log were deleted" in page
    assert "Done, incomplete" in (await client.get("/reports/")).content.decode()
    whole = await enqueue("traffic", 1, requested_by=None, now=NOW + timedelta(hours=1))
    whole.state = "succeeded"
    await whole.asave()
    await schedule.look()
    assert checks.problems() == []
