"""Checks of the brokers' disks: full, filling, or full before long. Pure."""

from __future__ import annotations

from dataclasses import replace

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined
from dashboard.status.board import FULL_SOON_S, BrokerFacts, BrokerState, Snapshot
from dashboard.status.check import Check, Harm, Level, page_of
from dashboard.status.disk_metrics import disk_parts
from dashboard.status.words import disk_in_words

FULL_NOW_S = 3600.0


def disk_problems(snapshot: Snapshot) -> list[Check]:
    """What is wrong with disks: once for each, though several brokers keep their logs on it."""
    found: dict[tuple[str, ...], Check] = {}
    sharing: dict[tuple[str, ...], list[str]] = {}
    for broker in snapshot.brokers:
        facts = broker.facts
        check = None if facts is None or broker.is_silent(snapshot.at) else _problem(broker, facts)
        if check is None:
            continue
        disk = *broker.disk, check.title
        found.setdefault(disk, check)
        sharing.setdefault(disk, []).append(broker.name)
    return [_told(check, sharing[disk]) for disk, check in found.items()]


def _told(check: Check, brokers: list[str]) -> Check:
    """Of all brokers that keep their logs there."""
    _, *others = brokers
    also = gettext("On the same disk: %(brokers)s.") % {"brokers": joined(others)} if others else ""
    evidence, link = joined([check.evidence, also], " "), page_of("broker", brokers[0], "brokers")
    rules = (RuleKind.DISK_FULL_IN, RuleKind.DISK_USED)
    return replace(check, evidence=evidence, link=link, rules=rules, about=tuple(brokers))


def _problem(broker: BrokerState, facts: BrokerFacts) -> Check | None:
    """By the broker's own marks, and as it compares: at a mark nothing happens yet."""
    ratio, marks = facts.disk_ratio, facts.disk_marks
    if ratio is None or ratio <= min(marks):
        return _forecast(broker, facts)
    if ratio > marks.force and facts.disk_filled_by_others:
        return _filled_by_others(broker, facts)
    if ratio > marks.refuse:
        title = gettext("The disk is full on %(host)s")
        action = gettext("Writes are rejected above %(mark)s. Free some space or add a disk.")
        return _check(Level.BAD, Harm.STOPS, title, action % _mark(marks.refuse), broker, facts)
    if ratio > marks.force:
        title = gettext("The disk is nearly full on %(host)s")
        action = gettext("Above %(mark)s the oldest messages are deleted early. Free some space.")
        return _check(Level.BAD, Harm.LOSES, title, action % _mark(marks.force), broker, facts)
    title = gettext("The disk is filling on %(host)s")
    action = gettext("Above %(mark)s expired messages are cleaned at once.")
    return _check(Level.WARN, Harm.WILL, title, action % _mark(marks.clean), broker, facts)


def _check(level: Level, harm: Harm, title: str, action: str, broker: BrokerState, facts: BrokerFacts) -> Check:
    evidence = joined([_used(facts), _whose_bytes(facts)], " ")
    return Check(level, title % {"host": broker.host}, evidence, action, _name(broker, facts), harm=harm)


def _mark(ratio: float) -> dict[str, str]:
    return {"mark": units.mark(ratio)}


def _forecast(broker: BrokerState, facts: BrokerFacts) -> Check | None:
    """A disk that is roomy yet, and will not be for long."""
    if not facts.is_disk_full_soon:
        return None
    is_now = facts.disk_full_in_s is not None and facts.disk_full_in_s <= FULL_NOW_S
    level, within_s = (Level.BAD, FULL_NOW_S) if is_now else (Level.WARN, FULL_SOON_S)
    title = gettext("The disk will be full on %(host)s within %(time)s")  # the same from look to look
    action = gettext(
        "Writes are rejected above %(mark)s. Free some space, add a disk, or keep messages for a shorter time."
    )
    return Check(
        level,
        title % {"host": broker.host, "time": units.duration(round(within_s))},
        joined([_growing(facts), _full_in(facts), _whose_bytes(facts)], " "),
        action % _mark(facts.disk_marks.refuse),
        _name(broker, facts),
        harm=Harm.WILL,
    )


def _filled_by_others(broker: BrokerState, facts: BrokerFacts) -> Check:
    """No message is given up for bytes that are not the store's, so nothing but a person makes room."""
    refuse = facts.disk_marks.refuse
    is_full = facts.disk_ratio is not None and facts.disk_ratio > refuse
    title = (
        gettext("The disk is full of other programs' files on %(host)s")
        if is_full
        else gettext("The disk is nearly full of other programs' files on %(host)s")
    )
    action = gettext(
        "Writes are rejected above %(mark)s; messages that have not expired stay. Delete other "
        "programs' files or add disk space."
    )
    return _check(Level.BAD, Harm.STOPS if is_full else Harm.WILL, title, action % _mark(refuse), broker, facts)


def _used(facts: BrokerFacts) -> str:
    return gettext("%(broker)s: %(percent)s used.") % {
        "broker": facts.name,
        "percent": units.percent(facts.disk_ratio),
    }


def _full_in(facts: BrokerFacts) -> str:
    likely, earliest, latest = (
        None if seconds is None else units.duration(round(seconds))
        for seconds in (facts.disk_full_in_s, facts.disk_full_earliest_s, facts.disk_full_latest_s)
    )
    if latest is None and earliest is not None:
        return gettext("Full in %(time)s at the earliest.") % {"time": earliest}
    if earliest == latest or earliest is None:
        return gettext("Full in %(time)s at this rate.") % {"time": likely}
    return gettext("Full in %(earliest)s to %(latest)s at this rate.") % {"earliest": earliest, "latest": latest}


def _growing(facts: BrokerFacts) -> str:
    if facts.disk_growth is None or facts.disk_growth <= 0:
        return _used(facts)
    return gettext("%(broker)s: %(percent)s used, growing by %(size)s a second.") % {
        "broker": facts.name,
        "percent": units.percent(facts.disk_ratio),
        "size": units.size(facts.disk_growth),
    }


def _whose_bytes(facts: BrokerFacts) -> str:
    """The figures of the broker's page under the same names; of a broker that says less, what it says."""
    parts = disk_parts(facts)
    if parts is None:
        return disk_in_words(facts.disk_text)
    return gettext(
        "Messages %(messages)s, preallocated %(ahead)s, other files %(others)s, free %(free)s, reserved %(reserved)s: "
        "together %(whole)s."
    ) % {name: units.size(size) for name, size in parts.items()}


def _name(broker: BrokerState, facts: BrokerFacts) -> str:
    """One for each disk, however full it is, whatever filled it, and whichever of its brokers is away."""
    if not facts.disk_device:
        return gettext("disk of %(broker)s") % {"broker": broker.name}
    return gettext("disk %(device)s of %(host)s") % {"device": facts.disk_device, "host": broker.host}
