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
        (
            r"Spark's Java process ended in the middle of the run \(killed by signal (?P<signal>\d+), .*",
            gettext_noop(
                "Spark's Java process was killed in the middle of the run by signal %(signal)s, as a machine does that "
                "has no memory left. What was committed stays, and the next run goes on there. If it happens again, "
                "see the run's log; give the machine more memory or the run less (report_memory)."
            ),
        ),
        (
            r"the run took longer than (?P<seconds>[\d.e+]+) s and was killed; give it more time or a shorter range",
            gettext_noop("the run took longer than %(seconds)s s and was killed; give it more time or a shorter range"),
        ),
        (r"the run was stopped before it ended", gettext_noop("the run was stopped before it ended")),
        # what readers of a result should know
        (
            r"(?P<broker>\S+): its log holds (?P<held>[\d,]+) MiB now and will hold up to (?P<most>[\d,]+) MiB, if it "
            r"keeps (?P<hours>\d+) h as it is set to; the disk has (?P<room>[\d,]+) MiB for it, so that is enough\.",
            gettext_noop(
                "%(broker)s: its log holds %(held)s MiB now and will hold up to %(most)s MiB, if it keeps %(hours)s h "
                "as it is set to; the disk has %(room)s MiB for it, so that is enough."
            ),
        ),
        (
            r"(?P<broker>\S+): its log holds (?P<held>[\d,]+) MiB now and will hold up to (?P<most>[\d,]+) MiB, if it "
            r"keeps (?P<hours>\d+) h as it is set to; the disk has (?P<room>[\d,]+) MiB for it until it is "
            r"(?P<full>\d+) % full: messages may then go after about (?P<kept>\d+) h already\.",
            gettext_noop(
                "%(broker)s: its log holds %(held)s MiB now and will hold up to %(most)s MiB, if it keeps %(hours)s h "
                "as it is set to; the disk has %(room)s MiB for it until it is %(full)s %% full: messages may then go "
                "after about %(kept)s h already."
            ),
        ),
        (
            r"what was stored before (?P<time>[\d: -]+) UTC is not in the lake any more: its age or its size is "
            r"limited",
            gettext_noop(
                "what was stored before %(time)s UTC is not in the lake any more: its age or its size is limited"
            ),
        ),
        (
            r"(?P<broker>\S+): (?P<bytes>[\d,]+) bytes of the log were deleted by the broker before a run could read "
            r"them; they held messages stored from (?P<begin>[\d: -]+) to (?P<end>[\d: -]+) UTC",
            gettext_noop(
                "%(broker)s: %(bytes)s bytes of the log were deleted by the broker before a run could read them; they "
                "held messages stored from %(begin)s to %(end)s UTC"
            ),
        ),
        (
            r"(?P<broker>\S+): (?P<bytes>[\d,]+) bytes of the log at physical offset (?P<offset>\d+) are damaged and "
            r"not counted; they held messages stored from (?P<begin>[\d: -]+) to (?P<end>[\d: -]+) UTC",
            gettext_noop(
                "%(broker)s: %(bytes)s bytes of the log at physical offset %(offset)s are damaged and not counted; "
                "they held messages stored from %(begin)s to %(end)s UTC"
            ),
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
