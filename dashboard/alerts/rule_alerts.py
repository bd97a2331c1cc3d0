"""Which alerts of rules are open. Pure: given the readings of each second, it says what opens and what is over.

A value has to be beyond the threshold for `for_s` before an alert opens, and beyond `clear` for `clear_s` before it is
over. A value that is not known changes nothing, and after GONE_S the alert says that it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dashboard.alerts.alert import ADOPTED_S, Alert, Rule
from dashboard.alerts.kinds import GONE_S, KINDS, Causes, Kind, Levels, Readings
from dashboard.language.sentences import gettext, joined
from dashboard.status.check import Check

OPEN_MAX = 100  # alerts of one rule at the same time; the worst come first
ENDED_MAX = 1000  # that no database took yet


class RuleAlerts:
    """The open alerts, by rule and subject, and the ended ones that are not written yet."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, str], Alert] = {}
        self.ended: list[Alert] = []
        self._beyond: dict[tuple[int, str], float] = {}  # since when
        self._causes: Mapping[str, Causes] = {}
        self._levels: Mapping[str, Levels] = {}

    def note(
        self,
        rules: Sequence[Rule],
        readings: Mapping[str, Readings],
        now: float,
        causes: Mapping[str, Causes] | None = None,
        levels: Mapping[str, Levels] | None = None,
    ) -> None:
        """What is known at `now`, by kind. A rule that is gone or off ends its alerts. Of subjects with the same cause
        one opens an alert."""
        self._causes, self._levels = causes or {}, levels or {}
        for rule in rules:
            if rule.kind in readings:
                self._note_rule(rule, KINDS[rule.kind], readings[rule.kind], now)
        known = {rule.pk for rule in rules}
        for key, alert in [(key, alert) for key, alert in self.open.items() if key[0] not in known]:
            self._end(key, alert, now)
        self._beyond = {key: since for key, since in self._beyond.items() if key[0] in known}

    def take_rules(self, rules: Iterable[Rule]) -> None:
        """Rules may have changed: open alerts follow theirs."""
        by_key = {rule.pk: rule for rule in rules}
        for (pk, subject), alert in self.open.items():
            if pk in by_key:
                alert.rule, alert.level = by_key[pk], self._level(by_key[pk], subject)
                alert.title = by_key[pk].title_of(subject)

    def adopt(self, alerts: Iterable[Alert], now: float) -> None:
        """Go on with what was open when the last process ended."""
        for alert in alerts:
            assert alert.rule is not None
            key = alert.rule.pk, alert.subject
            known = self.open.get(key)
            if known is not None:
                known.row, known.begun_at, known.text = alert.row, alert.begun_at, alert.text
                known.is_told, known.written_at = alert.is_told, alert.written_at
            else:
                alert.stays_until = now + ADOPTED_S
                self.open[key] = alert

    def saying(self, check: Check) -> list[Alert]:
        """The open alerts that say what the check says; none as long as they do not say all of it."""
        by_subject: dict[str, Alert] = {}
        for alert in self.open.values():
            if alert.rule is not None and alert.rule.kind in check.rules:
                for subject in self._same(alert.rule, alert.subject):
                    if subject in check.about:
                        by_subject.setdefault(subject, alert)
        if len(by_subject) != len(check.about):
            return []
        return list({id(alert): alert for alert in by_subject.values()}.values())

    # ---- helpers

    def _note_rule(self, rule: Rule, kind: Kind, readings: Readings, now: float) -> None:
        for subject, value in readings.items():
            key = rule.pk, subject
            alert = self.open.get(key)
            if not rule.is_about(subject):
                continue
            if alert is not None:
                alert.is_unknown = value is None and _unseen_s(alert, now) >= GONE_S
            if value is None:
                continue
            if alert is not None and self._is_worse(rule, alert):
                self._end(key, alert, now)  # acknowledged or not: what is worse now is another alert
                self._begin(key, rule, kind, value, now)
            elif alert is not None:
                self._go_on(alert, rule, kind, value, now)
                if alert.clear_since is not None and now - alert.clear_since >= rule.clear_s:
                    self._end(key, alert, now)
            elif kind.is_beyond(value, rule.threshold):
                if now - self._beyond.setdefault(key, now) >= rule.for_s and not self._is_said(rule, subject):
                    self._begin(key, rule, kind, value, now)
            else:
                self._beyond.pop(key, None)
        self._look_for_gone(rule, kind, readings, now)

    def _same(self, rule: Rule, subject: str) -> list[str]:
        """The subjects that the rule is about and that have the same cause, itself first."""
        causes = self._causes.get(rule.kind, {})
        cause = causes.get(subject)
        others = [other for other in causes if causes[other] == cause and other != subject and rule.is_about(other)]
        return [subject, *others]

    def _is_said(self, rule: Rule, subject: str) -> bool:
        return any((rule.pk, other) in self.open for other in self._same(rule, subject)[1:])

    def _is_worse(self, rule: Rule, alert: Alert) -> bool:
        """Whether the check says so; a rule that was changed, before a restart perhaps, makes no other alert of it."""
        is_told = alert.subject in self._levels.get(rule.kind, {})
        return is_told and self._level(rule, alert.subject) > alert.level

    def _level(self, rule: Rule, subject: str) -> int:
        return min(rule.level, self._levels.get(rule.kind, {}).get(subject, rule.level))

    def _text(self, rule: Rule, subject: str, kind: Kind, value: float) -> str:
        others = self._same(rule, subject)[1:]
        also = gettext("on the same disk: %(brokers)s") % {"brokers": joined(others)} if others else ""
        return joined([_text(rule, kind, value), also], "; ")

    def _begin(self, key: tuple[int, str], rule: Rule, kind: Kind, value: float, now: float) -> None:
        if sum(1 for pk, _ in self.open if pk == rule.pk) >= OPEN_MAX:
            return
        began = self._beyond.pop(key, now)
        text = self._text(rule, key[1], kind, value)
        self.open[key] = Alert(rule, key[1], self._level(rule, key[1]), rule.title_of(key[1]), text, began, now)

    def _go_on(self, alert: Alert, rule: Rule, kind: Kind, value: float, now: float) -> None:
        alert.seen_at, alert.last = now, self._text(rule, alert.subject, kind, value)
        is_clear = not kind.is_beyond(value, rule.threshold) and (
            value >= rule.clear if kind.is_below else value <= rule.clear
        )
        if not is_clear:
            alert.clear_since = None
        elif alert.clear_since is None:
            alert.clear_since = now

    def _look_for_gone(self, rule: Rule, kind: Kind, readings: Readings, now: float) -> None:
        """Subjects that are not there any more. One that is there and not known is not gone."""
        for key in [key for key in self._beyond if key[0] == rule.pk and key[1] not in readings]:
            del self._beyond[key]
        for key, alert in [(key, alert) for key, alert in self.open.items() if key[0] == rule.pk]:
            is_there = key[1] in readings and rule.is_about(key[1])
            if not is_there and _unseen_s(alert, now) >= kind.gone_s:
                self._end(key, alert, now)
            elif key[1] not in readings:
                alert.is_unknown = _unseen_s(alert, now) >= GONE_S

    def _end(self, key: tuple[int, str], alert: Alert, now: float) -> None:
        del self.open[key]
        alert.ended_at = now
        self.ended = [*self.ended[-ENDED_MAX:], alert]


def _unseen_s(alert: Alert, now: float) -> float:
    return now - max(alert.seen_at, alert.stays_until)


def _text(rule: Rule, kind: Kind, value: float) -> str:
    if kind.is_below:
        text = gettext("%(value)s; the alert opens at or below %(threshold)s")
    else:
        text = gettext("%(value)s; the alert opens at or above %(threshold)s")
    return text % {"value": kind.shown(value), "threshold": kind.shown(rule.threshold)}
