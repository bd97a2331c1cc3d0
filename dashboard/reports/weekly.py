"""The summary of a week by mail: when it is due, runs of the week's reports; when these have ended, a letter.

The letter is a delivery of the alarms' mail channels (dashboard/alerts/sending), so it is sent again when a mail server
has no time, and stands in the log of deliveries.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zoneinfo
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext

from appliance.reports.catalogue import REPORTS
from appliance.reports.runs import RunFolder
from dashboard.language.told import told_in_words
from dashboard.models.alerts import AlertChannel, AlertDelivery, ChannelKind
from dashboard.models.reports import ReportRun, WeeklyMail
from dashboard.reports.letter import Letter, Rows, letter_of
from dashboard.reports.runs.cron import CronRefused, following
from dashboard.reports.runs.queue import enqueue

logger = logging.getLogger(__name__)

REPORTS_OF_A_WEEK = ("days", "months", "lag", "retries", "unused")
RESULT_BYTES_MAX = 64 << 20  # a larger one would fill the web process's memory: its first rows are told then
PATIENCE = timedelta(hours=6)  # with runs that don't end
WEEKLY = "weekly"


async def weekly_mail() -> WeeklyMail:
    """The one row; not saved yet where it was never set, because to look writes nothing."""
    return await WeeklyMail.objects.filter(pk=1).afirst() or WeeklyMail(pk=1)


async def set_weekly(channels: Sequence[int], cron: str, zone: str) -> None:
    """Send it by these channels from now on; none: not at all. Raises CronRefused."""
    mail = await weekly_mail()
    known = [channel.pk async for channel in AlertChannel.objects.filter(pk__in=channels, kind=ChannelKind.MAIL)]
    mail.cron, mail.zone = cron, zone
    mail.next_at = following(cron, zone, datetime.now(UTC)) if known else None
    await mail.asave()
    await mail.channels.aset(known)


async def send_now() -> bool:
    """Have the last week's summary made and sent; False when one is being made, or there is no channel."""
    mail = await weekly_mail()
    if mail.runs or not await mail.channels.aexists():
        return False
    await _begin(mail, datetime.now(UTC))
    return True


async def look(now: datetime | None = None) -> None:
    """Begin what is due, send what is ready. The schedule's, each of its turns."""
    now = now or datetime.now(UTC)
    mail = await WeeklyMail.objects.filter(pk=1).afirst()
    if mail is None:
        return
    if mail.runs:
        await _send_if_ready(mail, now)
    elif mail.next_at is not None and mail.next_at <= now:
        try:
            mail.next_at = following(mail.cron, mail.zone, now)
        except CronRefused as refusal:
            logger.error("weekly mail has no next time", extra={"event": "weekly_refused", "why": str(refusal)})
            mail.next_at = None
        await _begin(mail, now)


def week_before(zone: str, now: datetime) -> tuple[datetime, datetime]:
    """The seven whole days of the zone before today: its begin, and its end, which is exclusive."""
    local = now.astimezone(zoneinfo.ZoneInfo(zone))
    today = local.date()
    midnights = (datetime(day.year, day.month, day.day, tzinfo=local.tzinfo) for day in (today - timedelta(7), today))
    begin, end = midnights
    return begin, end


async def _begin(mail: WeeklyMail, now: datetime) -> None:
    begin, end = week_before(mail.zone, now)
    mail.begin_ms, mail.end_ms = (int(moment.timestamp() * 1000) for moment in (begin, end))
    range_ms = (mail.begin_ms, mail.end_ms)
    runs = [
        await enqueue(name, 7, requested_by=None, now=now, range_ms=range_ms, zone=mail.zone)
        for name in REPORTS_OF_A_WEEK
    ]
    mail.runs = [run.run_id for run in runs]
    await mail.asave()
    logger.info("weekly mail started", extra={"event": "weekly_begun", "runs": len(runs)})


async def _send_if_ready(mail: WeeklyMail, now: datetime) -> None:
    """What is tried again is waited for, too: schedule.py puts the later try in the place of the one that ended."""
    runs = [run async for run in ReportRun.objects.filter(run_id__in=mail.runs)]
    if any(run.is_live for run in runs) and all(now - run.created_at < PATIENCE for run in runs):
        return
    letters: dict[str, tuple[str, str]] = {}  # title and notice, by language
    async for channel in mail.channels.filter(is_on=True):
        if channel.language not in letters:
            letters[channel.language] = await asyncio.to_thread(_notice, mail, runs, channel.language)
        title, notice = letters[channel.language]
        await AlertDelivery.objects.acreate(
            channel=channel, what=WEEKLY, title=title, notice=notice, made_at=now, due_at=now
        )
    mail.runs = []
    await mail.asave()
    logger.info("weekly mail ready", extra={"event": "weekly_made"})


def _notice(mail: WeeklyMail, runs: Sequence[ReportRun], language: str) -> tuple[str, str]:
    """The letter's title, and the notice that a delivery keeps."""
    with translation.override(language):
        letter = _letter(mail, runs)
        for_mail = {"text": letter.text(), "html": letter.html()}
    told = {"what": WEEKLY, "title": letter.title, "alarms": [], "all": 0, **for_mail}
    return letter.title, json.dumps(told, ensure_ascii=False)


def _letter(mail: WeeklyMail, runs: Sequence[ReportRun]) -> Letter:
    by_name = {run.report: run for run in runs if run.has_result}
    folders = [RunFolder.in_data(settings.APPLIANCE.data, run.run_id) for run in by_name.values()]
    told = [told_in_words(fact) for folder in folders for fact in (folder.page() or {}).get("facts", ())]
    notes = list(dict.fromkeys([*(told_in_words(run.error) for run in by_name.values() if run.error), *told]))
    notes += [
        gettext("%(report)s: no result.") % {"report": gettext(REPORTS[name].title)}
        for name in REPORTS_OF_A_WEEK
        if name not in by_name
    ]
    return letter_of(_week(mail), {name: _rows(run) for name, run in by_name.items()}, notes)


def _week(mail: WeeklyMail) -> str:
    zone = zoneinfo.ZoneInfo(mail.zone)
    first, last = (datetime.fromtimestamp(at / 1000, zone).date() for at in (mail.begin_ms, mail.end_ms - 1))
    return gettext("%(first)s to %(last)s (%(zone)s)") % {"first": first, "last": last, "zone": mail.zone}


def _rows(run: ReportRun) -> Rows:
    folder = RunFolder.in_data(settings.APPLIANCE.data, run.run_id)
    path = folder.result("json", run.report)
    found: Any = None
    if path.is_file() and path.stat().st_size <= RESULT_BYTES_MAX:
        found = json.loads(path.read_bytes())
    else:
        found = folder.page()
    rows: Rows = found["rows"] if found is not None else ()
    return rows
