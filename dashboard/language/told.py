"""Sentences that rows keep in English without their code, known again by their pattern: what stands in the audit log,
which is hashed, and what processes of the appliance write about themselves.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

_KNOWN = {
    re.compile(pattern): text
    for pattern, text in (
        # the audit log
        (r"the role or the token may not do this", gettext_noop("the role or the token may not do this")),
        (
            r"answered with (?P<code>\d+): it may have been done in part",
            gettext_noop("answered with %(code)s: it may have been done in part"),
        ),
        (
            r"its trail was replaced twice before it was read",
            gettext_noop("its trail was replaced twice before it was read"),
        ),
        # runs of reports
        (r"it was stopped by hand", gettext_noop("it was stopped by hand")),
        (r"the appliance was stopped during this run", gettext_noop("the appliance was stopped during this run")),
        (
            r"the web process was killed during this run; it begins again",
            gettext_noop("the web process was killed during this run; it begins again"),
        ),
        (
            r"the web process was killed during each try of this run",
            gettext_noop("the web process was killed during each try of this run"),
        ),
        (r"the command was killed", gettext_noop("the command was killed")),
        (
            r"gantry report ended with exit code (?P<code>-?\d+)",
            gettext_noop("gantry report ended with exit code %(code)s"),
        ),
        (
            r"gantry report could not be started: (?P<why>.+)",
            gettext_noop("gantry report could not be started: %(why)s"),
        ),
        # runs that put dead letters back
        (
            r"A fault in GantryMQ; the log of the web process has it\.",
            gettext_noop("A fault in GantryMQ; the log of the web process has it."),
        ),
        (
            r"The account (?P<name>\S+) may not put letters back any more\.",
            gettext_noop("The account %(name)s may not put letters back any more."),
        ),
    )
}


def told_in_words(told: str) -> str:
    """The sentence in the language of the page; what is not known is shown as it came."""
    for pattern, text in _KNOWN.items():
        if found := pattern.fullmatch(told):
            return gettext(text) % found.groupdict()
    return told
