"""Alerts of checks in the database: they outlive the process, and page and REST show the same ones."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.alerts import alert_rows
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.language.sentences import Sentence, code_of, gettext
from dashboard.models.alerts import AlertRow
from dashboard.models.management import Role, User
from dashboard.status.board import board
from dashboard.status.check import Check, Level
from tests.dashboard.conftest import Client, api_for

SILENT = Check(Level.BAD, "broker-a does not answer", "no answer for 4 s", "look at it", "silent broker-a")


def lasting(book: CheckAlerts, now: float, check: Check = SILENT) -> None:
    for second in (0.0, 5.0):
        book.note([check], now + second)
    alert_rows.write_checks(book, now + 5.0)


def row(title: str, *, days_ago: float, ended: bool = True) -> AlertRow:
    at = timezone.now() - timedelta(days=days_ago)
    return AlertRow(
        subject=title, level=1, title=title, text="e", worst="e", begun_at=at, seen_at=at,
        ended_at=at if ended else None,
    )  # fmt: skip


def test_an_alert_of_a_check_is_one_row_over_a_restart_of_the_dashboard(transactional_db: None) -> None:
    now = timezone.now().timestamp()
    lasting(CheckAlerts(), now)
    again = CheckAlerts()
    again.adopt(alert_rows.open_of_checks(), now + 20.0)
    lasting(again, now + 30.0)
    again.note([], now + 1000.0)
    alert_rows.write_checks(again, now + 1000.0)
    only = AlertRow.objects.get()
    assert (only.rule, only.title, only.level, only.text) == (None, SILENT.title, 2, "no answer for 4 s")
    assert only.ended_at is not None and only.duration_s == 35.0


def test_one_that_no_rule_opened_is_no_alert_of_a_rule(transactional_db: None) -> None:
    lasting(CheckAlerts(), timezone.now().timestamp())
    assert alert_rows.open_of_rules([]) == []
    assert AlertRow.objects.get().ended_at is None, "only those whose rule is gone are over"


def test_old_ones_go_and_open_ones_stay(transactional_db: None, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, alert_days=7)
    for one in (row("old", days_ago=8), row("young", days_ago=6), row("open", days_ago=8, ended=False)):
        one.save()
    alert_rows.forget()
    assert {one.title for one in AlertRow.objects.all()} == {"young", "open"}


def test_no_more_than_so_many_are_kept(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in reversed(range(4)):
        row(f"day {days}", days_ago=days).save()
    monkeypatch.setattr(alert_rows, "KEPT_ROWS_MAX", 2)
    alert_rows.forget()
    assert {one.title for one in AlertRow.objects.all()} == {"day 0", "day 1"}


async def test_the_page_shows_the_open_ones_first_and_escapes_them(log_in: Client) -> None:
    for one in (row("<b>ended</b>", days_ago=1), row("goes on", days_ago=9, ended=False)):
        await one.asave()
    page = (await (await log_in("reader")).get("/alerts")).content.decode()
    _, _, history = page.partition('id="history"')
    assert history.index("goes on") < history.index("&lt;b&gt;ended&lt;/b&gt;") and "<b>ended" not in page
    page = (await (await log_in("reader")).get("/alerts?show=open&q=GOES&page=99")).content.decode()
    _, _, history = page.partition('id="history"')
    assert "goes on" in history and "ended&lt;" not in page


async def test_rest_shows_the_same(users: dict[str, User]) -> None:
    for one in (row("ended", days_ago=1), row("goes on", days_ago=9, ended=False)):
        await one.asave()
    reader = await api_for(users["reader"], "read")
    status, answer = await reader.call("get", "/alerts?limit=1")
    assert (status, answer["total"], [one["title"] for one in answer["items"]]) == (200, 2, ["goes on"])
    assert answer["items"][0]["ended_at"] is None and answer["items"][0]["rule_id"] is None
    assert (await reader.call("get", "/alerts?q=ENDED"))[1]["total"] == 1


@pytest.mark.parametrize("language", ["en", "zh-hans"])
async def test_an_open_alert_says_what_is_now_and_what_was_as_it_opened(log_in: Client, language: str) -> None:
    one, over = row("behind: g", days_ago=0, ended=False), row("was behind", days_ago=0)
    for each in (one, over):
        each.text = each.worst = "5 min"
        await each.asave()
    now = gettext("%(rate)s msg/s") % {"rate": "12"}
    board.present_of_alerts = {one.pk: now, over.pk: now}
    client = await log_in("reader")
    await client.post("/preferences/language", {"language": language, "back": "/alerts"})
    here, opened = {"en": ("12 msg/s", "as it opened: 5 min"), "zh-hans": ("12 条/秒", "触发时：5 min")}[language]
    said = {"/alerts": 1, "/alerts?show=open": 2, f"/alerts/{one.pk}": 1, f"/alerts/{over.pk}": 0}
    for address, times in said.items():  # a history that is asked for says it, too
        page = (await client.get(address)).content.decode()
        assert (page.count(here), page.count(opened)) == (times, times), address
    api = await api_for(await User.objects.aget(role=Role.READER), "read")
    found = {each["id"]: (each["text"], each["present"]) for each in (await api.call("get", "/alerts"))[1]["items"]}
    assert found == {one.pk: ("5 min", "12 msg/s"), over.pk: ("5 min", None)}


def test_the_threshold_is_said_once_while_it_is_the_same() -> None:
    def text(value: str, threshold: str) -> Sentence:
        pattern = gettext("%(value)s; the alert opens at or above %(threshold)s")
        return pattern % {"value": value, "threshold": threshold}

    one = row("dead letters", days_ago=0, ended=False)
    one.text, one.words = text("1 message", "1 message"), json.dumps({"text": code_of(text("1 message", "1 message"))})
    one.present = text("8 messages", "1 message")
    assert one.opened == "1 message"
    one.present = text("8 messages", "2 messages")
    assert one.opened == one.text, "the rule changed since"
    one.words, one.present = "", text("8 messages", "1 message")
    assert one.opened == one.text, "a row of an earlier version"


async def test_an_empty_list_says_what_will_stand_there(log_in: Client) -> None:
    page = (await (await log_in("reader")).get("/alerts")).content.decode()
    assert "No alerts yet" in page
