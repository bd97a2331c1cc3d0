"""Which alerts the Overview's checks open. Pure: given what the checks find each second, it says which rows to write.

What comes and goes within SHORTEST_S opens none: a start alone would. What is gone for less than QUIET_S and comes back
is the same one still.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dashboard.alerts.alert import ADOPTED_S, Alert
from dashboard.status.check import Check, Level

SHORTEST_S = 3.0
QUIET_S = 10.0
SEEN_EACH_S = 60.0  # how often a row says that its alert goes on, for a process that is killed
OPEN_MAX = 200  # at the same time; what is worst comes first


class CheckAlerts:
    """The alerts that are open, and the ended ones that are not written yet."""

    def __init__(self) -> None:
        self._open: dict[str, Alert] = {}
        self._ended: list[Alert] = []

    def note(self, checks: Iterable[Check], now: float) -> None:
        """What the board shows at `now`."""
        for check in sorted(checks, key=lambda one: -one.level):
            known = self._open.get(check.identity)
            if known is not None:
                _take(known, check, now)
            elif check.level > Level.GOOD and len(self._open) < OPEN_MAX:
                self._open[check.identity] = Alert(
                    None, check.identity, check.level, check.title, check.evidence, now, now, worst=check.evidence
                )
        for alert in [one for one in self._open.values() if now - max(one.seen_at, one.stays_until) >= QUIET_S]:
            del self._open[alert.subject]
            self._end(alert, alert.seen_at)

    def adopt(self, alerts: Iterable[Alert], now: float) -> None:
        """Go on with what was open when the last process ended."""
        for alert in alerts:
            known = self._open.get(alert.subject)
            if known is not None:
                known.row, known.begun_at, known.text = alert.row, alert.begun_at, alert.text
            else:
                alert.stays_until = now + ADOPTED_S
                self._open[alert.subject] = alert

    def hand_over(self, identity: str, of_rules: Sequence[Alert], now: float) -> None:
        """Alerts of rules say the same now. A single new one goes on in the row, with what people noted there."""
        known = self._open.pop(identity, None)
        if known is None:
            return
        [first, *more] = of_rules
        if known.row is not None and first.row is None and not more:
            first.row, first.begun_at = known.row, min(first.begun_at, known.begun_at)
        else:
            self._end(known, now)

    def open(self) -> list[Alert]:
        return list(self._open.values())

    def due(self, now: float) -> list[Alert]:
        """The alerts whose rows have to be written."""
        return [alert for alert in (*self._open.values(), *self._ended) if _is_due(alert, now)]

    def written(self, alert: Alert, row: int, now: float) -> None:
        """Its row is written."""
        alert.row, alert.written_at = row, now
        if alert in self._ended:
            self._ended.remove(alert)

    def _end(self, alert: Alert, at: float) -> None:
        alert.ended_at = at
        if alert.row is not None or alert.seen_at - alert.begun_at >= SHORTEST_S:
            self._ended = [*self._ended[-OPEN_MAX:], alert]


def _take(alert: Alert, check: Check, now: float) -> None:
    """It is still there. What is worse than before is written at once, what is only seen again now and then."""
    if check.level > alert.level:
        alert.written_at = None
    if check.level >= alert.level:
        alert.level, alert.title, alert.worst = check.level, check.title, check.evidence
    alert.seen_at, alert.last = now, check.evidence


def _is_due(alert: Alert, now: float) -> bool:
    """Whether its row has to be written."""
    if alert.ended_at is not None:
        return True
    if alert.seen_at - alert.begun_at < SHORTEST_S:
        return False
    return alert.written_at is None or now - alert.written_at >= SEEN_EACH_S
