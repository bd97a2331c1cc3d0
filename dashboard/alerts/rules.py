"""The rules of the database: those that are there from the start, and what the book needs of each. Blocking."""

from __future__ import annotations

from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from django.utils import timezone

from dashboard.alerts.alert import Rule
from dashboard.alerts.kinds import KINDS, PRESETS
from dashboard.models.alerts import AlertMute, AlertRow, AlertRule

RULES_MAX = 100
DELETED_KEPT = timedelta(days=1)  # so long a deleted rule can be had back


class Changes:
    """Counts the changes of rules, so that the watch reads them again at once."""

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        self.count += 1


changes = Changes()


def ensure_presets() -> None:
    """Make those presets that were never there. A deleted one stays deleted."""
    there = set(AlertRule.objects.exclude(preset="").values_list("preset", flat=True))
    for preset in PRESETS:
        if preset.kind not in there:
            AlertRule.objects.create(
                name=preset.name, kind=preset.kind, threshold=preset.threshold, clear=preset.clear, for_s=preset.for_s,
                clear_s=preset.clear_s, level=int(preset.level), preset=preset.kind,
            )  # fmt: skip


def shown_rules() -> list[AlertRule]:
    """Those that are not deleted."""
    return list(AlertRule.objects.filter(deleted_at=None).prefetch_related("channels")[:RULES_MAX])


def deleted_rules() -> list[AlertRule]:
    """Those that can be had back."""
    return list(AlertRule.objects.filter(deleted_at__gte=timezone.now() - DELETED_KEPT)[:RULES_MAX])


def for_book(row: AlertRule) -> Rule:
    return Rule(row.pk, row.name, row.kind, row.pattern, row.threshold, row.clear, row.for_s, row.clear_s, row.level)


def rules_in_force() -> list[Rule]:
    """What the watch looks for. A kind that a newer version knew is left alone."""
    return [for_book(row) for row in AlertRule.objects.filter(deleted_at=None, is_on=True) if row.kind in KINDS]


def mutes_in_force() -> list[AlertMute]:
    return list(AlertMute.objects.filter(until__gt=timezone.now()).select_related("rule")[:RULES_MAX])


def mute_of(row: AlertRow, mutes: list[AlertMute]) -> AlertMute | None:
    """The mute that covers an alert."""
    now = timezone.now()
    for one in mutes:
        is_rule = one.rule_id in (None, row.rule_id)  # type: ignore[attr-defined]
        if one.until > now and is_rule and (not one.pattern or fnmatchcase(row.subject, one.pattern)):
            return one
    return None


def muted_now() -> tuple[int, datetime] | None:
    """How many open alerts of rules are muted, and when the first of their mutes ends."""
    mutes = mutes_in_force()
    rows = AlertRow.objects.filter(ended_at=None, rule__isnull=False) if mutes else ()
    ends = [found.until for row in rows if (found := mute_of(row, mutes)) is not None]
    return (len(ends), min(ends)) if ends else None
