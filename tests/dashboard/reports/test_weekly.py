"""The summary of a week by mail: when, about which days, what it says, and how it gets to the mail server."""

from __future__ import annotations

import dataclasses
import email
import email.policy
import json
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from appliance.reports.runs import RunFolder, write_json
from dashboard.alerts import editing
from dashboard.alerts.sending.delivery import Sender
from dashboard.cluster.units import THIN
from dashboard.models.alerts import AlertChannel, AlertDelivery
from dashboard.models.reports import ReportRun, WeeklyMail
from dashboard.reports import weekly
from dashboard.reports.letter import ROWS_MAX, letter_of
from dashboard.reports.runs.queue import claim_next
from dashboard.reports.schedule import ReportSchedule
from dashboard.reports.weekly import PATIENCE, REPORTS_OF_A_WEEK, look, set_weekly, week_before
from tests.dashboard.alerts.receivers import mail_receiver
from tests.dashboard.conftest import Client
from tests.dashboard.finished_run import NASTY

BERLIN = "Europe/Berlin"
DAYS = [
    {"day": f"2026-11-{day}", "messages": 100 * day, "stored_bytes": 1 << 20, "day_before": 100, "day_change": 0.5,
     "week_before": 50 * day, "week_change": 1.0}
    for day in range(16, 23)
]  # fmt: skip
ROWS: dict[str, list[dict[str, Any]]] = {
    "days": DAYS,
    "months": [
        {"month": "2026-11", "topic": NASTY, "kind": "normal", "messages": 5, "stored_bytes": 10, "body_bytes": 1},
        {"month": "2026-11", "topic": "%RETRY%g", "kind": "retry", "messages": 5, "stored_bytes": 99, "body_bytes": 1},
    ],
    "lag": [
        {"hour": "x", "group": "billing", "lag": 9, "behind_seconds": late, "minutes_over": over}
        for late, over in ((90.0, 3), (30.0, None), (None, 4))
    ],
    "retries": [
        {
            "day": "x", "group": "billing", "cause": "no cause reported", "retried": 4, "dead_letters": 2,
            "attempts_max": 16,
        }
    ],
    "unused": [
        {"kind": "topic", "name": f"attic{n}", "last_ms": None, "days": None, "waiting": None} for n in range(12)
    ],
}  # fmt: skip


async def mail_channel(port: int = 25) -> AlertChannel:
    given = {
        "host": "127.0.0.1", "port": port, "security": "none", "sender": "g@example.com", "recipients": "a@example.com",
    }  # fmt: skip
    return await sync_to_async(editing.save_channel)("boss", "mail", given, True)


async def finish(data: Path, run: ReportRun, rows: list[dict[str, Any]]) -> None:
    folder = RunFolder.in_data(data, run.run_id)
    folder.path.mkdir(parents=True)
    write_json(folder.result("json", run.report), {"rows": rows})
    write_json(folder.path / "page.json", {"rows": rows[:1], "facts": ["the lake keeps five days"]})
    run.state = ReportRun.State.SUCCEEDED
    await run.asave()


def parsed(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


@pytest.mark.parametrize(
    ("now", "begin", "hours"),
    [
        ("2026-11-23T07:00", "2026-11-15T23:00", 168),
        ("2026-03-30T06:00", "2026-03-22T23:00", 167),  # clocks were put forward
        ("2026-10-26T07:00", "2026-10-18T22:00", 169),  # and back
    ],
)
def test_a_week_is_seven_whole_days_of_the_zone(now: str, begin: str, hours: int) -> None:
    first, end = week_before(BERLIN, datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert first.astimezone(UTC) == datetime.fromisoformat(begin).replace(tzinfo=UTC)
    assert (end.astimezone(UTC) - first.astimezone(UTC)) == timedelta(hours=hours)


def test_s20_the_letter_says_what_the_rows_say_as_text() -> None:
    letter = letter_of("2026-11-16 to 2026-11-22 (UTC)", ROWS, ["7 bytes are missing"])
    text, html = letter.text(), letter.html()
    lead = f"13{THIN}300 messages and 7.0{THIN}MiB were stored, +100{THIN}% compared with the week before."
    assert lead in text
    sections = {section.title: section for section in letter.sections}
    assert sections["Groups behind"].rows == (("billing", sections["Groups behind"].rows[0][1], "9", "7"),)
    assert sections["Largest topics"].rows[0][0] == NASTY and len(sections["Largest topics"].rows) == 1
    assert sections["Retries and dead letters"].rows == (("billing", "4", "2"),)
    unused = sections["Unused topics and groups"]
    assert (len(unused.rows), unused.more) == (ROWS_MAX, 2)
    assert "and 2 more" in text and "Note: 7 bytes are missing" in text and NASTY in text
    assert NASTY not in html and "&lt;img" in html and "7 bytes are missing" in html
    assert "<img" not in html and "http" not in html and "<script" not in html
    [*_, size] = [cell for cell in html.split("<td ") if f"1.0{THIN}MiB" in cell]
    assert "nowrap" in size  # a number that breaks reads as two


def test_a_week_without_anything_is_told_in_sentences() -> None:
    text = letter_of("a week", {}).text()
    assert "0 messages and" in text and "No group was behind." in text and "All are used." in text


async def test_the_page_offers_the_mail_channels_and_saves_the_choice(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    assert "A mail channel is required" in (await client.get("/reports/")).content.decode()
    channel = await mail_channel()
    wanted = {"channels": [str(channel.pk)], "cron": "0 8 * * mon", "zone": BERLIN}
    assert (await client.post("/reports/weekly", wanted)).status_code == 302
    mail = await WeeklyMail.objects.aget()
    assert (mail.cron, mail.zone, [one.pk async for one in mail.channels.all()]) == (
        "0 8 * * mon",
        BERLIN,
        [channel.pk],
    )
    assert mail.next_at is not None and "Next at" in (await client.get("/reports/")).content.decode()
    for wrong in ({"cron": "soon"}, {"channels": ["999"]}, {"zone": "Mars"}):
        assert (await client.post("/reports/weekly", wanted | wrong)).status_code == 400
    assert (await client.post("/reports/weekly/send")).status_code == 302
    assert await ReportRun.objects.acount() == len(REPORTS_OF_A_WEEK)
    assert (await client.post("/reports/weekly", {"cron": "0 8 * * mon"})).status_code == 302
    assert (await WeeklyMail.objects.aget()).next_at is None


async def test_a_due_summary_waits_for_its_runs_and_arrives_as_text_and_html(data: Path, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, alarm_networks="127.0.0.0/8")
    with mail_receiver() as receiver:
        channel = await mail_channel(receiver.port)
        await set_weekly([channel.pk], "0 8 * * mon", "UTC")
        mail = await WeeklyMail.objects.aget()
        assert mail.next_at is not None
        now = mail.next_at
        await look(now - timedelta(seconds=1))
        assert await ReportRun.objects.acount() == 0
        await look(now)
        await look(now)
        runs = [run async for run in ReportRun.objects.all()]
        assert {run.report for run in runs} == set(REPORTS_OF_A_WEEK)
        week = await WeeklyMail.objects.aget()
        assert {(run.begin_ms, run.end_ms) for run in runs} == {(week.begin_ms, week.end_ms)}
        for run in runs:
            assert await AlertDelivery.objects.acount() == 0
            await finish(data, run, ROWS[run.report])
            await look(now)
        [delivery] = [one async for one in AlertDelivery.objects.all()]
        await look(now)
        assert await AlertDelivery.objects.acount() == 1
        sender = Sender()
        await sender.attempt(delivery, channel)
        sender.close()
    assert (delivery.state, delivery.what) == ("sent", "weekly")
    message = parsed(receiver.requests[0].body)
    assert message["Subject"].startswith("GantryMQ: the week of ")
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None and html is not None
    assert plain.get_content().count("Note: the lake keeps five days") == 1
    assert "billing" in plain.get_content() and "<table" in html.get_content()
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]


async def test_runs_that_never_end_hold_the_letter_up_for_a_while_only(data: Path) -> None:
    channel = await mail_channel()
    await set_weekly([channel.pk], "0 8 * * mon", "UTC")
    mail = await WeeklyMail.objects.aget()
    assert mail.next_at is not None
    now = mail.next_at
    await look(now)
    await look(now + PATIENCE - timedelta(seconds=1))
    assert await AlertDelivery.objects.acount() == 0
    await look(now + PATIENCE)
    delivery = await AlertDelivery.objects.aget()
    assert "Traffic per day: no result." in json.loads(delivery.notice)["text"]
    assert (await WeeklyMail.objects.aget()).runs == [] and delivery.what == weekly.WEEKLY


async def test_a_run_that_begins_again_after_a_restart_is_waited_for(data: Path) -> None:
    channel = await mail_channel()
    await set_weekly([channel.pk], "0 8 * * mon", "UTC")
    assert await weekly.send_now()
    cut_off = await claim_next()
    assert cut_off is not None
    await ReportSchedule(data=data).close_orphans()
    live = ReportRun.objects.filter(state__in=ReportRun.LIVE)
    for run in [run async for run in live]:
        await look()
        assert await AlertDelivery.objects.acount() == 0
        await finish(data, run, ROWS[run.report])
    await look()
    text = json.loads((await AlertDelivery.objects.aget()).notice)["text"]
    assert "no result" not in text
