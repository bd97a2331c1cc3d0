"""From alarms to deliveries: what begins and ends is written down, and each channel of a rule gets one notice.

A silenced alarm is told when its silence ends, if it still rings. Who was told of the begin is told of the end. All of
it blocks.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation

from dashboard.alerts.kinds import KINDS, name_in_words
from dashboard.alerts.rule_book import Alarm, AlarmBook, Rule
from dashboard.alerts.rules import silence_of, silences_in_force
from dashboard.alerts.sending.notices import FIRED, RESOLVED, Told, notice_of
from dashboard.language.sentences import again, codes_of
from dashboard.models.alarms import AlarmChannel, AlarmDelivery, AlarmRow, AlarmRule, DeliveryState
from dashboard.status.check import Level

logger = logging.getLogger(__name__)

KEPT = timedelta(days=30)
KEPT_ROWS_MAX = 10_000
WAITING_MAX = 1000  # deliveries; what comes then is in the log and in the list of alarms only
PATHS = {"group": "/group/", "dead-letters-group": "/dead-letters/", "topic": "/topic/"}


def open_alarms(rules: Iterable[Rule]) -> list[Alarm]:
    """What rang when the process before ended. Rows whose rule is gone are over."""
    by_key = {rule.pk: rule for rule in rules}
    AlarmRow.objects.filter(ended_at=None).exclude(rule_id__in=by_key).update(ended_at=timezone.now())
    return [
        Alarm(
            by_key[row.rule_id], row.subject, row.said("text"), row.begun_at.timestamp(), row.begun_at.timestamp(),
            row=row.pk, is_told=row.is_told,
        )
        for row in AlarmRow.objects.filter(ended_at=None)
    ]  # fmt: skip


def write(book: AlarmBook) -> None:
    """Write what is new in the book, and make the deliveries. Raises DatabaseError; then the book is as before."""
    began = [alarm for alarm in book.open.values() if alarm.row is None]
    untold = [alarm for alarm in book.open.values() if not alarm.is_told]
    ended = list(book.ended)
    if not (untold or ended):
        return
    with transaction.atomic():
        rows = {id(alarm): _row(alarm) for alarm in (*untold, *ended)}
        silences = silences_in_force()
        due = [alarm for alarm in untold if silence_of(rows[id(alarm)], silences) is None]
        _make_deliveries(FIRED, due)
        _make_deliveries(RESOLVED, [alarm for alarm in ended if alarm.is_told])
        for alarm in due:
            AlarmRow.objects.filter(pk=rows[id(alarm)].pk).update(is_told=True)
    for alarm in (*untold, *ended):
        alarm.row = rows[id(alarm)].pk
    for alarm in due:
        alarm.is_told = True
    book.ended = [alarm for alarm in book.ended if alarm not in ended]
    for alarm in began:
        _log("alarm fired", "alarm_fired", alarm)
    for alarm in ended:
        _log("alarm resolved", "alarm_resolved", alarm)


def forget() -> None:
    """Drop what is past its time, or beyond the number that is kept."""
    limit = timezone.now() - KEPT
    AlarmRow.objects.filter(ended_at__lt=limit).delete()
    AlarmDelivery.objects.filter(made_at__lt=limit).delete()
    AlarmRule.objects.filter(deleted_at__lt=limit, preset="").delete()
    for rows in (AlarmRow.objects.exclude(ended_at=None), AlarmDelivery.objects.all()):
        beyond = list(rows.order_by("-pk").values_list("pk", flat=True)[KEPT_ROWS_MAX : KEPT_ROWS_MAX + 500])
        rows.filter(pk__in=beyond).delete()


def address_of_page(path: str) -> str:
    """A page as people outside reach it."""
    appliance = settings.APPLIANCE
    return f"{appliance.http_scheme}://{appliance.http_address}{path}"


# ---- helpers


def _row(alarm: Alarm) -> AlarmRow:
    """Its row, made or brought up to date."""
    values = {
        "level": alarm.rule.level,
        "title": alarm.title[: AlarmRow.TEXT_MAX],
        "text": alarm.text[: AlarmRow.TEXT_MAX],
        "words": json.dumps(codes_of({"title": alarm.title, "text": alarm.text}), ensure_ascii=False),
        "begun_at": datetime.fromtimestamp(alarm.begun_at, UTC),
        "ended_at": None if alarm.ended_at is None else datetime.fromtimestamp(alarm.ended_at, UTC),
    }
    subject = alarm.subject[: AlarmRow.TEXT_MAX]
    if alarm.row is None:
        return AlarmRow.objects.create(rule_id=alarm.rule.pk, subject=subject, **values)
    AlarmRow.objects.filter(pk=alarm.row).update(**values)
    return AlarmRow(pk=alarm.row, rule_id=alarm.rule.pk, subject=subject, **values)


def _make_deliveries(what: str, alarms: Sequence[Alarm]) -> None:
    by_rule: dict[int, list[Alarm]] = defaultdict(list)
    for alarm in alarms:
        by_rule[alarm.rule.pk].append(alarm)
    waiting = AlarmDelivery.objects.filter(state=DeliveryState.WAITING).count() if by_rule else 0
    for pk, together in by_rule.items():
        for channel in channels_of(pk):
            with translation.override(channel.language):
                notice = notice_of(what, name_in_words(together[0].rule.name), [_told(alarm) for alarm in together])
            if waiting >= WAITING_MAX:
                facts = {"event": "alarm_not_delivered", "channel": channel.name, "title": notice.title}
                logger.error("alarm not delivered: too many wait", extra=facts)
                continue
            waiting += 1
            now = timezone.now()
            AlarmDelivery.objects.create(
                channel=channel, what=what, title=notice.title, notice=notice.to_json(), made_at=now, due_at=now
            )


def channels_of(rule: int) -> list[AlarmChannel]:
    """The channels that a rule tells: its own, or all."""
    own = list(AlarmChannel.objects.filter(alarmrule=rule))
    return [channel for channel in own or AlarmChannel.objects.all() if channel.is_on]


def _told(alarm: Alarm) -> Told:
    begin = PATHS.get(KINDS[alarm.rule.kind].page)
    path = f"{begin}{quote(alarm.subject, safe='')}" if begin else "/"
    return Told(
        alarm.subject, again(alarm.title), again(alarm.text), Level(alarm.rule.level).word, alarm.begun_at,
        alarm.ended_at, address_of_page(path),
    )  # fmt: skip


def _log(message: str, event: str, alarm: Alarm) -> None:
    facts = {"event": event, "rule": alarm.rule.name, "subject": alarm.subject, "value": alarm.text}
    logger.log(logging.WARNING if event == "alarm_fired" else logging.INFO, message, extra=facts)
