"""The schedule of reports: which run by themselves and when, what the page says of it and of each report."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from appliance.reports.catalogue import REPORTS
from appliance.reports.runs import RunFolder
from dashboard.models.management import User
from dashboard.models.reports import ReportPlan, ReportRun
from dashboard.reports import checks
from dashboard.reports import schedule as schedule_module
from dashboard.reports.runs.plans import FIRST_RUN_AFTER, Schedule, ensure_plans, schedule, set_schedule
from dashboard.reports.runs.queue import WAITING_MAX, ask_for, claim_next, enqueue, enqueue_due
from dashboard.reports.schedule import RETRY_AFTER, ReportSchedule, try_again
from tests.dashboard.conftest import Client
from tests.dashboard.finished_run import NOW, finished_run

EVERY = tuple(REPORTS)


async def ended(report: str, state: str, minute: int) -> ReportRun:
    run = await enqueue(report, 1, requested_by=None, now=NOW + timedelta(minutes=minute))
    run.state, run.rows = state, minute
    await run.asave()
    return run


async def test_all_reports_run_by_themselves_until_a_person_chooses(data: Path) -> None:
    before = datetime.now(UTC)
    shown = await schedule()
    assert (shown.interval_minutes, shown.days, shown.reports) == (60, 7, EVERY)
    assert before + FIRST_RUN_AFTER <= shown.next_run_at <= datetime.now(UTC) + FIRST_RUN_AFTER
    await set_schedule(15, 30, ["sizes", "days"])
    shown = await schedule()
    assert (shown.interval_minutes, shown.days, shown.reports) == (15, 30, ("days", "sizes"))
    await set_schedule(0, 30, ["sizes"])
    shown = await schedule()
    assert (shown.is_on, shown.days, shown.reports) == (False, 30, EVERY)


@pytest.mark.parametrize(
    ("there", "then"),
    [
        ({"traffic": 360}, Schedule(360, 30, EVERY, NOW)),
        ({"traffic": 0}, Schedule(0, 30, EVERY, NOW)),
        ({"traffic": 15, "days": 0}, Schedule(15, 30, ("traffic",), NOW)),
    ],
    ids=["the others follow", "the others are off, too", "a choice was made"],
)
async def test_reports_that_older_versions_lacked_get_a_plan(data: Path, there: dict[str, int], then: Schedule) -> None:
    for name, minutes in there.items():
        await ReportPlan.objects.acreate(report=name, interval_minutes=minutes, days=30, next_run_at=NOW)
    assert await schedule() == then
    assert [plan.report for plan in await ensure_plans()] == list(EVERY)


async def test_what_is_due_runs_once_each_however_many_slots_were_missed(data: Path) -> None:
    await ensure_plans()
    await ReportPlan.objects.aupdate(next_run_at=NOW - timedelta(days=3))
    await ReportPlan.objects.acreate(report="of tomorrow", next_run_at=NOW - timedelta(days=3))
    await asyncio.gather(enqueue_due(NOW), enqueue_due(NOW))
    assert (await schedule()).next_run_at == NOW + timedelta(minutes=60)
    await enqueue_due(NOW + timedelta(minutes=59))
    await enqueue_due(NOW + timedelta(minutes=61))  # the first ones are still waiting: no others behind them
    claimed = [run.report for _ in EVERY if (run := await claim_next()) is not None]
    assert claimed == list(EVERY) and await claim_next() is None


async def test_the_schedule_can_be_changed_and_switched_off(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    chosen = {"interval_minutes": "15", "days": "30", "reports": ["traffic", "latency"]}
    before = datetime.now(UTC)
    await client.post("/reports/schedule", chosen)
    shown = await schedule()
    assert (shown.interval_minutes, shown.days, shown.reports) == (15, 30, ("traffic", "latency"))
    assert before <= shown.next_run_at - timedelta(minutes=15) <= datetime.now(UTC)
    page = (await client.get("/reports/")).content.decode()
    assert "2 reports, every 15 minutes, of the last 30 days" in page and page.count(" checked") == 2
    for wrong, sentence in (
        ({"interval_minutes": "1"}, "1 is not one of the available choices"),
        ({"reports": ["<nonsense>"]}, "<nonsense> is not one of the available choices"),
        ({"reports": []}, "Choose a report"),
    ):
        response = await client.post("/reports/schedule", {**chosen, **wrong})
        assert response.status_code == 400 and sentence in response.content.decode()
        assert response["Content-Type"].startswith("text/plain")
    assert await schedule() == shown
    await client.post("/reports/schedule", {**chosen, "interval_minutes": "0"})
    assert "Off." in (await client.get("/reports/")).content.decode()


async def test_the_page_has_the_last_result_and_the_last_state_of_each_report(data: Path, log_in: Client) -> None:
    await set_schedule(60, 7, ["traffic"])
    shown = await finished_run(data)
    results = {"traffic": shown, "sizes": await ended("sizes", "incomplete", 2)}
    await ended("sizes", "succeeded", 1)
    await ended("sizes", "failed", 3)
    await ended("ingest", "succeeded", 4)
    page = (await (await log_in("reader")).get("/reports/")).content.decode()
    tables = page.split('id="overview-title"')[1].split("</section>")[0]
    parts = tables.split("<tr>")
    rows = {name: next(part for part in parts if f">{report.title}<" in part) for name, report in REPORTS.items()}
    table = [rows[name] for name in EVERY]
    assert [part.count("none yet") for part in table] == [int(name not in results) for name in EVERY]
    assert f"/reports/runs/{shown.run_id}/traffic.csv" in rows["traffic"] and ">Done<" in rows["traffic"]
    assert f'/reports/runs/{results["sizes"].run_id}"' in rows["sizes"] and ">Failed<" in rows["sizes"]
    assert '<td class="num opt">2</td>' in rows["sizes"] and '<td class="num opt"></td>' in rows["days"]
    assert [">yes<" in part for part in table] == [name == "traffic" for name in EVERY]


async def test_the_last_result_of_a_report_outlives_runs_of_others(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_module, "RUNS_KEPT", 2)
    runs = [await ended("sizes", "succeeded", 0), await ended("sizes", "succeeded", 1)]
    runs += [await ended("sizes", "failed", 2), *[await ended("days", "succeeded", minute) for minute in (3, 4, 5)]]
    for run in runs:
        RunFolder.in_data(data, run.run_id).path.mkdir(parents=True)
    await ReportSchedule(data=data).forget_old_runs()
    kept = [run.run_id for run in (runs[1], runs[4], runs[5])]
    assert [run.run_id async for run in ReportRun.objects.order_by("id")] == kept
    assert sorted(path.name for path in (data / "reports" / "runs").iterdir()) == sorted(kept)


async def test_a_plan_with_a_cron_line_runs_at_its_times_and_counts_its_zones_days(data: Path) -> None:
    await set_schedule(60, 7, ["sizes"], "0 6 * * mon", "Europe/Berlin")
    shown = await schedule()
    assert (shown.cron, shown.zone, shown.next_run_at.astimezone(UTC).weekday()) == ("0 6 * * mon", "Europe/Berlin", 0)
    due = shown.next_run_at
    await enqueue_due(due - timedelta(seconds=1))
    assert await ReportRun.objects.acount() == 0
    await enqueue_due(due)
    run = await ReportRun.objects.aget()
    assert (run.report, run.zone) == ("sizes", "Europe/Berlin")
    later = (await schedule()).next_run_at - due
    assert timedelta(days=6, hours=22) < later < timedelta(days=7, hours=2)


async def test_a_plan_whose_zone_is_no_more_is_looked_at_again_a_day_later(data: Path) -> None:
    await set_schedule(60, 7, ["sizes"], "0 6 * * mon", "Europe/Berlin")
    await ReportPlan.objects.filter(report="sizes").aupdate(zone="Gone/Away", next_run_at=NOW)
    await enqueue_due(NOW)
    assert (await ReportPlan.objects.aget(report="sizes")).next_run_at == NOW + timedelta(days=1)


async def test_a_run_of_the_schedule_that_failed_is_tried_twice_more_and_a_persons_is_not(data: Path) -> None:
    run = await ended("sizes", "failed", 1)
    for pause, attempt in zip(RETRY_AFTER, (2, 3), strict=True):
        before = datetime.now(UTC)
        following = await try_again(run)
        assert following is not None and following.not_before is not None
        assert (following.report, following.attempt, following.begin_ms) == ("sizes", attempt, run.begin_ms)
        assert before + pause <= following.not_before <= datetime.now(UTC) + pause
        assert await claim_next(following.not_before - timedelta(seconds=1)) is None, "its time has not come"
        run = following
        run.state = "timeout"
        await run.asave()
    assert await try_again(run) is None
    for state in ("succeeded", "incomplete", "cancelled"):
        assert await try_again(await ended("days", state, 2)) is None
    asked = await ended("days", "failed", 3)
    asked.requested_by = await User.objects.acreate(username="ada")
    assert await try_again(asked) is None


async def test_later_tries_keep_no_person_from_asking(data: Path) -> None:
    for minute in range(WAITING_MAX + 1):
        await try_again(await ended("sizes", "failed", minute))
    assert (await ask_for("days", 1, await User.objects.acreate(username="ada"))).state == "queued"


async def test_a_failure_is_an_alarm_until_the_same_report_is_whole_again(data: Path) -> None:
    await ended("sizes", "failed", 1)
    await ended("days", "succeeded", 2)
    await checks.look()
    assert [problem.title for problem in checks.problems()] == ["The last report failed"]
    await ended("days", "incomplete", 3)
    await checks.look()
    assert [problem.title for problem in checks.problems()] == ["The last report is incomplete"], "one at a time"
    for report in ("sizes", "days"):
        await ended(report, "succeeded", 4)
    await checks.look()
    assert checks.problems() == []
