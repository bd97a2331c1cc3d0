"""Which alarms ring. Pure: told the readings of each second, it says what began and what is over.

A value has to be beyond the threshold for `for_s` before it rings, and beyond `clear` for `clear_s` before that is
over. A value that is not known changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dashboard.alerts.kinds import KINDS, Kind, Readings, name_in_words
from dashboard.language.sentences import gettext, joined

OPEN_MAX = 100  # alarms of one rule at the same time; the worst come first
ADOPTED_S = 60.0  # after a start all that is watched is looked at again within this time
ENDED_MAX = 1000  # that no database took yet


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the book needs it: see AlarmRule."""

    pk: int
    name: str
    kind: str
    pattern: str
    threshold: float
    clear: float
    for_s: float
    clear_s: float
    level: int

    def is_about(self, subject: str) -> bool:
        return not self.pattern or fnmatchcase(subject, self.pattern)


@dataclass(slots=True)
class Alarm:
    """One alarm that rings, or rang. row: its primary key once it is written."""

    rule: Rule
    subject: str
    text: str
    begun_at: float
    seen_at: float
    clear_since: float | None = None
    ended_at: float | None = None
    row: int | None = None
    is_told: bool = False
    stays_until: float = 0.0

    @property
    def title(self) -> str:
        return joined([name_in_words(self.rule.name) or KINDS[self.rule.kind].words, self.subject], ": ")


class AlarmBook:
    """The alarms that ring, by rule and subject, and the ended ones that are not written yet."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, str], Alarm] = {}
        self.ended: list[Alarm] = []
        self._beyond: dict[tuple[int, str], float] = {}  # since when

    def note(self, rules: Sequence[Rule], readings: Mapping[str, Readings], now: float) -> None:
        """What is known at `now`, by kind. A rule that is gone or off ends its alarms."""
        for rule in rules:
            if rule.kind in readings:
                self._note_rule(rule, KINDS[rule.kind], readings[rule.kind], now)
        known = {rule.pk for rule in rules}
        for key, alarm in [(key, alarm) for key, alarm in self.open.items() if key[0] not in known]:
            self._end(key, alarm, now)
        self._beyond = {key: since for key, since in self._beyond.items() if key[0] in known}

    def adopt(self, alarms: Iterable[Alarm], now: float) -> None:
        """Go on with what rang when the last process ended."""
        for alarm in alarms:
            key = alarm.rule.pk, alarm.subject
            known = self.open.get(key)
            if known is not None:
                known.row, known.begun_at, known.is_told = alarm.row, alarm.begun_at, alarm.is_told
            else:
                alarm.stays_until = now + ADOPTED_S
                self.open[key] = alarm

    # ---- helpers

    def _note_rule(self, rule: Rule, kind: Kind, readings: Readings, now: float) -> None:
        for subject, value in readings.items():
            key = rule.pk, subject
            if value is None or not rule.is_about(subject):
                continue
            alarm = self.open.get(key)
            if alarm is not None:
                self._go_on(alarm, kind, value, now)
                if alarm.clear_since is not None and now - alarm.clear_since >= rule.clear_s:
                    self._end(key, alarm, now)
            elif kind.is_beyond(value, rule.threshold):
                if now - self._beyond.setdefault(key, now) >= rule.for_s:
                    self._begin(key, rule, kind, value, now)
            else:
                self._beyond.pop(key, None)
        self._look_for_gone(rule, kind, readings, now)

    def _begin(self, key: tuple[int, str], rule: Rule, kind: Kind, value: float, now: float) -> None:
        if sum(1 for pk, _ in self.open if pk == rule.pk) >= OPEN_MAX:
            return
        began = self._beyond.pop(key, now)
        self.open[key] = Alarm(rule, key[1], _text(rule, kind, value), began, now)

    def _go_on(self, alarm: Alarm, kind: Kind, value: float, now: float) -> None:
        alarm.seen_at = now
        is_clear = not kind.is_beyond(value, alarm.rule.threshold) and (
            value >= alarm.rule.clear if kind.is_below else value <= alarm.rule.clear
        )
        if not is_clear:
            alarm.clear_since = None
            alarm.text = _text(alarm.rule, kind, value)
        elif alarm.clear_since is None:
            alarm.clear_since = now

    def _look_for_gone(self, rule: Rule, kind: Kind, readings: Readings, now: float) -> None:
        """Subjects that are not there any more. One that is there and not known is not gone."""
        for key in [key for key in self._beyond if key[0] == rule.pk and key[1] not in readings]:
            del self._beyond[key]
        for key, alarm in [(key, alarm) for key, alarm in self.open.items() if key[0] == rule.pk]:
            is_there = key[1] in readings and rule.is_about(key[1])
            if not is_there and now - max(alarm.seen_at, alarm.stays_until) >= kind.gone_s:
                self._end(key, alarm, now)

    def _end(self, key: tuple[int, str], alarm: Alarm, now: float) -> None:
        del self.open[key]
        alarm.ended_at = now
        self.ended = [*self.ended[-ENDED_MAX:], alarm]


def _text(rule: Rule, kind: Kind, value: float) -> str:
    if kind.is_below:
        text = gettext("%(value)s; the rule rings at or below %(threshold)s")
    else:
        text = gettext("%(value)s; the rule rings at or above %(threshold)s")
    return text % {"value": kind.shown(value), "threshold": kind.shown(rule.threshold)}
