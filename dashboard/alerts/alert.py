"""A rule, and an alert that is open or was: by a rule, or by a check of the Overview. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from dashboard.alerts.kinds import KINDS, name_in_words
from dashboard.language.sentences import gettext, joined

ADOPTED_S = 60.0  # after a start everything that is watched is looked at again within this time


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the watch needs it: see AlertRule."""

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

    def title_of(self, subject: str) -> str:
        return joined([name_in_words(self.name) or KINDS[self.kind].words, subject], ": ")


@dataclass(slots=True)
class Alert:
    """One alert. rule: None for one that a check opened; subject is then the check's name.

    level, title: of a check's worst moment; text: what showed it as it opened; last: what shows it now; worst: of a
    check the last text at the highest level. row: its primary key once it is written, at written_at.
    stays_until: of one that the process before left open; it is not over sooner.
    """

    rule: Rule | None
    subject: str
    level: int
    title: str
    text: str
    begun_at: float
    seen_at: float
    worst: str = ""
    clear_since: float | None = None
    ended_at: float | None = None
    row: int | None = None
    written_at: float | None = None
    is_told: bool = False
    stays_until: float = 0.0
    last: str = ""
    is_unknown: bool = False  # for so long that `last` is no more what shows it now

    @property
    def present(self) -> str:
        """What shows it now, as far as it was looked at since it opened, or since a restart."""
        last = self.last or self.text
        return gettext("not known now; last known: %(last)s") % {"last": last} if self.is_unknown else last
