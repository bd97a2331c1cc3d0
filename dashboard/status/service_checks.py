"""Checks of a broker's services: what of its own metrics means trouble, with evidence and what to do. Pure."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.status.board import BrokerFacts
from dashboard.status.problems import Level, Problem
from dashboard.status.services import ATTACK_REMEMBERED_S, REFUSALS_REMEMBERED_S, LaneCounts, Services
from dashboard.status.slave_checks import slave_problems

TIMER_BEHIND_MS = 5000  # normal is below 100 ms; a busy machine may take a second
NAMED_MAX = 5  # groups named in one line


def service_problems(facts: BrokerFacts) -> list[Problem]:
    """Everything the checks say about one broker's services."""
    services = facts.services
    return [
        problem
        for problem in (
            _not_saved(facts.name, services),
            _not_registered(facts.name, services),
            _out_of_files(facts.name, services),
            _attacked(facts.name, services),
            _refusing(facts),
            _timer(facts.name, services),
            _not_shared(facts.name, services),
            _suspended(facts.name, services),
            _disagreeing(facts.name, services),
            *slave_problems(facts.name, services),
        )
        if problem is not None
    ]


def _not_saved(name: str, services: Services) -> Problem | None:
    if not services.tables_not_saved:
        return None
    return Problem(
        Level.BAD,
        f"{name} can't save its tables",
        f"not on disk: {', '.join(services.tables_not_saved)}",
        "A restart would lose what changed since. Look at the disk's space and the folder's rights; it tries again.",
    )


def _not_registered(name: str, services: Services) -> Problem | None:
    known, all_ = services.name_servers_known, services.name_servers_all
    if known is None or all_ is None or known >= all_:
        return None
    return Problem(
        Level.BAD if known == 0 else Level.WARN,
        f"{name} is not registered with {'any' if known == 0 else 'every'} name server",
        f"{known} of {all_} know it",
        "Clients that ask the others don't find its topics. Look at those name servers and at the broker's log.",
    )


def _out_of_files(name: str, services: Services) -> Problem | None:
    ago_s = services.out_of_files_s
    if ago_s is None or ago_s > REFUSALS_REMEMBERED_S:
        return None
    return Problem(
        Level.BAD,
        f"{name} has too few files left and refuses connections",
        f"{units.count(services.connections_refused_for_files)} refused since its start, the last {ago_s} s ago; it "
        f"may have {units.count(services.open_files_max)} files and connections open",
        "See who opens so many connections, or start with a higher limit: `ulimit -n 65536` (systemd: "
        "LimitNOFILE=65536). The rest is kept for the store: messages on open connections are safe.",
    )


def _attacked(name: str, services: Services) -> Problem | None:
    ago_s = services.settings_refused_s
    if ago_s is None or ago_s > ATTACK_REMEMBERED_S:
        return None
    return Problem(
        Level.WARN,
        f"A client asked {name} for settings that no request may change",
        f"{units.count(services.settings_refused)} requests refused, the last from {services.settings_refused_from}, "
        f"{units.duration(ago_s)} ago",
        "Nothing was changed. Public attacks on RocketMQ begin so: if that address is none of yours, close the port to "
        "it, and ask for accounts (--accounts). The broker's log names the settings (settings_refused).",
    )


def _refusing(facts: BrokerFacts) -> Problem | None:
    if not facts.refusing:
        return None
    lanes = ", ".join(_lane_text(lane) for lane in facts.refusing)
    return Problem(
        Level.WARN,
        f"{facts.name} refuses requests",
        f"{lanes}; last at {units.moment(facts.refused_at * 1000)[11:19]} UTC",
        "More comes than is served. Clients try again; a slow disk, too little CPU or one wild client is the cause.",
    )


def _lane_text(lane: LaneCounts) -> str:
    parts = []
    if lane.rejected:
        parts.append(f"{units.count(lane.rejected)} rejected")
    if lane.expired:
        parts.append(f"{units.count(lane.expired)} expired")
    lost = f", {units.count(lane.oneway_refused)} of them one-way and lost" if lane.oneway_refused else ""
    return f"{lane.name} lane: {' and '.join(parts)}{lost}"


def _timer(name: str, services: Services) -> Problem | None:
    behind = services.timer_behind_ms
    if behind is None or behind < TIMER_BEHIND_MS:
        return None
    return Problem(
        Level.WARN,
        f"{name} delivers delayed messages late",
        f"{units.milliseconds(behind)} behind, {units.count(services.timers_pending)} wait",
        "It catches up by itself when the disk and the CPU have time. If it grows, spread what is due at one moment.",
    )


def _not_shared(name: str, services: Services) -> Problem | None:
    if not services.topics_not_shared:
        return None
    return Problem(
        Level.WARN,
        f"{name} could not create {units.count(services.topics_not_shared)} topics on the other brokers",
        "made here by a first message, and still missing elsewhere",
        "Each minute it tries again. This broker's log names topic and reason (topic_not_shared).",
    )


def _suspended(name: str, services: Services) -> Problem | None:
    if not services.suspensions:
        return None
    return Problem(
        Level.WARN,
        f"{name} holds back {units.count(services.suspensions)} slow consumer {_groups(services.suspensions)}",
        _named(services.suspended_groups, services.suspensions),
        "They were too far behind and get nothing until they are near again: move their position, or switch "
        "disableConsumeIfConsumerReadSlowly off.",
    )


def _disagreeing(name: str, services: Services) -> Problem | None:
    if not services.disagreements:
        return None
    return Problem(
        Level.WARN,
        f"Members of {units.count(services.disagreements)} consumer {_groups(services.disagreements)} disagree",
        f"{_named(services.disagreeing_groups, services.disagreements)} (at {name})",
        "Queues are shared among all members, so what only some of them want is skipped. Give each kind its own group.",
    )


def _groups(count: int) -> str:
    return "group" if count == 1 else "groups"


def _named(names: tuple[str, ...], count: int) -> str:
    shown = names[:NAMED_MAX]
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 and shown else "") if shown else f"{count} in all"
