"""Alerts in the database: what opens and ends is written down, and each channel of a rule gets one notice.

Those that checks opened are kept and shown; they have no channels. A muted alert is sent when its mute ends, if it is
still open and not acknowledged. A channel that got the begin gets the end. All of it blocks.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation

from dashboard.alerts.alert import Alert, Rule
from dashboard.alerts.causes import page_of_subject
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.alerts.kinds import name_in_words
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.alerts.rules import for_book, mute_of, mutes_in_force
from dashboard.alerts.sending.channel_kinds import KINDS as KINDS_OF_CHANNELS
from dashboard.alerts.sending.notices import ACKNOWLEDGED, FIRED, RESOLVED, Notice, Told, notice_of
from dashboard.language.sentences import again, codes_of
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertRow, AlertRule, DeliveryState
from dashboard.status.board import board
from dashboard.status.check import Level

logger = logging.getLogger(__name__)

KEPT_ROWS_MAX = 20_000
WAITING_MAX = 1000  # deliveries; what comes then is in the log and in the list of alerts only


def open_of_rules(rules: Iterable[Rule]) -> list[Alert]:
    """What was open when the process before ended. Rows whose rule is gone are over."""
    by_key = {rule.pk: rule for rule in rules}
    rows = AlertRow.objects.filter(ended_at=None, rule__isnull=False)
    rows.exclude(rule_id__in=by_key).update(ended_at=timezone.now())
    return [_alert(row, by_key[row.rule_id]) for row in rows if row.rule_id is not None]


def open_of_checks() -> list[Alert]:
    """What checks had opened when the process before ended."""
    return [_alert(row, None) for row in AlertRow.objects.filter(ended_at=None, rule=None)]


def _alert(row: AlertRow, rule: Rule | None) -> Alert:
    begun_at = row.begun_at.timestamp()
    seen_at = row.seen_at.timestamp() if row.seen_at else begun_at
    return Alert(
        rule, row.subject, row.level, row.said("title"), row.said("text"), begun_at, seen_at, worst=row.said("worst"),
        row=row.pk, written_at=seen_at, is_told=row.is_told,
    )  # fmt: skip


def with_present(row: AlertRow) -> AlertRow:
    """The row, with what shows the alert now where that is not what opened it."""
    now = again(board.present_of_alerts.get(row.pk, "")) if row.ended_at is None else ""
    row.present = "" if now == row.said("text") else now
    return row


def acknowledged() -> set[int]:
    """The primary keys of the open ones that are acknowledged."""
    return set(AlertRow.objects.filter(ended_at=None).exclude(acknowledged_at=None).values_list("pk", flat=True))


def write_checks(of: CheckAlerts, now: float) -> None:
    """Write those that are due. Raises DatabaseError; what is not written stays due."""
    for alert in of.due(now):
        of.written(alert, _row(alert).pk, now)


def write(book: RuleAlerts) -> None:
    """Write what is new in the book, and make the deliveries. Raises DatabaseError; then the book is as before."""
    began = [alert for alert in book.open.values() if alert.written_at is None]
    untold = [alert for alert in book.open.values() if not alert.is_told]
    ended = list(book.ended)
    if not (untold or ended):
        return
    with transaction.atomic():
        rows = {id(alert): _row(alert) for alert in (*untold, *ended)}
        mutes, handled = mutes_in_force(), acknowledged() if untold else set()
        due = [
            alert for alert in untold if alert.row not in handled and mute_of(rows[id(alert)], mutes) is None
        ]  # fmt: skip
        _make_deliveries(FIRED, due, rows)
        _make_deliveries(RESOLVED, [alert for alert in ended if alert.is_told], rows)
        for alert in due:
            AlertRow.objects.filter(pk=rows[id(alert)].pk).update(is_told=True)
    for alert in (*untold, *ended):
        alert.row, alert.written_at = rows[id(alert)].pk, alert.seen_at
    for alert in due:
        alert.is_told = True
    book.ended = [alert for alert in book.ended if alert not in ended]
    for alert in began:
        _log("alert opened", "alert_opened", alert)
    for alert in ended:
        _log("alert resolved", "alert_resolved", alert)


def tell_acknowledged(row: AlertRow) -> None:
    """Send to the channels that got its begin that it is acknowledged."""
    if row.rule is None or not row.is_told:
        return
    alert = _alert(row, for_book(row.rule))
    alert.last = board.present_of_alerts.get(row.pk, "")
    _make_deliveries(ACKNOWLEDGED, [alert], {id(alert): row})


def kept_days() -> int:
    """How long ended alerts and their deliveries are kept."""
    return int(settings.APPLIANCE.alert_days)


def forget() -> None:
    """Drop what is past its time, or beyond the number that is kept."""
    limit = timezone.now() - timedelta(days=kept_days())
    AlertRow.objects.filter(ended_at__lt=limit).delete()
    AlertDelivery.objects.filter(made_at__lt=limit).delete()
    AlertRule.objects.filter(deleted_at__lt=limit, preset="").delete()
    for rows in (AlertRow.objects.exclude(ended_at=None), AlertDelivery.objects.all()):
        beyond = list(rows.order_by("-pk").values_list("pk", flat=True)[KEPT_ROWS_MAX : KEPT_ROWS_MAX + 500])
        rows.filter(pk__in=beyond).delete()


def address_of_page(path: str) -> str:
    """A page as people outside reach it."""
    appliance = settings.APPLIANCE
    return f"{appliance.http_scheme}://{appliance.http_address}{path}"


# ---- helpers


def _row(alert: Alert) -> AlertRow:
    """Its row, made or brought up to date."""
    texts = {"title": alert.title, "text": alert.text, "worst": alert.worst}
    values: dict[str, Any] = {field: text[: AlertRow.TEXT_MAX] for field, text in texts.items()}
    values |= {
        "rule_id": alert.rule.pk if alert.rule else None,
        "subject": alert.subject[: AlertRow.TEXT_MAX],
        "level": int(alert.level),
        "words": json.dumps(codes_of(texts), ensure_ascii=False, separators=(",", ":")),
        "begun_at": _moment(alert.begun_at),
        "seen_at": _moment(alert.seen_at),
        "ended_at": None if alert.ended_at is None else _moment(alert.ended_at),
    }
    if alert.row is None:
        return AlertRow.objects.create(**values)
    AlertRow.objects.filter(pk=alert.row).update(**values)
    return AlertRow(pk=alert.row, **values)


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _make_deliveries(what: str, alerts: Sequence[Alert], rows: Mapping[int, AlertRow]) -> None:
    """rows: of the alerts, by the id of the object."""
    handled = AlertRow.objects.prefetch_related("notes").in_bulk([rows[id(alert)].pk for alert in alerts])
    by_rule: dict[tuple[int, str], list[Alert]] = defaultdict(list)
    for alert in alerts:
        if alert.rule is not None:
            by_rule[alert.rule.pk, alert.rule.name].append(alert)
    for (pk, name), together in by_rule.items():
        pairs = [(alert, handled[rows[id(alert)].pk]) for alert in together]
        for channel in channels_of(pk):
            is_one_by_one = KINDS_OF_CHANNELS[channel.kind].is_one_by_one
            for part in [[pair] for pair in pairs] if is_one_by_one else [pairs]:
                with translation.override(channel.language):
                    notice = notice_of(what, name_in_words(name), [_told(alert, row) for alert, row in part])
                _make_delivery(channel, notice, part[0][1] if is_one_by_one else None)


def _make_delivery(channel: AlertChannel, notice: Notice, alert: AlertRow | None) -> None:
    if AlertDelivery.objects.filter(state=DeliveryState.WAITING).count() >= WAITING_MAX:
        facts = {"event": "alert_not_delivered", "channel": channel.name, "title": notice.title}
        logger.error("alert not delivered: too many are waiting", extra=facts)
        return
    now = timezone.now()
    AlertDelivery.objects.create(
        channel=channel, what=notice.what, title=notice.title, notice=notice.to_json(), made_at=now, due_at=now,
        alert=alert,
    )  # fmt: skip


def channels_of(rule: int) -> list[AlertChannel]:
    """The channels that a rule tells: its own, or all."""
    own = list(AlertChannel.objects.filter(alertrule=rule))
    return [channel for channel in own or AlertChannel.objects.all() if channel.is_on]


def _told(alert: Alert, row: AlertRow) -> Told:
    path = (page_of_subject(alert.rule.kind, alert.subject) if alert.rule else "") or "/"
    return Told(
        alert.subject, again(alert.title), again(alert.present), Level(alert.level).word, alert.begun_at,
        alert.ended_at, address_of_page(path), f"{row.begun_at.timestamp():.0f}-{row.pk}",
        row.acknowledged_by, row.assigned_to, next((note.text for note in reversed(row.notes.all())), ""),
    )  # fmt: skip


def _log(message: str, event: str, alert: Alert) -> None:
    facts = {
        "event": event,
        "rule": alert.rule.name if alert.rule else "",
        "subject": alert.subject,
        "value": alert.present,
    }
    logger.log(logging.WARNING if event == "alert_opened" else logging.INFO, message, extra=facts)
