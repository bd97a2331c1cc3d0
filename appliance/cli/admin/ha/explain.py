"""What a person wants to know of one broker name: who is the master, and who could take over if it died now. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.cli.admin.output import when
from appliance.failover.view import TermState
from appliance.register.register import HA_INIT, RESTORED
from appliance.register.term import IN_SYNC, Term, View
from gantrymq.client.admin.failover import FailoverMember, FailoverPause, FailoverStatus
from gantrymq.client.admin.members import Member


def explain(broker_name: str, view: View, members: list[Member], told: FailoverStatus | None = None) -> list[str]:
    """Sentences: the record, its owner, the other members. told: with automatic failover, who takes over by itself."""
    term = view.term
    if term is None:
        return [f"etcd has no record of {broker_name}: {HA_INIT}"]
    owner = next((member for member in members if member.address == term.owner), None)
    others = [member for member in members if member.address != term.owner]
    lines = [
        f"etcd has epoch {term.epoch} of {term.owner} on record. In sync: {', '.join(term.in_sync)} ({_level(term)})",
        _owner(term, owner),
        *(line for member in others if (line := _other_master(term, member))),
        *beware(told),
        *unfinished(told),
    ]
    if told is not None and told.is_automatic:
        return lines + by_itself(told)
    if view.is_restored:
        return [*lines, f"{RESTORED}. `gantry admin ha adopt` brings the record up to date"]
    candidates = [member for member in others if not why_not(term, member)]
    if candidates:
        best = max(candidates, key=lambda member: (member.end, member.address))
        lines.append(f"if {term.owner} died now: `gantry admin promote {broker_name}` makes {best.address} the master")
    else:
        lines.append(f"if {term.owner} died now: no member could take over without --accept-unknown or --force")
    lines += [f"{member.address}: {why_not(term, member) or 'can take over'}" for member in others]
    return lines


def beware(told: FailoverStatus | None) -> list[str]:
    """Why etcd itself refuses changes, or will."""
    return [f"beware: {told.etcd_trouble}"] if told is not None and told.etcd_trouble else []


def unfinished(told: FailoverStatus | None) -> list[str]:
    """What a promotion by hand has left half done, and how it ends. It is so for a moment of each one, too. A
    supervisor that sees the broker die releases it; one that has served waits for its whole set."""
    if told is None or told.state not in (TermState.OPENING, TermState.RELEASED) or told.is_complete:
        return []
    promote = f"gantry admin promote {told.broker_name}"
    said = next((each.refusal for each in told.members if each.is_master and each.refusal), "")
    begins = "It does so by itself, with automaticFailover, once it runs again"
    begins += "" if told.pause is None else " and the pause has ended"
    if not any(each.is_master for each in told.members):
        begins = "It has not joined, so it does not do so by itself"
    return [
        f"half done: epoch {told.epoch} was given to {told.master} by hand, and it has not begun it. {begins}"
        f"{f', but says: {said}' if said else ''}. If it does not, `{promote} --to {told.master} --accept-unknown` "
        f"finishes it; if it is lost for good, `{promote} --force` makes another member the master"
    ]


def by_itself(told: FailoverStatus) -> list[str]:
    """What automatic failover would do if the master died now, and why each other member would not take over."""
    if told.is_etcd_refusing:
        return [f"if {told.master} died now: no broker would take over, since etcd refuses every change"]
    if told.pause is not None:
        first = f"if {told.master} died now: no broker would take over, {paused(told.pause)}"
    elif told.next_master:
        first = (
            f"if {told.master} died now: {told.next_master} would take over by itself in about {told.next_in_s:.0f} s, "
            "or about 1 s when a supervisor sees it die"
        )
    else:
        first = f"if {told.master} died now: no broker would take over by itself"
    said = [each for each in told.members if not each.is_master or (each.refusal and not unfinished(told))]
    return [first, *(f"{each.address or f'member {each.number}'}: {_would(each, told)}" for each in said)]


def _would(member: FailoverMember, told: FailoverStatus) -> str:
    if member.refusal:
        return member.refusal
    return "would take over" if member.address == told.next_master else "could take over, after the better one"


def paused(pause: FailoverPause) -> str:
    until = "" if not pause.until_ms else f", until {when(pause.until_ms)} as planned"
    return f"{pause.who} has paused failover since {when(pause.since_ms)}{until}: {pause.why or 'no reason given'}"


def why_not(term: Term, member: Member) -> str:
    """Why the record does not show that a member has every acknowledged message; "" when it does."""
    return next(_reasons(term, member), "")


def _reasons(term: Term, member: Member) -> Iterator[str]:
    if not member.answers:
        yield "does not answer"
    if member.log_epoch != term.epoch or member.info.get("epochId") != term.id:
        yield f"its log is of epoch {member.log_epoch}"
    if term.level != IN_SYNC:
        yield "the master does not wait for every member of the set, so the set proves nothing"
    if member.address not in term.in_sync:
        yield "is not in sync"
    kept = term.still_holds(member.address, member.info.get("memberBoot", ""))
    if kept is False:
        yield "its machine has rebooted since the master last had it in sync, and may have lost the end of its log"
    elif kept is None and term.session:
        yield "has not joined, so it does not take over by itself: `gantry admin ha join`"
    elif kept is None and member.told_s_ago is None:
        yield (
            "has not heard of its master since it started, and may have lost the end of its log with the power: "
            "`gantry admin ha join` would tell"
        )


def _level(term: Term) -> str:
    return "a send waits for all of them" if term.level == IN_SYNC else "a send does not wait for all of them"


def _owner(term: Term, owner: Member | None) -> str:
    if owner is None or not owner.answers:
        return f"{term.owner} does not answer"
    if not owner.is_master:
        return f"{term.owner} answers, and is a slave of epoch {owner.log_epoch}: it has not begun the epoch on record"
    if (owner.log_epoch, owner.info.get("epochId")) != (term.epoch, term.id):
        return (
            f"{term.owner} is a master of epoch {owner.log_epoch}, not of the one on record: if etcd was restored from "
            "a backup, `gantry admin ha adopt` brings the record up to date"
        )
    state = owner.info.get("inSyncSetPublished", "none")
    return f"{term.owner} is the master of that epoch" + ("" if state == "on record" else f", and etcd: {state}")


def _other_master(term: Term, member: Member) -> str:
    if not member.is_master:
        return ""
    if member.log_epoch > term.epoch:
        return (
            f"{member.address} is a master of epoch {member.log_epoch}, later than the record: if etcd was restored "
            "from a backup, `gantry admin ha adopt` brings the record up to date"
        )
    return f"{member.address} is a master of epoch {member.log_epoch}, which is over: it becomes a slave"
