"""Sentences that rows keep in English without their code, known again by their text: what stands in the audit log,
which is hashed, what processes of the appliance write about themselves, or brokers about etcd and failover, and what
speaks against a promotion or switchover.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from django.utils.translation import gettext_noop

from dashboard.language.sentences import Sentence, gettext, joined

DEPTH_MAX = 8  # of sentences within sentences; each is said once more with the one around it
_NUMBER, _SIZE, _MOMENT = r"-?[\d,]+", r"[\d.,]+ \w+", r"[\d: -]+"
# What a slave does, as brokers tell it.
SLAVE_STATES = (
    gettext_noop("copying"),
    gettext_noop("comparing logs"),
    gettext_noop("connecting"),
    gettext_noop("ahead of the master"),
    gettext_noop("epoch begun twice"),
    gettext_noop("would lose confirmed messages"),
    gettext_noop("left behind"),
    gettext_noop("diverged"),
    gettext_noop("disk full"),
    gettext_noop("no master known"),
    gettext_noop("old master"),
    gettext_noop("cutting"),
)
_ONE = r"(?:(?!; ).)+"  # not a sentence before it, too
# What stands for %(name)s.
_VALUES = {
    "address": r"address unknown|\S+",
    "begin": _MOMENT,
    "beginning": _NUMBER,
    "broker": r"\S+",
    "bytes": _SIZE,
    "changes": _NUMBER,
    "cluster": r"[\da-f]+",
    "count": _NUMBER,
    "code": _NUMBER,
    "end": _MOMENT,
    "epoch": _NUMBER,
    "full": _NUMBER,
    "gone": r"[\d.]+",
    "group": r"\S+",
    "heard": r"[\d.]+|never",
    "held": _SIZE,
    "highest": _NUMBER,
    "hours": _NUMBER,
    "kept": _NUMBER,
    "leave": r"[\d.e+]+",
    "lost": _NUMBER,
    "master": r"\S+",
    "member": _NUMBER,
    "members": r"none|\d+(?:, \d+)*",
    "most": _SIZE,
    "name": r"\S+",
    "names": r"\S+(?:, \S+)*",
    "offset": _NUMBER,
    "own": r"\S+",
    "rival": _ONE,
    "room": _SIZE,
    "seconds": r"[\d.e+]+",
    "signal": r"SIG\w+|signal \d+",
    "size": _SIZE,
    "slave": r"\S+",
    "state": "|".join(SLAVE_STATES),
    "store": r"\S+",
    "time": _MOMENT,
    "who": _ONE,
    "why": ".+",
}
_SAID = (
    # the audit log
    gettext_noop("the role or the token does not allow this"),
    gettext_noop("answered with %(code)s: it may be partly done"),
    gettext_noop("its trail was replaced twice before it was read"),
    # processes
    gettext_noop("ended with exit code %(code)s"),
    gettext_noop("was killed by %(signal)s"),
    gettext_noop("did not answer for %(seconds)s s"),
    # runs of reports
    gettext_noop("it was stopped by hand"),
    gettext_noop("the appliance was stopped during this run"),
    gettext_noop("the command was killed"),
    gettext_noop("gantry report ended with exit code %(code)s"),
    gettext_noop("gantry report could not be started: %(why)s"),
    gettext_noop("the run took longer than %(seconds)s s and was killed; give it more time or a shorter range"),
    gettext_noop("the run was stopped before it ended"),
    # what readers of a result should know
    gettext_noop(
        "%(broker)s: its log takes %(held)s now and will take up to %(most)s at its "
        "retention of %(hours)s h; the disk has %(room)s for it, which is enough."
    ),
    gettext_noop(
        "%(broker)s: its log takes %(held)s now and will take up to %(most)s at its "
        "retention of %(hours)s h; the disk has %(room)s for it until it is %(full)s %% "
        "full, so messages may be deleted after about %(kept)s h."
    ),
    gettext_noop("the lake no longer has what was stored before %(time)s UTC: its age or its size is limited"),
    gettext_noop(
        "%(broker)s: %(bytes)s of the log were deleted by the broker before a run could read them; they "
        "held messages stored from %(begin)s to %(end)s UTC"
    ),
    gettext_noop(
        "%(broker)s: %(bytes)s of the log at physical offset %(offset)s are damaged and not counted; "
        "they held messages stored from %(begin)s to %(end)s UTC"
    ),
    # what brokers tell of the etcd that has their record
    gettext_noop(
        "etcd has kept its last %(changes)s changes and more (%(size)s): it is never compacted, or too "
        "seldom, and once it is full it refuses every change; see “etcd has no room” in the failover runbook"
    ),
    gettext_noop(
        "etcd's database is full (%(size)s), so it refuses every change and masters can't renew: compact "
        "it, defragment its members, then `etcdctl alarm disarm`; see “etcd has no room” in the failover "
        "runbook"
    ),
    gettext_noop(
        "members of etcd have found that their data differ (CORRUPT): replace the member that etcd's log names"
    ),
    # why a member took over
    gettext_noop("member %(member)s has not renewed for %(seconds)s s"),
    gettext_noop("member %(member)s was the master, and has restarted"),
    gettext_noop("unclean switchover, %(lost)s bytes accepted"),
    # why a member does not take over
    gettext_noop("member %(member)s (%(address)s): %(why)s"),
    gettext_noop("address unknown"),
    gettext_noop("no other member has joined: `gantry admin ha join`"),
    gettext_noop("it has not said for ten seconds whether it could: it is gone, or automaticFailover is off there"),
    gettext_noop("it is not known yet whether it could: what it said last may be old"),
    gettext_noop("%(who)s has paused failover"),
    gettext_noop("%(who)s has paused failover: %(why)s"),
    gettext_noop("no reason given"),
    gettext_noop("automatic failover is off at member %(member)s"),
    gettext_noop("the disk of member %(member)s does not write"),
    gettext_noop("member %(member)s stood still"),
    gettext_noop("member %(member)s is not in sync: epoch %(epoch)s has %(members)s on record"),
    gettext_noop(
        "the machine of member %(member)s has restarted since it came in sync, and acknowledgements did not wait "
        "for its disk, or its log was cut: the end of its log may be lost"
    ),
    gettext_noop(
        "the store of member %(member)s is an older copy: a part of its log is lost, and it has to follow first"
    ),
    gettext_noop(
        "the store of member %(member)s is a copy of an open store, or runs beside one: a part of its log may be lost, "
        "and it has to follow first"
    ),
    gettext_noop(
        "the store of member %(member)s is on a disk that did not take its log: the end of it may be lost, and it has "
        "to follow first"
    ),
    gettext_noop(
        "another process tells etcd that it is member %(member)s: one of the two has a copy of the other's store; stop "
        "that, and delete config/member.json in its store folder"
    ),
    gettext_noop(
        "the master of epoch %(epoch)s does not wait for every member of the set, so the set proves nothing of "
        "member %(member)s"
    ),
    gettext_noop("member %(member)s does not renew in etcd: automatic failover is off there"),
    gettext_noop(
        "member %(member)s does not renew in etcd: automatic failover is off there, or it has not begun its epoch"
    ),
    gettext_noop("etcd has no record of this broker name: `gantry admin ha init` begins it"),
    gettext_noop("etcd has group %(group)s on record, and the store of member %(member)s is of group %(own)s"),
    gettext_noop("etcd has store %(store)s on record as member %(member)s, and this store is %(own)s"),
    gettext_noop("store %(store)s has no number in etcd's record: `gantry admin ha join` gives it one"),
    gettext_noop(
        "etcd is cluster %(cluster)s and its record is of cluster %(own)s: it was restored from a backup, "
        "`gantry admin ha adopt` has to say whose log counts"
    ),
    gettext_noop(
        "etcd has epoch %(epoch)s on record, and member %(member)s has heard of epoch %(highest)s: if that lasts, "
        "etcd has lost changes, and `gantry admin ha adopt` has to say whose log counts"
    ),
    # runs that resend dead letters
    gettext_noop("This is a fault in GantryMQ. The web process's log has the details."),
    gettext_noop("The account %(name)s can no longer resend dead letters."),
    # what speaks against a promotion or a switchover
    gettext_noop("%(address)s is not a slave of %(broker)s that answers"),
    gettext_noop("no slave of %(broker)s answers"),
    gettext_noop("no master of %(broker)s answers: promote a slave instead"),
    gettext_noop("%(slave)s is not copying: %(why)s"),
    gettext_noop("%(state)s: %(why)s"),
    *SLAVE_STATES,
    gettext_noop("%(slave)s is %(count)s bytes behind: let it catch up first"),
    gettext_noop("%(master)s is of epoch %(epoch)s, %(slave)s of epoch %(own)s"),
    gettext_noop("%(address)s is there, and refuses to say what it is: stop it, or use an account that may ask"),
    gettext_noop("%(address)s knows of a rival, epoch %(rival)s: `gantry admin settle` decides first"),
    gettext_noop("%(address)s answers, and is the master of epoch %(epoch)s: use a switchover, or stop it first"),
    gettext_noop(
        "%(address)s answers, and is the master: use a switch-over if it is one of GantryMQ; fence one of Apache "
        "RocketMQ (`gantry admin config set --broker NAME brokerRole=SLAVE`), and stop it once its slave has its "
        "whole log"
    ),
    gettext_noop("%(address)s has %(count)s bytes more of the log than %(slave)s"),
    gettext_noop("%(slave)s lacks %(count)s bytes that were confirmed: %(names)s was in sync with its master"),
    gettext_noop("%(slave)s lacks %(count)s bytes that the master had %(heard)s s ago"),
    gettext_noop(
        "%(slave)s knows no epochs: it has not followed a master of GantryMQ yet. If Apache RocketMQ's was its master, "
        "use --from-apache"
    ),
    gettext_noop(
        "%(address)s was in sync with the master and does not answer: it may have messages that %(slave)s lacks"
    ),
    gettext_noop("%(address)s does not answer: it may have messages, or know of an epoch, that no other has"),
    gettext_noop("the name server %(address)s does not answer: it may know of a later epoch, or of a master"),
    gettext_noop("no slave was in sync at the master's last report: %(slave)s may lack acknowledged messages"),
    gettext_noop("%(slave)s is not in sync: its master named %(names)s last"),
    gettext_noop("%(slave)s has not heard of its master since it started: what it lacks is not known"),
    gettext_noop(
        "%(slave)s heard of its master %(heard)s s ago, and no name server saw the master end: after %(leave)s s a "
        "master acknowledges messages without a slave that is away"
    ),
    gettext_noop(
        "%(slave)s heard of its master %(heard)s s ago, and the master ended %(gone)s s ago: after %(leave)s s a "
        "master acknowledges messages without a slave that is away"
    ),
    gettext_noop("epoch %(epoch)s has begun, and the log of %(slave)s is of epoch %(own)s"),
    gettext_noop("epoch %(epoch)s has begun at %(master)s, and the log of %(slave)s is of epoch %(own)s"),
    gettext_noop("%(slave)s has heard of epoch %(epoch)s, and no Apache master begins one: omit --from-apache"),
    gettext_noop("epoch %(epoch)s has begun at a master of GantryMQ, and %(slave)s has none of it"),
    gettext_noop("%(slave)s lacks %(count)s bytes of its Apache master's log, which ended at %(offset)s"),
    gettext_noop(
        "%(slave)s lacks %(count)s bytes of older messages: its log begins at %(beginning)s, its Apache master's began "
        "at %(offset)s. Start it on a copy of the master's store"
    ),
    gettext_noop(
        "%(slave)s has not seen where the log of its Apache master ends for good, fenced for 10 s (it heard of it "
        "%(heard)s s ago): what that master acknowledged last may be missing"
    ),
    gettext_noop(
        "%(slave)s has %(count)s bytes more than its Apache master had when it was fenced: that one went on taking "
        "messages, and may have more"
    ),
)
# What is shown in other words than it is told.
_SAID_OTHERWISE = {
    r"the web process was killed during this run; it begins again": gettext_noop(
        "the web process was killed during this run; it starts again"
    ),
    r"the web process was killed during each try of this run": gettext_noop(
        "the web process was killed during each attempt of this run"
    ),
    r"Spark's Java process ended during the run \(killed by signal (?P<signal>\d+), .*": gettext_noop(
        "Signal %(signal)s killed Spark's Java process during the run, as machines do that "
        "have run out of memory. What was committed stays, and the next run continues there. "
        "If it happens again, see the run's log; give the machine more memory or the run "
        "less (report_memory)."
    ),
}


def _pattern_of(text: str) -> str:
    """What a sentence looks like with its values."""
    parts = re.split(r"%\((\w+)\)s", text)
    return "".join(
        f"(?P<{part}>{_VALUES[part]})" if number % 2 else re.escape(part.replace("%%", "%"))
        for number, part in enumerate(parts)
    )


_KNOWN = {re.compile(_pattern_of(text)): text for text in _SAID} | {
    re.compile(pattern): text for pattern, text in _SAID_OTHERWISE.items()
}
_OWN_MAX = max(text.count("; ") for text in _SAID)
_NEXT_MEMBER = re.compile(r"; (?=member \d+ \()")  # where a reason ends, which can be any text


def told_in_words(told: str, depth: int = 0) -> str:
    """The sentence in the language of the page, as are sentences among its values, and those that a semicolon joins;
    what is not known, or too deep within others, is shown as it came.
    """
    if depth > DEPTH_MAX:
        return told
    parts = [part for of_one in _NEXT_MEMBER.split(told) for part in _parts_of(of_one, depth)]
    return joined(parts, "; ") if any(isinstance(part, Sentence) for part in parts) else told


def _parts_of(told: str, depth: int) -> Iterator[str]:
    while told:
        ends = [found.start() for found in islice(re.finditer("; ", told), _OWN_MAX + 1)]
        for end in (len(told), *reversed(ends)):  # a sentence can have a semicolon of its own
            if known := _sentence_of(told[:end], depth):
                break
        yield known or told[:end]
        told = told[end + 2 :]


def _sentence_of(told: str, depth: int) -> Sentence | None:
    for pattern, text in _KNOWN.items():
        if found := pattern.fullmatch(told):
            return gettext(text) % {name: told_in_words(value, depth + 1) for name, value in found.groupdict().items()}
    return None
