"""How often a rule would have rung: its book, run over the history of each minute."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from dataclasses import dataclass, replace

from dashboard.alerts.alert import Rule
from dashboard.alerts.kinds import KINDS, Kind, Readings
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.history.block_builder import HOUR, MINUTE
from dashboard.history.series import SEPARATOR
from dashboard.models.history import HistoryBlock

DAYS = 7
BLOCKS_MAX = 30_000  # of an hour and a subject


@dataclass(frozen=True, slots=True)
class WouldHave:
    """times: alarms in the minutes that are known; minutes: how many these are; last: when the newest began."""

    times: int
    minutes: int
    subjects: int
    last: float | None

    @property
    def known_s(self) -> int:
        return self.minutes * MINUTE


def would_have_rung(rule: Rule, now: float) -> WouldHave:
    """Over the last DAYS days. Blocking. A minute is the shortest time that the history knows."""
    kind = KINDS[rule.kind]
    minutes = _minutes(kind, rule, int(now) - DAYS * 24 * HOUR)
    book = RuleAlerts()
    begun: list[float] = []
    short = replace(rule, for_s=max(0.0, rule.for_s - MINUTE), clear_s=max(0.0, rule.clear_s - MINUTE))
    subjects: set[str] = set()
    for at in sorted(minutes):
        before = set(book.open)
        book.note([short], {rule.kind: minutes[at]}, float(at))
        begun += [book.open[key].begun_at for key in book.open.keys() - before]
        book.ended.clear()
        subjects |= minutes[at].keys()
    return WouldHave(len(begun), len(minutes), len(subjects), max(begun, default=None))


def _minutes(kind: Kind, rule: Rule, since: int) -> dict[int, Readings]:
    """What was known in each minute of which something was."""
    rows = HistoryBlock.objects.filter(step_s=MINUTE, start__gte=since - HOUR)
    subjects = SEPARATOR in kind.series or kind.page or kind.about != "cluster"
    rows = rows.filter(series__startswith=kind.series + SEPARATOR) if subjects else rows.filter(series=kind.series)
    found: dict[int, dict[str, float | None]] = defaultdict(dict)
    for series, start, values in rows.order_by("-start").values_list("series", "start", "values")[:BLOCKS_MAX]:
        subject = series.partition(SEPARATOR)[2] or kind.about
        if not rule.is_about(subject) or len(values) != 4 * HOUR // MINUTE:
            continue
        for index, value in enumerate(array("f", bytes(values))):
            at = start + index * MINUTE
            if at >= since and not math.isnan(value):
                found[at][subject] = value * kind.scale
    return dict(found)
