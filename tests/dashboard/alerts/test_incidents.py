"""Incidents in the database: they outlive the process, and page and REST show the same ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.alerts import incident_keeper as keepers
from dashboard.alerts.incident_keeper import KEPT, IncidentKeeper
from dashboard.models.incidents import IncidentRow
from dashboard.models.management import User
from dashboard.status.check import Check, Level
from tests.dashboard.conftest import Client, api_for

SILENT = Check(Level.BAD, "broker-a does not answer", "no answer for 4 s", "look at it", "silent broker-a")


async def lasting(keeper: IncidentKeeper, now: float, problem: Check = SILENT) -> None:
    for second in (0.0, 5.0):
        keeper.note([problem], now + second)
    await keeper.write()


def row(title: str, *, days_ago: float, ended: bool = True) -> IncidentRow:
    at = timezone.now() - timedelta(days=days_ago)
    return IncidentRow(
        identity=title, level=1, title=title, evidence="e", worst="e", begun_at=at, seen_at=at,
        ended_at=at if ended else None,
    )  # fmt: skip


async def test_an_incident_is_one_row_over_a_restart_of_the_dashboard(transactional_db: None) -> None:
    now = timezone.now().timestamp()
    await lasting(IncidentKeeper(), now)
    again = IncidentKeeper()
    await lasting(again, now + 30.0)
    again.note([], now + 1000.0)
    await again.write()
    [only] = [one async for one in IncidentRow.objects.all()]
    assert (only.title, only.level, only.evidence) == (SILENT.title, 2, "no answer for 4 s")
    assert only.ended_at is not None and only.duration_s == 35.0


async def test_old_ones_go_and_open_ones_stay(transactional_db: None) -> None:
    beyond = KEPT.days + 1
    for one in (row("old", days_ago=beyond), row("young", days_ago=1), row("open", days_ago=beyond, ended=False)):
        await one.asave()
    await IncidentKeeper().write()
    assert {one.title async for one in IncidentRow.objects.all()} == {"young", "open"}


async def test_no_more_than_so_many_are_kept(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in range(4):
        await row(f"day {days}", days_ago=days).asave()
    monkeypatch.setattr(keepers, "KEPT_ROWS_MAX", 2)
    await IncidentKeeper().write()
    assert {one.title async for one in IncidentRow.objects.all()} == {"day 0", "day 1"}


async def test_the_page_shows_the_open_ones_first_and_escapes_them(log_in: Client) -> None:
    for one in (row("<b>ended</b>", days_ago=1), row("goes on", days_ago=9, ended=False)):
        await one.asave()
    page = (await (await log_in("reader")).get("/incidents")).content.decode()
    assert page.index("goes on") < page.index("&lt;b&gt;ended&lt;/b&gt;") and "<b>ended" not in page
    page = (await (await log_in("reader")).get("/incidents?show=open&q=GOES&page=99")).content.decode()
    assert "goes on" in page and "ended&lt;" not in page


async def test_rest_shows_the_same(users: dict[str, User]) -> None:
    for one in (row("ended", days_ago=1), row("goes on", days_ago=9, ended=False)):
        await one.asave()
    status, answer = await (await api_for(users["reader"], "read")).call("get", "/incidents?limit=1")
    assert (status, answer["total"], [one["title"] for one in answer["incidents"]]) == (200, 2, ["goes on"])
    assert answer["incidents"][0]["ended_at"] is None


async def test_an_empty_list_says_what_will_stand_there(log_in: Client) -> None:
    page = (await (await log_in("reader")).get("/incidents")).content.decode()
    assert "No incident" in page
