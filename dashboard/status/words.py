"""Words that brokers and processes tell of themselves, for people to read: what is not listed is shown as it came."""

from __future__ import annotations

import re

from django.utils.translation import gettext_noop

from dashboard.language.sentences import gettext, ngettext
from dashboard.language.told import SLAVE_STATES

_KNOWN = {
    # processes
    "running": gettext_noop("running"),
    "starting": gettext_noop("starting"),
    "stopping": gettext_noop("stopping"),
    "stopped": gettext_noop("stopped"),
    "held": gettext_noop("drained and stopped"),
    "waiting": gettext_noop("waiting"),
    "restarting": gettext_noop("restarting"),
    "crash loop": gettext_noop("crash loop"),
    "done": gettext_noop("done"),
    "failed": gettext_noop("failed"),
    **{state: state for state in SLAVE_STATES},
    # why a master changed
    "init": gettext_noop("the first on record"),
    "adopt": gettext_noop("on record after a promotion"),
    "switchover": gettext_noop("switchover"),
    "the master before has released the term": gettext_noop("the master before has released the term"),
    # groups
    "unknown": gettext_noop("unknown"),
    "suspended": gettext_noop("suspended"),
    "no members": gettext_noop("no members"),
    "offline": gettext_noop("offline"),
    "stuck": gettext_noop("stuck"),
    "falling behind": gettext_noop("falling behind"),
    "catching up": gettext_noop("catching up"),
    "steady": gettext_noop("steady"),
    "up to date": gettext_noop("up to date"),
    "broadcasting": gettext_noop("broadcasting"),
    "clustering": gettext_noop("clustering"),
    "growing": gettext_noop("growing"),
    "shrinking": gettext_noop("shrinking"),
    # topics and messages
    "read, write": gettext_noop("read, write"),
    "read only": gettext_noop("read only"),
    "write only": gettext_noop("write only"),
    "retry": gettext_noop("retry"),
    "dead letter": gettext_noop("dead letter"),
    "system": gettext_noop("system"),
    "success": gettext_noop("success"),
    "commit": gettext_noop("commit"),
    "rollback": gettext_noop("rollback"),
    "resent before": gettext_noop("resent before"),
    # settings of a broker
    "none": gettext_noop("none"),
    "all": gettext_noop("all"),
    "on": gettext_noop("on"),
    "off": gettext_noop("off"),
    "disabled": gettext_noop("disabled"),
    "permissive": gettext_noop("permissive"),
    "enforcing": gettext_noop("enforcing"),
    # notices of alarms
    "fired": gettext_noop("fired"),
    "resolved": gettext_noop("resolved"),
    "test": gettext_noop("test"),
    "weekly": gettext_noop("weekly"),
    # units of charts
    "messages": gettext_noop("messages"),
    # spans of time
    "5 min": gettext_noop("5 min"),
    "15 min": gettext_noop("15 min"),
    "1 h": gettext_noop("1 h"),
    "6 h": gettext_noop("6 h"),
    "24 h": gettext_noop("24 h"),
    "7 d": gettext_noop("7 d"),
    # kinds in reports
    "topic": gettext_noop("topic"),
    "group": gettext_noop("group"),
    "normal": gettext_noop("normal"),
    "stored": gettext_noop("stored"),
    "forecast": gettext_noop("forecast"),
    "no cause reported": gettext_noop("no cause reported"),
    "custom time": gettext_noop("custom time"),
    # levels, and where a setting comes from
    "attention": gettext_noop("attention"),
    "problem": gettext_noop("problem"),
    "ok": gettext_noop("ok"),
    "default": gettext_noop("default"),
    "file": gettext_noop("file"),
    "changed while it runs": gettext_noop("changed while it runs"),
    "follows from others": gettext_noop("follows from others"),
    "set": gettext_noop("set"),
}


def in_words(told: str) -> str:
    """The word in the language of the page."""
    return gettext(_KNOWN[told]) if told in _KNOWN else told


def accounts_in_words(told: str) -> str:
    """What a broker tells of its accounts: "3 accounts", or that they are off."""
    number, _, word = told.partition(" ")
    if word != "accounts" or not number.isdecimal():
        return in_words(told)
    return ngettext("%(count)s account", "%(count)s accounts", int(number)) % {"count": number}


_DISK = re.compile(r"Total : ([\d.]+ \w+), Free : ([\d.]+ \w+)\.?")


def disk_in_words(told: str) -> str:
    """What a broker tells of its partition: "Total : 252.0 GiB, Free : 69.3 GiB."."""
    found = _DISK.fullmatch(told.strip())
    return gettext("%(free)s free of %(total)s.") % {"total": found[1], "free": found[2]} if found else told


_OFF = re.compile(r"off \((?P<why>.+)\)")
_WHY_OFF = {
    "it is a slave, which accepts no messages; copying uses it": gettext_noop(
        "it is a slave, which accepts no messages; copying uses it"
    ),
}


def switch_in_words(told: str) -> str:
    """ "on", or "off (why)", as brokers tell of what they could have switched on."""
    found = _OFF.fullmatch(told)
    if found is None:
        return in_words(told)
    why = found["why"]
    return gettext("off (%(why)s)") % {"why": gettext(_WHY_OFF[why]) if why in _WHY_OFF else why}
