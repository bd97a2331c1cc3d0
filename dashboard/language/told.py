"""Sentences that rows keep in English without their code, known again by their pattern: what stands in the audit log,
which is hashed, and what processes of the appliance write about themselves, or brokers about etcd.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext_noop

from dashboard.language.sentences import gettext

_KNOWN = {
    re.compile(pattern): text
    for pattern, text in (
        # the audit log
        (r"the role or the token does not allow this", gettext_noop("the role or the token does not allow this")),
        (
            r"answered with (?P<code>\d+): it may be partly done",
            gettext_noop("answered with %(code)s: it may be partly done"),
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
            gettext_noop("the web process was killed during this run; it starts again"),
        ),
        (
            r"the web process was killed during each try of this run",
            gettext_noop("the web process was killed during each attempt of this run"),
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
            r"Spark's Java process ended during the run \(killed by signal (?P<signal>\d+), .*",
            gettext_noop(
                "Signal %(signal)s killed Spark's Java process during the run, as machines do that "
                "have run out of memory. What was committed stays, and the next run continues there. "
                "If it happens again, see the run's log; give the machine more memory or the run "
                "less (report_memory)."
            ),
        ),
        (
            r"the run took longer than (?P<seconds>[\d.e+]+) s and was killed; give it more time or a shorter range",
            gettext_noop("the run took longer than %(seconds)s s and was killed; give it more time or a shorter range"),
        ),
        (r"the run was stopped before it ended", gettext_noop("the run was stopped before it ended")),
        # what readers of a result should know
        (
            r"(?P<broker>\S+): its log takes (?P<held>[\d.,]+ \w+) now and will take up to (?P<most>[\d.,]+ \w+) at "
            r"its retention of (?P<hours>\d+) h; the disk has (?P<room>[\d.,]+ \w+) for it, which is enough\.",
            gettext_noop(
                "%(broker)s: its log takes %(held)s now and will take up to %(most)s at its "
                "retention of %(hours)s h; the disk has %(room)s for it, which is enough."
            ),
        ),
        (
            r"(?P<broker>\S+): its log takes (?P<held>[\d.,]+ \w+) now and will take up to (?P<most>[\d.,]+ \w+) at "
            r"its retention of (?P<hours>\d+) h; the disk has (?P<room>[\d.,]+ \w+) for it until it is "
            r"(?P<full>\d+) % full, so messages may be deleted after about (?P<kept>\d+) h\.",
            gettext_noop(
                "%(broker)s: its log takes %(held)s now and will take up to %(most)s at its "
                "retention of %(hours)s h; the disk has %(room)s for it until it is %(full)s %% "
                "full, so messages may be deleted after about %(kept)s h."
            ),
        ),
        (
            r"the lake no longer has what was stored before (?P<time>[\d: -]+) UTC: its age or its size is limited",
            gettext_noop("the lake no longer has what was stored before %(time)s UTC: its age or its size is limited"),
        ),
        (
            r"(?P<broker>\S+): (?P<bytes>[\d.,]+ \w+) of the log were deleted by the broker before a run could read "
            r"them; they held messages stored from (?P<begin>[\d: -]+) to (?P<end>[\d: -]+) UTC",
            gettext_noop(
                "%(broker)s: %(bytes)s of the log were deleted by the broker before a run could read them; they "
                "held messages stored from %(begin)s to %(end)s UTC"
            ),
        ),
        (
            r"(?P<broker>\S+): (?P<bytes>[\d.,]+ \w+) of the log at physical offset (?P<offset>\d+) are damaged and "
            r"not counted; they held messages stored from (?P<begin>[\d: -]+) to (?P<end>[\d: -]+) UTC",
            gettext_noop(
                "%(broker)s: %(bytes)s of the log at physical offset %(offset)s are damaged and not counted; "
                "they held messages stored from %(begin)s to %(end)s UTC"
            ),
        ),
        # what brokers tell of the etcd that has their record
        (
            r"etcd has kept its last (?P<changes>[\d,]+) changes and more \((?P<size>[\d.,]+ \w+)\): it is never "
            r"compacted, or too seldom, and once it is full it refuses every change; see “etcd has no room” in the "
            r"failover runbook",
            gettext_noop(
                "etcd has kept its last %(changes)s changes and more (%(size)s): it is never compacted, or too "
                "seldom, and once it is full it refuses every change; see “etcd has no room” in the failover runbook"
            ),
        ),
        (
            r"etcd's database is full \((?P<size>[\d.,]+ \w+)\), so it refuses every change and masters can't renew: "
            r"compact it, defragment its members, then `etcdctl alarm disarm`; see “etcd has no room” in the failover "
            r"runbook",
            gettext_noop(
                "etcd's database is full (%(size)s), so it refuses every change and masters can't renew: compact "
                "it, defragment its members, then `etcdctl alarm disarm`; see “etcd has no room” in the failover "
                "runbook"
            ),
        ),
        (
            r"members of etcd have found that their data differ \(CORRUPT\): replace the member that etcd's log names",
            gettext_noop(
                "members of etcd have found that their data differ (CORRUPT): replace the member that etcd's log names"
            ),
        ),
        # runs that resend dead letters
        (
            r"This is a fault in GantryMQ\. The web process's log has the details\.",
            gettext_noop("This is a fault in GantryMQ. The web process's log has the details."),
        ),
        (
            r"The account (?P<name>\S+) can no longer resend dead letters\.",
            gettext_noop("The account %(name)s can no longer resend dead letters."),
        ),
    )
}


def told_in_words(told: str) -> str:
    """The sentence in the language of the page; what is not known is shown as it came."""
    for pattern, text in _KNOWN.items():
        if found := pattern.fullmatch(told):
            return gettext(text) % found.groupdict()
    return told
