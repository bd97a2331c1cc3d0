"""What is told of a broker name's failover: the same for the shell and for the dashboard."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path

from appliance.failover.view import Figures
from appliance.failover.winning import why_not_in_set
from appliance.register.register import HA_INIT
from appliance.register.room import Trouble
from appliance.register.term import IN_SYNC, Term, View
from gantrymq.client.admin.failover import (
    FailoverChange,
    FailoverMember,
    FailoverPause,
    FailoverStatus,
    FailoverSwitch,
    FailoverTail,
)

CHANGES_TOLD = 20
NO_TROUBLE = Trouble()
UNSURE = "it is not known yet whether it could: what it said last may be old"
OPENING_S = 1.0  # from when the lease is over to the first message, about
SILENT = "it has not said for ten seconds whether it could: it is gone, or automaticFailover is off there"


def status_of(
    told: FailoverStatus,
    view: View,
    recent: Mapping[int, Figures],
    trouble: Trouble = NO_TROUBLE,
    unsure: Collection[int] = (),
) -> FailoverStatus:
    """Complete what a broker says of itself with the record. recent: what members have said of themselves lately.
    trouble: of etcd itself. unsure: members of which it is not known that it was lately."""
    term = view.term
    told = dataclasses.replace(told, etcd_trouble=trouble.text, is_etcd_refusing=trouble.is_refusing)
    if term is None:
        return dataclasses.replace(told, unknown=f"etcd has no record of {told.broker_name}: {HA_INIT}")
    recent = {number: said for number, said in recent.items() if number not in unsure}
    members = _members(view, term, recent, unsure)
    switch, pause = view.switch, view.pause
    best = _next(members, recent) if pause is None and not trouble.is_refusing else None
    addresses = {each.number: each.address for each in members}
    return dataclasses.replace(
        told,
        epoch=term.epoch,
        master=term.owner,
        state=str(term.state),
        since_ms=next((row.at_ms for row in reversed(view.history) if row.epoch == term.epoch), 0),
        in_sync=term.in_sync,
        is_complete=term.level == IN_SYNC,
        pause=None if pause is None else FailoverPause(*pause),
        switch=None if switch is None else FailoverSwitch(switch.target, addresses.get(switch.target, "")),
        members=members,
        changes=tuple(
            FailoverChange(row.epoch, row.owner, row.reason, row.at_ms, row.start, row.out_ms)
            for row in reversed(view.history[-CHANGES_TOLD:])
        ),
        next_master="" if best is None else best.address,
        next_in_s=0.0 if best is None else told.lease_s + OPENING_S,
        why_none=""
        if best is not None
        else f"{pause.who} has paused failover"
        if pause is not None
        else trouble.text
        if trouble.is_refusing
        else _why_none(view, members),
    )


def kept_tails(address: str, store: Path) -> tuple[FailoverTail, ...]:
    """What was cut from the log of this store and lies beside it. Reads a folder."""
    found = sorted(store.parent.glob(f"{store.name}.cut-*/commitlog"))
    return tuple(FailoverTail(address, str(each.parent)) for each in found)


def _members(
    view: View, term: Term, recent: Mapping[int, Figures], unsure: Collection[int]
) -> tuple[FailoverMember, ...]:
    """All that have joined; where one serves is known of those in the set, and of those that have told it. A number of
    before is left out where its broker has joined again, with a store of a later number."""
    known = {holder.id: address for address, holder in term.holders.items()}
    in_sync = {term.holders[address] for address in term.in_sync if address in term.holders}
    ids = {holder.id for holder in in_sync}
    found, is_begun = [], not term.is_unbegun
    for number in sorted({*view.stores.values(), *known}):
        said, address = recent.get(number), known.get(number, "")
        if said is None and (old := view.figures.get(number)) is not None:
            address = address or old[1].address
        is_master = address == term.owner
        is_serving = is_begun and not view.has_told(number)  # what it said as a slave is over, as far as is known
        is_quiet = is_master and (is_serving or said is None)
        refusal = "" if number in unsure else SILENT if said is None else said.refusal
        if not refusal and not is_master and number not in ids:  # whatever it told before the set's last change
            refusal = why_not_in_set(term.epoch, in_sync, number)
        elif number in unsure:
            refusal = UNSURE
        found.append(
            FailoverMember(
                number,
                address if said is None else said.address,
                in_sync=address in term.in_sync and address != "",
                is_master=is_master,
                log_end=-1 if said is None else said.log_end,
                has_told=said is not None,
                refusal="" if is_quiet else refusal,
            )
        )
    last = {each.address: each.number for each in found if each.address}  # they are in the order of their numbers
    return tuple(
        each for each in found if each.in_sync or each.has_told or last.get(each.address, each.number) == each.number
    )


def _next(members: tuple[FailoverMember, ...], recent: Mapping[int, Figures]) -> FailoverMember | None:
    """The order is that of appliance.failover.winning: longest log, priority, id."""
    able = [each for each in members if not each.is_master and each.has_told and not each.refusal]
    return max(able, key=lambda each: (each.log_end, -recent[each.number].priority, -each.number), default=None)


def _why_none(view: View, members: tuple[FailoverMember, ...]) -> str:
    if view.pause is not None:
        return f"{view.pause.who} has paused failover: {view.pause.why or 'no reason given'}"
    others = [each for each in members if not each.is_master or each.refusal]
    reasons = [f"member {each.number} ({each.address or 'address unknown'}): {each.refusal}" for each in others]
    return "; ".join(reasons) or "no other member has joined: `gantry admin ha join`"
