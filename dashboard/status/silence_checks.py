"""Checks of brokers that do not answer: a line for a host, with what the supervisor says of their processes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined
from dashboard.status.board import FRESH_S, BrokerState, Snapshot
from dashboard.status.check import Check, Harm, Level, page_of
from dashboard.status.process_checks import STATES, state_in_words
from dashboard.status.processes import ProcessFacts
from dashboard.status.slave_checks import what_goes_on

NAMED_MAX = 5  # brokers named in one line


def silent_problems(snapshot: Snapshot) -> list[Check]:
    """One problem for each host: it or its network is the cause where several of its brokers are silent."""
    by_host: dict[str, list[BrokerState]] = {}
    for broker in snapshot.brokers:
        if broker.is_silent(snapshot.at):
            by_host.setdefault(broker.host, []).append(broker)
    return [
        _of_host(host, brokers, snapshot) if len(brokers) > 1 else _of_broker(brokers[0], snapshot)
        for host, brokers in by_host.items()
    ]


def processes_of_silent(snapshot: Snapshot) -> list[ProcessFacts]:
    """Those that do not run, which is why their brokers are silent: told with them."""
    addresses = {broker.address for broker in snapshot.brokers if broker.is_silent(snapshot.at)}
    return [one for one in snapshot.processes if one.state in STATES and one.address and one.address in addresses]


def _of_broker(broker: BrokerState, snapshot: Snapshot) -> Check:
    restarted = gettext(
        "When its process ends, or has not answered for a while (worker_hang_s), it is started again; its log says why."
    )
    title = gettext("Slave %(name)s does not answer") if broker.is_slave else gettext("%(name)s does not answer")
    return Check(
        _level(broker, snapshot.at),
        title % {"name": broker.name},
        joined([joined([broker.address, broker.why or ""], ": "), *_since_when(broker, snapshot)], "; "),
        joined([what_goes_on(broker, snapshot), restarted], " "),
        link=page_of("broker", broker.name, "brokers"),
        rules=(RuleKind.BROKER_SILENT,),
        about=(broker.name,),
        harm=_harm(broker),
    )


def _of_host(host: str, brokers: Sequence[BrokerState], snapshot: Snapshot) -> Check:
    named = [
        joined([broker.name, joined([broker.why or "", *_since_when(broker, snapshot)])], ": ")
        for broker in brokers[:NAMED_MAX]
    ]
    return Check(
        max(_level(broker, snapshot.at) for broker in brokers),
        gettext("Brokers on %(host)s do not answer") % {"host": host},
        joined(named, "; "),
        gettext(
            "Check the host and its network first. A process that has ended, or has not answered for a while "
            "(worker_hang_s), is started again; its log says why."
        ),
        name=gettext("brokers on %(host)s") % {"host": host},
        rules=(RuleKind.BROKER_SILENT,),
        about=tuple(broker.name for broker in brokers),
        harm=min(_harm(broker) for broker in brokers),
    )


def _level(broker: BrokerState, now: float) -> Level:
    """One answer that came late is worth a look, and no alarm."""
    is_short = broker.facts is not None and now - broker.facts.at <= FRESH_S
    return Level.WARN if is_short or broker.is_slave else Level.BAD


def _harm(broker: BrokerState) -> Harm:
    return Harm.SLOWS if broker.is_slave else Harm.STOPS


def _since_when(broker: BrokerState, snapshot: Snapshot) -> list[str]:
    """Not in the title, which stays the same while minutes pass."""
    found = []
    if broker.failing_since:
        time = units.duration(int(snapshot.at - broker.failing_since))
        found.append(gettext("silent for %(time)s") % {"time": time})
    ended = (one for one in processes_of_silent(snapshot) if one.address == broker.address)
    return [*found, *(state_in_words(one) for one in ended)]
