"""Who handles an alert, by page and REST; what the menu counts, and what channels get."""

from __future__ import annotations

import dataclasses
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from dashboard.alerts import alert_rows, handling
from dashboard.alerts.alert import Rule
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.alerts.rules import for_book
from dashboard.alerts.sending.notices import text_of
from dashboard.alerts.watch import AlertWatch
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule
from dashboard.models.audit import AuditEntry
from dashboard.models.management import User
from dashboard.status.board import Snapshot, board
from dashboard.status.verdict import judge
from tests.dashboard.alerts.menu import waiting_in_menu
from tests.dashboard.conftest import Client, api_for

LATE = {"group-lag": {"orders-app": 900.0}}
FINE = {"group-lag": {"orders-app": 0.0}}
SILENT = Snapshot(time.time(), "127.0.0.1:9876", "no answer", (), (), None)


def a_rule() -> Rule:
    AlertChannel.objects.create(name="chat", kind="slack", settings=json.dumps({"url": "https://hooks.example/x"}))
    row = AlertRule.objects.create(
        name="orders are late", kind="group-lag", threshold=500, clear=500, for_s=0, clear_s=0, level=1
    )
    return for_book(row)


def an_open_alert(*, ended: bool = False) -> AlertRow:
    now = timezone.now()
    return AlertRow.objects.create(
        subject="disk", level=2, title="disk is full", text="99 %", begun_at=now, ended_at=now if ended else None
    )


async def test_by_page_an_operator_handles_it_and_a_reader_only_looks(log_in: Client) -> None:
    row = await sync_to_async(an_open_alert)()
    operator, reader = await log_in("operator"), await log_in("reader")
    for typed in ({"do": "acknowledge"}, {"do": "assign", "typed": "admin"}, {"do": "note", "typed": "<b>on it</b>"}):
        assert (await operator.post(f"/alerts/{row.pk}/do", typed)).status_code == 302
        assert (await reader.post(f"/alerts/{row.pk}/do", typed)).status_code == 403
    for address in ("/alerts", f"/alerts/{row.pk}"):
        page = (await reader.get(address)).content.decode()
        assert "acknowledged by operator" in page and "assigned to admin" in page, address
        assert "&lt;b&gt;on it&lt;/b&gt;" in page and "<b>on it" not in page, address
        assert "alert-do" not in page and f"/alerts/{row.pk}/do" not in page, address
    entries = [(one.action, one.target) async for one in AuditEntry.objects.filter(result="done").order_by("number")]
    assert entries == [(action, "disk is full") for action in (
        "alert acknowledged", "alert assigned", "note added to an alert")]  # fmt: skip
    await operator.post(f"/alerts/{row.pk}/do", {"do": "withdraw", "back": "list"})
    await operator.post(f"/alerts/{row.pk}/do", {"do": "assign", "typed": ""})
    now = await AlertRow.objects.aget()
    assert (now.acknowledged_at, now.acknowledged_by, now.assigned_to) == (None, "", "")
    assert (await operator.post(f"/alerts/{row.pk}/do", {"do": "sing"})).status_code == 404
    assert (await operator.get("/alerts/4711")).status_code == 404


async def test_what_a_page_could_not_do_is_said_and_not_recorded_as_done(log_in: Client) -> None:
    row, over = await sync_to_async(an_open_alert)(), await sync_to_async(an_open_alert)(ended=True)
    operator = await log_in("operator")
    for key, typed, words in (
        (row.pk, {"do": "assign", "typed": "reader"}, "No open account of this name"),
        (row.pk, {"do": "note", "typed": " "}, "A text of 1 to"),
        (over.pk, {"do": "acknowledge"}, "This alert is resolved."),
    ):
        assert words in (await operator.post(f"/alerts/{key}/do", typed, follow=True)).content.decode()
    assert [one async for one in AuditEntry.objects.filter(result="done")] == []


async def test_rest_does_the_same_and_says_what_it_cannot(users: dict[str, User]) -> None:
    row, over = await sync_to_async(an_open_alert)(), await sync_to_async(an_open_alert)(ended=True)
    writer = await api_for(users["operator"])
    status, answer = await writer.call("put", f"/alerts/{row.pk}/acknowledged", {"is_acknowledged": True})
    assert (status, answer["acknowledged_by"]) == (200, "operator") and answer["acknowledged_at"]
    status, answer = await writer.call("put", f"/alerts/{row.pk}/assignee", {"user": "operator"})
    assert (status, answer["assigned_to"]) == (200, "operator")
    status, answer = await writer.call("put", f"/alerts/{row.pk}/assignee", {"user": "reader"})
    assert status == 422 and "may handle alerts" in answer["fields"]["user"][0]
    for key, wanted in ((row.pk, 201), (over.pk, 201)):
        status, answer = await writer.call("post", f"/alerts/{key}/notes", {"text": "new disk ordered"})
        assert status == wanted and [one["text"] for one in answer["notes"]] == ["new disk ordered"]
    assert (await writer.call("post", f"/alerts/{row.pk}/notes", {"text": "  "}))[0] == 422
    assert (await writer.call("put", f"/alerts/{over.pk}/acknowledged", {"is_acknowledged": True}))[0] == 409
    assert (await writer.call("put", f"/alerts/{over.pk}/assignee", {"user": ""}))[0] == 409
    assert (await writer.call("get", "/alerts/4711"))[0] == 404
    known = (await writer.call("get", f"/alerts/{row.pk}"))[1]
    [listed] = (await writer.call("get", "/alerts?only_open=true"))[1]["items"]
    assert listed | {"duration_s": 0} == known | {"duration_s": 0}
    status, answer = await writer.call("put", f"/alerts/{row.pk}/acknowledged", {"is_acknowledged": False})
    assert (status, answer["acknowledged_by"], answer["acknowledged_at"]) == (200, "", None)


async def test_the_menu_and_the_tab_count_only_what_nobody_acknowledged(log_in: Client) -> None:
    board.snapshot = dataclasses.replace(SILENT, open_of_rules=0)
    [problem] = judge(board.snapshot).problems
    book = CheckAlerts()
    for second in (0.0, 5.0):
        book.note([problem], SILENT.at + second)
    await sync_to_async(alert_rows.write_checks)(book, SILENT.at + 5.0)
    row = await AlertRow.objects.aget()
    operator = await log_in("operator")
    assert waiting_in_menu() == 1 and "<title>(1) " in (await operator.get("/alerts")).content.decode()
    await operator.post(f"/alerts/{row.pk}/do", {"do": "acknowledge"})
    page = (await operator.get("/alerts")).content.decode()
    assert waiting_in_menu() == 0 and "<title>Alerts" in page and "acknowledged by operator" in page
    watch = AlertWatch(board)
    await watch.look()
    assert waiting_in_menu() == 0, "a new process knows it from the database"
    await operator.post(f"/alerts/{row.pk}/do", {"do": "withdraw"})
    assert waiting_in_menu() == 1
    await watch.look()
    assert waiting_in_menu() == 1


async def test_an_acknowledged_alert_of_a_rule_is_not_counted_and_the_next_one_is(transactional_db: None) -> None:
    board.snapshot = dataclasses.replace(SILENT, namesrv_why=None, open_of_rules=2)
    before = waiting_in_menu()
    board.acknowledged = frozenset({(1, "orders-app")})
    assert waiting_in_menu() == before - 1


async def test_what_is_now_is_shown_while_the_database_takes_nothing(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.snapshot = dataclasses.replace(SILENT, open_of_rules=0)
    row = await sync_to_async(an_open_alert)()
    row.subject = judge(board.snapshot).problems[0].identity
    await row.asave()

    def fails(*_: object) -> None:
        raise DatabaseError("the disk is full")

    monkeypatch.setattr(alert_rows, "write", fails)
    watch = AlertWatch(board)
    for second in range(2):  # the first adopts what was open
        board.snapshot = dataclasses.replace(board.snapshot, at=SILENT.at + second)
        with pytest.raises(DatabaseError):
            await watch.look()
    assert "no answer" in board.present_of_alerts[row.pk]


def test_channels_get_that_it_is_acknowledged_and_who_handled_it_at_the_end(transactional_db: None) -> None:
    User.objects.create(username="ada", role="operator")
    rule, book, now = a_rule(), RuleAlerts(), time.time()
    book.note([rule], LATE, now)
    alert_rows.write(book)
    row = AlertRow.objects.get()
    board.present_of_alerts = {row.pk: "1200 messages"}
    handling.acknowledge(row, "ada")
    handling.acknowledge(row, "ada")  # once is enough
    handling.assign(row, "ada")
    handling.add_note(row, "a consumer hangs", "ada")
    book.note([rule], FINE, now + 60)
    alert_rows.write(book)
    begin, acknowledged, end = AlertDelivery.objects.order_by("pk")
    assert [one.what for one in (begin, acknowledged, end)] == ["fired", "acknowledged", "resolved"]
    assert "acknowledged by" not in text_of(begin.notice)
    assert text_of(acknowledged.notice).startswith("Acknowledged: orders are late: orders-app")
    assert "1200 messages" in text_of(acknowledged.notice), "what is now, not what opened it"
    told = text_of(end.notice)
    assert "acknowledged by ada\nassigned to ada\nnote: a consumer hangs" in told
    keys = {json.loads(one.notice)["alarms"][0]["key"] for one in (begin, acknowledged, end)}
    assert len(keys) == 1, "a receiver knows that the three are about one alert"


@pytest.mark.parametrize("acknowledged", [True, False])
def test_one_acknowledged_while_muted_is_not_sent_when_that_ends(transactional_db: None, acknowledged: bool) -> None:
    rule, book, now = a_rule(), RuleAlerts(), time.time()
    mute: Any = AlertMute.objects.create(
        reason="r", who="ada", begun_at=timezone.now(), until=timezone.now() + timedelta(hours=1)
    )
    book.note([rule], LATE, now)
    alert_rows.write(book)
    if acknowledged:
        handling.acknowledge(AlertRow.objects.get(), "ada")
    mute.delete()
    alert_rows.write(book)
    assert AlertDelivery.objects.count() == (0 if acknowledged else 1)
