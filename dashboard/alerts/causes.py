"""Where an alert leads: the page that shows what it is about, and what can be done there."""

from __future__ import annotations

from urllib.parse import quote

from dashboard.alerts.kinds import KINDS
from dashboard.models.alerts import AlertRow
from dashboard.status.board import board
from dashboard.status.verdict import checked

PATHS = {"group": "/group/", "dead-letters-group": "/dead-letters/", "topic": "/topic/"}
BROKERS = "/brokers"  # each with what it answers


def page_of_subject(kind: str, subject: str) -> str:
    """Of a rule's alert; "" where no page is about one subject."""
    begin = PATHS.get(KINDS[kind].page) if kind in KINDS else None
    return f"{begin}{quote(subject, safe='')}" if begin else ""


def page_of_alert(row: AlertRow) -> str:
    """Of an alert of a check, as long as the check finds it."""
    if row.rule is not None:
        is_of_broker = row.rule.kind in KINDS and KINDS[row.rule.kind].about == "broker"
        return page_of_subject(row.rule.kind, row.subject) or (BROKERS if is_of_broker else "")
    found = checked(board.snapshot) if board.snapshot is not None else []
    return next((one.link for one in found if one.identity == row.subject), "")
