"""The first report that counts something comes soon after the first messages, and reports without rows are folded."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.models.reports import ReportPlan, ReportRun
from dashboard.reports.runs.plans import EMPTY_RUNS_MAX, FIRST_RESULT_AFTER, count_first_messages, ensure_plans
from dashboard.reports.runs.queue import enqueue
from tests.dashboard.conftest import Client
from tests.dashboard.finished_run import NOW

pytestmark = pytest.mark.django_db(transaction=True)
LATER = NOW + timedelta(minutes=55)


async def ended(rows: int, number: int = 1) -> None:
    for _ in range(number):
        run = await enqueue("traffic", 1, requested_by=None, now=NOW)
        await ReportRun.objects.filter(pk=run.pk).aupdate(state=ReportRun.State.SUCCEEDED, rows=rows)


async def next_runs() -> set[object]:
    return {plan.next_run_at async for plan in ReportPlan.objects.all()}


async def test_after_an_empty_result_the_first_messages_are_counted_soon() -> None:
    await ensure_plans()
    await ReportPlan.objects.aupdate(next_run_at=LATER)
    assert not await count_first_messages(NOW) and await next_runs() == {LATER}, "the first run is still to come"
    await ended(rows=0)
    assert not await count_first_messages(NOW)
    assert await next_runs() == {NOW + FIRST_RESULT_AFTER}
    await ended(rows=5)
    assert await count_first_messages(NOW)


async def test_a_cron_line_and_what_is_counted_again_and_again_in_vain_stay() -> None:
    await ensure_plans()
    await ReportPlan.objects.aupdate(next_run_at=LATER, cron="0 6 * * *")
    await ended(rows=0)
    assert not await count_first_messages(NOW) and await next_runs() == {LATER}
    await ReportPlan.objects.aupdate(cron="")
    await ended(rows=0, number=EMPTY_RUNS_MAX)
    assert not await count_first_messages(NOW) and await next_runs() == {LATER}


async def test_while_the_first_one_runs_no_later_time_is_promised(log_in: Client) -> None:
    client = await log_in("operator")
    await ensure_plans()
    assert "runs automatically at" in (await client.get("/reports/")).content.decode()
    await enqueue("traffic", 1, requested_by=None, now=NOW)
    page = (await client.get("/reports/")).content.decode()
    assert "The first one is running" in page and "runs automatically at" not in page


async def test_reports_without_rows_are_folded_until_they_have_some(log_in: Client) -> None:
    client = await log_in("reader")
    folded = (await client.get("/reports/")).content.decode()
    assert '<details class="quiet" id="quiet-reports">' in folded and "reports without rows" in folded
    await ended(rows=3)
    page = (await client.get("/reports/")).content.decode()
    shown, _, quiet = page.partition('<details class="quiet" id="quiet-reports">')
    assert "Traffic per topic and hour</a>" in shown and "Traffic per topic and hour</a>" not in quiet
    assert "Traffic per day" in quiet
