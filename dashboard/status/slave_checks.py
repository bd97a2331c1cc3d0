"""Checks of replication: slaves that are behind, gone or copy nothing, and brokers without a master. Pure."""

from __future__ import annotations

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.check import Check, Harm, Level
from dashboard.status.services import Services
from dashboard.status.words import in_words

RIVAL_PARTS = 3  # of the figure: number, id, address
NAMED_MAX = 5  # slaves named in one line
ON_THE_WAY = ("no master known", "connecting")  # states of a slave that has just started, too
UNTRIED_S, TRYING_S = 300.0, 60.0  # since its start: nothing was tried, or the first tries failed
NEEDS_A_PERSON = (
    "diverged",
    "left behind",
    "ahead of the master",
    "disk full",
    "epoch begun twice",
    "would lose confirmed messages",
)


def slave_problems(facts: BrokerFacts) -> list[Check]:
    """What a master says of its slaves, or a slave of itself."""
    name, services = facts.name, facts.services
    not_copying = None if _is_joining(facts) else _not_copying(name, services)
    found = (_contested(facts), _slave_behind(name, services), _slave_gone(name, services), not_copying)
    return [problem for problem in found if problem is not None]


def _contested(facts: BrokerFacts) -> Check | None:
    """Two masters began one epoch: both are named, and by whom."""
    rival = facts.told.get("epochRival", "none").split()
    if len(rival) != RIVAL_PARTS:
        return None
    number, rival_id, address = rival
    named = {"broker": facts.name, "epoch": number}
    return Check(
        Level.BAD,
        gettext("%(broker)s: epoch %(epoch)s was begun twice") % named,
        gettext("here as %(own)s, at %(address)s as %(rival)s; neither accepts messages")
        % {"own": facts.told.get("epochId", ""), "address": address, "rival": rival_id},
        gettext(
            "Two slaves were promoted independently, and their logs differ. Compare them, then "
            "choose which one counts: `gantry admin settle`. See “Two masters of one epoch” in the "
            "operations guide."
        ),
        name=gettext("%(broker)s: two masters") % {"broker": facts.name},
        harm=Harm.STOPS,
    )


def what_goes_on(broker: BrokerState, snapshot: Snapshot) -> str:
    """What clients do while a broker does not answer."""
    if broker.is_slave:
        return gettext("Its master goes on without it. What the master's disk loses until then is lost.")
    readable = [slave.name for slave in snapshot.slaves_of(broker.name) if slave.is_answering]
    if not readable:
        return gettext("Its messages are safe on disk. Clients use other brokers until it is back.")
    return gettext(
        "Its messages are safe on disk. Until it is back, producers use other brokers and consumers "
        "read from its slave %(slaves)s."
    ) % {"slaves": joined(readable[:NAMED_MAX])}


def without_master(snapshot: Snapshot) -> list[Check]:
    """Brokers of which only slaves are left."""
    masters = {broker.name for broker in snapshot.masters}
    slaves = [broker for broker in snapshot.brokers if broker.is_slave and broker.broker_name not in masters]
    return [
        Check(
            Level.BAD,
            gettext("%(broker)s has no master") % {"broker": name},
            gettext("slaves: %(slaves)s")
            % {"slaves": joined(slave.address for slave in slaves if slave.broker_name == name)},
            gettext(
                "Consumers read from its slaves, producers use other brokers. Start the master "
                "again. If it is lost, an administrator promotes a slave with “Master” on its page. "
                "See “Switchover and promotion” in the operations guide."
            ),
            harm=Harm.STOPS,
        )
        for name in sorted({slave.broker_name for slave in slaves})
    ]


def _slave_behind(name: str, services: Services) -> Check | None:
    behind = [slave for slave in services.slaves if not slave.in_sync]
    if not behind:
        return None
    texts = [
        gettext("%(slave)s is %(size)s and %(time)s behind its master")
        % {
            "slave": slave.address,
            "size": units.size(slave.behind_bytes),
            "time": units.duration(round(slave.behind_seconds)),
        }
        for slave in behind
    ]
    number = {"known": units.count(len(behind)), "all": units.count(len(services.slaves))}
    return Check(
        Level.WARN,
        gettext("%(broker)s: slaves are far behind") % {"broker": name},
        joined([gettext("%(known)s of %(all)s") % number, joined(texts[:NAMED_MAX])], ": "),
        gettext(
            "Messages that a slave lacks are lost with the master's disk. Check whether its disk or "
            "the network is slow; a new slave needs time to catch up. With SYNC_MASTER sends do not "
            "wait for it."
        ),
        name=gettext("%(broker)s: slaves behind") % {"broker": name},
    )


def _slave_gone(name: str, services: Services) -> Check | None:
    if not services.slaves_gone:
        return None
    hosts = joined(
        gettext("%(host)s %(time)s ago") % {"host": host, "time": units.duration(seconds)}
        for host, seconds in services.slaves_gone[:NAMED_MAX]
    )
    left = len(services.slaves)
    connected = gettext("%(count)s connected") % {"count": units.count(left)} if left else gettext("none connected")
    return Check(
        Level.WARN if left else Level.BAD,
        gettext("A slave of %(broker)s is disconnected") % {"broker": name},
        joined([hosts, connected], "; "),
        gettext(
            "Start it again, or check the network and its log. A slave that was removed for good is "
            "forgotten after a day, or when the master restarts."
        ),
        name=gettext("%(broker)s: slave disconnected") % {"broker": name},
        rules=(RuleKind.SLAVE_BEHIND,),
        about=tuple(gone_slave(host) for host, _ in services.slaves_gone),
    )


def gone_slave(host: str) -> str:
    """As rules call a slave that is known by its host only."""
    return f"slave at {host}"


def _is_joining(facts: BrokerFacts) -> bool:
    """Whether a slave has just started and is on its way to its master, which may be starting as well."""
    copying = facts.services.copying
    if copying is None or facts.boot_ms is None or copying.state not in ON_THE_WAY or copying.has_heard:
        return False
    return facts.at - facts.boot_ms / 1000 < (TRYING_S if copying.why else UNTRIED_S)


def _not_copying(name: str, services: Services) -> Check | None:
    copying = services.copying
    if copying is None or copying.is_fine:
        return None
    is_stuck = copying.state in NEEDS_A_PERSON
    state = in_words(copying.state)
    master = gettext("(master at %(address)s)") % {"address": copying.master} if copying.master else ""
    return Check(
        Level.BAD if is_stuck else Level.WARN,
        gettext("Slave %(name)s does not copy") % {"name": name},
        joined([joined([state, copying.why], ": "), master], " "),
        gettext("Action needed. See “Masters and slaves” in the operations guide.")
        if is_stuck
        else gettext("The slave keeps trying. Until then, what its master stores is on the master's disk only."),
    )
