"""Checks of a broker's services: what of its own metrics means trouble, with evidence and what to do. Pure."""

from __future__ import annotations

from django.urls import reverse

from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined, ngettext
from dashboard.status.board import BrokerFacts
from dashboard.status.check import Check, Harm, Level
from dashboard.status.services import ATTACK_REMEMBERED_S, REFUSALS_REMEMBERED_S, LaneCounts, Services
from dashboard.status.slave_checks import slave_problems

TIMER_BEHIND_MS = 5000  # normal is below 100 ms; a busy machine may take a second
NAMED_MAX = 5  # groups named in one line


def service_problems(facts: BrokerFacts) -> list[Check]:
    """Everything the checks say about one broker's services."""
    services = facts.services
    return [
        problem
        for problem in (
            _not_saved(facts.name, services),
            _damaged(facts.name, services),
            _not_registered(facts.name, services),
            _out_of_files(facts.name, services),
            _attacked(facts.name, services),
            _refusing(facts),
            _timer(facts.name, services),
            _not_shared(facts.name, services),
            _suspended(facts.name, services),
            _disagreeing(facts.name, services),
            *slave_problems(facts),
        )
        if problem is not None
    ]


def _not_saved(name: str, services: Services) -> Check | None:
    if not services.tables_not_saved:
        return None
    return Check(
        Level.BAD,
        gettext("%(broker)s can't save its tables") % {"broker": name},
        gettext("not on disk: %(tables)s") % {"tables": joined(services.tables_not_saved)},
        gettext(
            "A restart would lose later changes. Check the disk's space and the folder's "
            "permissions; the broker keeps trying."
        ),
        harm=Harm.LOSES,
    )


def _damaged(name: str, services: Services) -> Check | None:
    if not services.messages_damaged:
        return None
    return Check(
        Level.BAD,
        gettext("%(broker)s has damaged messages on its disk") % {"broker": name},
        gettext("%(count)s found since its start, the last at %(place)s")
        % {"count": units.count(services.messages_damaged), "place": services.message_damaged_last},
        gettext(
            "Consumers of this SDK skip them. `gantry store verify` lists all damage. Look at "
            "the disk, and send those messages again if a slave or their producer still has them."
        ),
        harm=Harm.LOSES,
    )


def _not_registered(name: str, services: Services) -> Check | None:
    known, all_ = services.name_servers_known, services.name_servers_all
    if known is None or all_ is None or known >= all_:
        return None
    return Check(
        Level.BAD if known == 0 else Level.WARN,
        (
            gettext("%(broker)s is not registered with any name server")
            if known == 0
            else gettext("%(broker)s is not registered with every name server")
        )
        % {"broker": name},
        gettext("%(known)s of %(all)s know it") % {"known": known, "all": all_},
        gettext(
            "Clients of the other name servers do not find its topics. Check those name servers and the broker's log."
        ),
        harm=Harm.STOPS,
    )


def _out_of_files(name: str, services: Services) -> Check | None:
    ago_s = services.out_of_files_s
    if ago_s is None or ago_s > REFUSALS_REMEMBERED_S:
        return None
    return Check(
        Level.BAD,
        gettext("%(broker)s has too few files left and rejects connections") % {"broker": name},
        gettext(
            "%(count)s rejected since its start, the last %(seconds)s s ago; it can have %(most)s "
            "files and connections open"
        )
        % {
            "count": units.count(services.connections_refused_for_files),
            "seconds": ago_s,
            "most": units.count(services.open_files_max),
        },
        gettext(
            "Check who opens so many connections, or start with a higher limit: `ulimit -n 65536` "
            "(systemd: LimitNOFILE=65536). The other files are reserved for the store: messages on "
            "open connections are safe."
        ),
        harm=Harm.STOPS,
    )


def _attacked(name: str, services: Services) -> Check | None:
    ago_s = services.settings_refused_s
    if ago_s is None or ago_s > ATTACK_REMEMBERED_S:
        return None
    return Check(
        Level.WARN,
        gettext("A client asked %(broker)s to change settings that no request can change") % {"broker": name},
        gettext("%(count)s requests rejected, the last from %(address)s, %(time)s ago")
        % {
            "count": units.count(services.settings_refused),
            "address": services.settings_refused_from,
            "time": units.duration(ago_s),
        },
        gettext(
            "Nothing was changed. Public attacks on RocketMQ begin like this: if that address is not "
            "yours, close the port to it and require accounts (--accounts). The broker's log names "
            "the settings (settings_refused)."
        ),
        harm=Harm.WILL,
    )


def _refusing(facts: BrokerFacts) -> Check | None:
    if not facts.refusing:
        return None
    lanes = joined(_lane_text(lane) for lane in facts.refusing)
    return Check(
        Level.WARN,
        gettext("%(broker)s rejects requests") % {"broker": facts.name},
        gettext("%(lanes)s; last at %(time)s UTC")
        % {"lanes": lanes, "time": units.moment(facts.refused_at * 1000)[11:19]},
        gettext(
            "More requests arrive than can be served. Clients retry. A slow disk, too little CPU or "
            "one busy client is the cause."
        ),
        harm=Harm.LOSES if any(lane.oneway_refused for lane in facts.refusing) else Harm.SLOWS,
    )


def _lane_text(lane: LaneCounts) -> str:
    parts = []
    if lane.rejected:
        parts.append(gettext("%(count)s rejected") % {"count": units.count(lane.rejected)})
    if lane.expired:
        parts.append(gettext("%(count)s expired") % {"count": units.count(lane.expired)})
    if lane.oneway_refused:
        parts.append(gettext("%(count)s of them one-way and lost") % {"count": units.count(lane.oneway_refused)})
    return gettext("%(lane)s lane: %(counts)s") % {"lane": lane.name, "counts": joined(parts)}


def _timer(name: str, services: Services) -> Check | None:
    behind = services.timer_behind_ms
    if behind is None or behind < TIMER_BEHIND_MS:
        return None
    return Check(
        Level.WARN,
        gettext("%(broker)s delivers delayed messages late") % {"broker": name},
        gettext("%(time)s behind, %(count)s waiting")
        % {"time": units.milliseconds(behind), "count": units.count(services.timers_pending)},
        gettext(
            "It catches up when the disk and the CPU have time. If the delay grows, spread messages "
            "that are due at the same time."
        ),
    )


def _not_shared(name: str, services: Services) -> Check | None:
    if not services.topics_not_shared:
        return None
    return Check(
        Level.WARN,
        gettext("%(broker)s could not create topics on the other brokers") % {"broker": name},
        ngettext(
            "%(count)s topic was created here by a first message and is still missing elsewhere",
            "%(count)s topics were created here by a first message and are still missing elsewhere",
            services.topics_not_shared,
        )
        % {"count": units.count(services.topics_not_shared)},
        gettext("The broker retries every minute. Its log names topic and reason (topic_not_shared)."),
    )


def _suspended(name: str, services: Services) -> Check | None:
    if not services.suspensions:
        return None
    return Check(
        Level.WARN,
        gettext("%(broker)s has suspended slow consumer groups") % {"broker": name},
        _named(services.suspended_groups, services.suspensions),
        gettext(
            "They were too far behind and receive nothing until they are near the end again: reset "
            "their offsets, or switch disableConsumeIfConsumerReadSlowly off."
        ),
        link=reverse("groups"),
        harm=Harm.STOPS,
    )


def _disagreeing(name: str, services: Services) -> Check | None:
    if not services.disagreements:
        return None
    return Check(
        Level.WARN,
        gettext("Members of consumer groups disagree"),
        gettext("%(groups)s (at %(broker)s)")
        % {"groups": _named(services.disagreeing_groups, services.disagreements), "broker": name},
        gettext(
            "Queues are shared among all members, so messages that only some of them subscribe to "
            "are skipped. Use a separate group for each subscription."
        ),
        link=reverse("groups"),
        harm=Harm.LOSES,
    )


def _named(names: tuple[str, ...], count: int) -> str:
    shown = names[:NAMED_MAX]
    more = count - len(shown)
    if not shown:
        return gettext("%(count)s in all") % {"count": count}
    if more <= 0:
        return joined(shown)
    return gettext("%(names)s and %(count)s more") % {"names": joined(shown), "count": more}
