"""What a check found: how bad, what, the evidence, what to do. The one shape for pages, REST, alerts and Prometheus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext, gettext_noop

from appliance.settings.alert_names import RuleKind
from dashboard.language.sentences import again, in_english

NAME_SERVER = "name server"  # as rules call it


class Level(IntEnum):
    """How bad; the words are what a person reads beside the colour."""

    GOOD = 0
    WARN = 1
    BAD = 2

    @property
    def word(self) -> str:
        """Of the interface: REST, the classes of pages."""
        return _WORDS[self]

    @property
    def label(self) -> str:
        """The word in the language of the page."""
        return gettext(_WORDS[self])


class Harm(IntEnum):
    """What is harmed, the worst first: the order of problems of one level."""

    LOSES = 0  # messages or settings are being lost
    STOPS = 1  # clients can't go on
    SLOWS = 2  # all goes on, slower or with fewer copies
    WILL = 3  # nothing yet: a forecast, or what one more failure would do


_WORDS = {Level.GOOD: gettext_noop("good"), Level.WARN: gettext_noop("attention"), Level.BAD: gettext_noop("problem")}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a check looked at. action: what to do, "" where there is nothing to do.

    name: stays the same for the same thing while the title does not.
    link, link_text: the page that shows or changes it; lines: settings or a command to copy.
    rules, about: an open alert of a rule of one of these kinds, about each of these, says the same.
    """

    level: Level
    title: str
    evidence: str
    action: str = ""
    name: str = ""
    link: str = ""
    link_text: str = ""
    lines: str = ""
    rules: tuple[RuleKind, ...] = ()
    about: tuple[str, ...] = ()
    harm: Harm = Harm.SLOWS
    is_acknowledged: bool = False

    def again(self) -> Check:
        """The same in the language that is active now."""
        return replace(self, title=again(self.title), evidence=again(self.evidence), action=again(self.action))

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The lower, the sooner a person should read it. What will be comes after what is, though that be less bad."""
        return self.is_acknowledged, (1 if self.harm is Harm.WILL else 0) - self.level, self.harm

    @property
    def identity(self) -> str:
        """What its alert is kept by: the same in every language, so that pages know it again."""
        told: str = in_english(self.name or self.title)
        return told


def page_of(page: str, name: str, others: str) -> str:
    """Where a problem of one thing leads. others: the list, for a name that no address takes."""
    try:
        return reverse(page, args=[name])
    except NoReverseMatch:
        return reverse(others)
