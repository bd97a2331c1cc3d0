"""Who handles an alert: acknowledged, assigned, and with notes, as pages and REST do it. Blocking.

An acknowledged alert is still shown, but no longer counted as waiting in the menu.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from dashboard.access.permissions import Permission, principal_of
from dashboard.alerts.alert_rows import tell_acknowledged
from dashboard.alerts.editing import NotTaken
from dashboard.alerts.rules import changes
from dashboard.language.sentences import gettext
from dashboard.models.alerts import AlertNote, AlertRow
from dashboard.models.management import User
from dashboard.status.board import board
from gantrymq.errors import GantryError

NOTES_MAX = 100


class AlreadyOver(GantryError):
    """The alert is resolved: there is nothing left to handle."""

    def __init__(self) -> None:
        super().__init__(gettext("This alert is resolved."))


def acknowledge(row: AlertRow, who: str) -> None:
    """Take note that this account handles it. Raises AlreadyOver."""
    _must_be_open(row)
    if row.acknowledged_at is not None:
        return
    with transaction.atomic():
        row.acknowledged_at, row.acknowledged_by = timezone.now(), who[: AlertRow.WHO_MAX]
        row.save(update_fields=["acknowledged_at", "acknowledged_by"])
        tell_acknowledged(row)
    board.acknowledged |= {(row.rule_id, row.subject)}  # type: ignore[attr-defined]
    changes.note()


def withdraw(row: AlertRow) -> None:
    """Take the acknowledgement back. Raises AlreadyOver."""
    _must_be_open(row)
    row.acknowledged_at, row.acknowledged_by = None, ""
    row.save(update_fields=["acknowledged_at", "acknowledged_by"])
    board.acknowledged -= {(row.rule_id, row.subject)}  # type: ignore[attr-defined]
    changes.note()


def assign(row: AlertRow, username: str) -> None:
    """Give it to an account that may handle alerts, or with "" to none. Raises AlreadyOver, NotTaken."""
    _must_be_open(row)
    if username and username not in handlers():
        raise NotTaken({"user": [gettext("No open account of this name may handle alerts.")]})
    row.assigned_to = username
    row.save(update_fields=["assigned_to"])


def add_note(row: AlertRow, text: str, who: str) -> AlertNote:
    """Write something about it, also when it is over. Raises NotTaken."""
    text = text.strip()
    problem = ""
    if not text or len(text) > AlertNote.TEXT_MAX:
        problem = gettext("A text of 1 to %(count)s characters.") % {"count": AlertNote.TEXT_MAX}
    elif row.notes.count() >= NOTES_MAX:
        problem = gettext("There are %(count)s notes, which is the maximum.") % {"count": NOTES_MAX}
    if problem:
        raise NotTaken({"text": [problem]})
    return row.notes.create(text=text, who=who[: AlertRow.WHO_MAX], made_at=timezone.now())


def handlers() -> list[str]:
    """The accounts that may handle alerts, by name."""
    principals = map(principal_of, User.objects.filter(is_active=True).order_by("username"))
    return [one.user.username for one in principals if one is not None and one.may(Permission.ALARMS_WRITE)]


def _must_be_open(row: AlertRow) -> None:
    if row.ended_at is not None:
        raise AlreadyOver
