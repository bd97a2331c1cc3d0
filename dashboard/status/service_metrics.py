"""The metrics of a broker's services, as the Overview shows them."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined, ngettext
from dashboard.status.board import BrokerFacts
from dashboard.status.metric import Metrics
from dashboard.status.services import Services
from dashboard.status.words import in_words, switch_in_words


def put_services(metrics: Metrics, prefix: str, facts: BrokerFacts, why: str | None) -> None:
    """Add one broker's services under `prefix`."""
    services, at, silent = facts.services, facts.at, why or gettext("the broker does not report it")

    def put(name: str, text: str, reason: str = silent) -> None:
        metrics.put(f"{prefix}.{name}", text, at, reason)

    all_, known = services.name_servers_all, services.name_servers_known
    put(
        "namesrv",
        units.UNKNOWN
        if known is None or all_ is None
        else gettext("%(known)s of %(all)s") % {"known": known, "all": all_},
    )
    put("connections", units.count(services.connections))
    put("parked", units.count(services.connections_parked))
    put("held", units.count(services.held_pulls))
    put("tx.pending", units.count(services.transactions_pending))
    put("tx.checked", _ago(services.transactions_checked_ms, at), why or gettext("no round of checks yet"))
    put("timer.pending", units.count(services.timers_pending))
    put("timer.next", _in(services.timer_next_due_ms, at), why or gettext("nothing is waiting"))
    put("timer.behind", units.milliseconds(services.timer_behind_ms))
    put("rejected", units.count(services.rejected))
    put("expired", units.count(services.expired))
    put("saved", units.UNKNOWN if all_ is None else joined(services.tables_not_saved) or gettext("all"))
    put("suspended", units.count(services.suspensions))
    put("disagreeing", units.count(services.disagreements))
    put("slaves", _slaves(services))
    put("tls", in_words(services.tls) or units.UNKNOWN)
    put("fast_path", switch_in_words(services.fast_path) or units.UNKNOWN)
    put("accounts", _accounts(services.accounts) or units.UNKNOWN)


def _accounts(told: str) -> str:
    number, _, word = told.partition(" ")
    if word != "accounts" or not number.isdecimal():
        return in_words(told)
    return ngettext("%(count)s account", "%(count)s accounts", int(number)) % {"count": number}


def _slaves(services: Services) -> str:
    if not services.role:
        return units.UNKNOWN
    in_sync = sum(slave.in_sync for slave in services.slaves)
    if not services.slaves:
        return gettext("none")
    return gettext("%(count)s of %(all)s in sync") % {"count": in_sync, "all": len(services.slaves)}


def _ago(at_ms: int | None, now: float) -> str:
    return units.ago(at_ms / 1000, now) if at_ms else units.UNKNOWN


def _in(at_ms: int | None, now: float) -> str:
    """A due time as distance: "in 3 s", "now" when it has come."""
    if not at_ms:
        return units.UNKNOWN
    left = at_ms / 1000 - now
    return (
        gettext("in %(time)s") % {"time": units.duration(int(left) or round(left, 1))} if left > 0 else gettext("now")
    )
