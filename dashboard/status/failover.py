"""Automatic failover of one broker name, as it was seen last: what rules watch and what the Overview says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined
from dashboard.language.told import told_in_words
from dashboard.status.check import Check, Harm, Level, page_of
from gantrymq.client.admin.failover import FailoverPause, FailoverStatus

SPARE = 1  # brokers in sync beyond the minimum: one can be lost, and messages are still taken
FORGOTTEN_S = 3600.0  # a pause this old was probably forgotten
SILENT_S = 3.0  # below the lease, so that it is said before the master stops


@dataclass(frozen=True, slots=True)
class Failover:
    """status: as a broker told it last from etcd; None: it never did. why: why the last look brought nothing new.

    answered_at: when etcd answered last. unfilled_since: no member could take over from then on; thin_since: the
    in-sync set has had no spare member from then on; full_since: etcd has been in trouble. All: seconds since 1970.
    """

    name: str
    status: FailoverStatus | None = None
    why: str = ""
    answered_at: float = 0.0
    unfilled_since: float | None = None
    thin_since: float | None = None
    full_since: float | None = None

    @property
    def watched(self) -> FailoverStatus | None:
        """What rules watch: nothing where an administrator promotes."""
        return self.status if self.status is not None and self.status.is_automatic else None

    @property
    def pause(self) -> FailoverPause | None:
        return None if self.watched is None else self.watched.pause


Failovers = Mapping[str, Failover]


def looked(before: Failover | None, name: str, told: FailoverStatus | None, why: str, now: float) -> Failover:
    """The look after `before`. told: None when no broker answers, and why."""
    was = before or Failover(name, answered_at=now)
    if told is None or told.unknown:
        return replace(was, why=why or (told.unknown if told is not None else ""))
    is_thin = len(told.in_sync) < told.in_sync_min + SPARE
    return Failover(
        name,
        told,
        answered_at=now,
        unfilled_since=(was.unfilled_since or now) if told.pause is None and not told.next_master else None,
        thin_since=(was.thin_since or now) if is_thin else None,
        full_since=(was.full_since or now) if told.etcd_trouble else None,
    )


def seconds_unfilled(failover: Failover, now: float) -> float | None:
    """How long no member could take over; 0: one could."""
    return None if failover.watched is None else _since(failover.unfilled_since, now)


def seconds_thin(failover: Failover, now: float) -> float | None:
    """How long the loss of one more member has meant that no messages are taken; 0: it does not."""
    return None if failover.watched is None else _since(failover.thin_since, now)


def seconds_of_etcd(failover: Failover, now: float) -> float | None:
    """How long etcd takes to answer a broker; while it does not answer, how long that is so."""
    told = failover.watched
    if told is None:
        return None
    return max(now - failover.answered_at, 0.0) if failover.why else max(told.etcd_ms, 0) / 1000


def seconds_full(failover: Failover, now: float) -> float | None:
    """How long etcd has refused changes, or has been seen to come there; 0: neither. Also where an administrator
    promotes: that is a change."""
    return None if failover.status is None else _since(failover.full_since, now)


def level_full(failover: Failover) -> Level:
    """How bad it is: without changes nothing goes on; until then there is time."""
    if failover.status is None or not failover.status.etcd_trouble:
        return Level.GOOD
    return Level.BAD if failover.status.is_etcd_refusing else Level.WARN


def seconds_paused(failover: Failover, now: float) -> float | None:
    """How long failover has been paused; 0: it is not."""
    if failover.watched is None:
        return None
    return _since(None if failover.pause is None else failover.pause.since_ms / 1000, now)


def _since(since: float | None, now: float) -> float:
    return 0.0 if since is None else max(now - since, 0.0)


def failover_problems(failovers: Failovers, now: float) -> list[Check]:
    """What a person has to do before the next master is lost."""
    found = []
    for each in failovers.values():
        if full := _full(each):
            found.append(full)
        if each.watched is not None:
            found += [check for check in (_silent(each, now), _unfilled(each), _forgotten(each, now)) if check]
            found += [_shared(each, address) for address in each.watched.shared_stores]
    return found


def _silent(failover: Failover, now: float) -> Check | None:
    silent_s = now - failover.answered_at
    if not failover.why or silent_s < SILENT_S:
        return None
    name = {"broker": failover.name}
    return Check(
        Level.BAD,
        gettext("%(broker)s: etcd does not answer") % name,
        joined([failover.why, units.duration(round(silent_s))], "; "),
        gettext(
            "A master that etcd does not confirm takes no messages, and no member takes over. Start "
            "etcd again; see “etcd is lost” in the failover runbook."
        ),
        rules=(RuleKind.ETCD_SLOW,),
        about=(failover.name,),
        link=page_of("broker", failover.name, "brokers"),
        harm=Harm.STOPS,
    )


def _full(failover: Failover) -> Check | None:
    told = failover.status
    if told is None or not told.etcd_trouble:
        return None
    name = {"broker": failover.name}
    level = level_full(failover)
    refuses = level is Level.BAD
    return Check(
        level,
        gettext("%(broker)s: etcd refuses every change") % name
        if refuses
        else gettext("%(broker)s: etcd is never compacted") % name,
        told_in_words(told.etcd_trouble),
        gettext("Without changes in etcd no master is confirmed, and no member takes over. Give it room."),
        rules=(RuleKind.ETCD_FULL,),
        about=(failover.name,),
        link=page_of("broker", failover.name, "brokers"),
        harm=Harm.STOPS if refuses else Harm.WILL,
    )


def _unfilled(failover: Failover) -> Check | None:
    if failover.unfilled_since is None or failover.status is None:
        return None
    name = {"broker": failover.name}
    return Check(
        Level.WARN,
        gettext("%(broker)s: no member could take over") % name,
        told_in_words(failover.status.why_none),
        gettext("If the master ended now, no messages would be taken until it is back."),
        rules=(RuleKind.NO_SUCCESSOR,),
        about=(failover.name,),
        link=page_of("broker", failover.name, "brokers"),
        harm=Harm.WILL,
    )


def _shared(failover: Failover, address: str) -> Check:
    named = {"broker": failover.name, "address": address}
    return Check(
        Level.WARN,
        gettext("%(broker)s: the store of %(address)s is not on a local disk") % named,
        gettext("its lock does not prove that the process before is dead"),
        gettext(
            "After a kill the broker waits for the whole lease before it is the master again. Move the store to a disk "
            "that only its machine uses."
        ),
        about=(failover.name,),
        link=page_of("broker", failover.name, "brokers"),
        harm=Harm.WILL,
    )


def _forgotten(failover: Failover, now: float) -> Check | None:
    pause = failover.pause
    if pause is None or now - pause.since_ms / 1000 < FORGOTTEN_S:
        return None
    named = {"broker": failover.name, "time": units.duration(round(now - pause.since_ms / 1000))}
    return Check(
        Level.WARN,
        gettext("%(broker)s: failover is paused") % named,
        joined([gettext("for %(time)s") % named, joined([pause.who, pause.why], ": ")]),
        gettext("No member takes over until it is resumed, on the broker's “Master” page or with `gantry admin ha`."),
        rules=(RuleKind.FAILOVER_PAUSED,),
        about=(failover.name,),
        link=page_of("broker", failover.name, "brokers"),
        harm=Harm.WILL,
    )


def not_elected() -> Check:
    """The appliance was started for three members, and there is no etcd that could elect the master."""
    return Check(
        Level.WARN,
        gettext("Masters are not elected: there is no etcd on this machine"),
        gettext("--replicas 3: an administrator promotes a slave when its master is lost"),
        gettext("Install etcd (Debian, Ubuntu: `apt install etcd-server`) and start `gantry up` again."),
        harm=Harm.WILL,
    )
