"""A master with automatic failover that gives its role up: for a switchover that etcd asks for, or since it stops.

A release is only sent when nothing more is accepted and confirmed here, so a successor that does not wait has all that
was acknowledged. It decides as appliance.failover does for a master; renewals (register/renewals.py) and changes of the
set (master/slaves.py, published_set.py) are done elsewhere, so those actions are left out here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.epochs.turns import Turns
from appliance.broker.failover.on_record import Seen, as_decided
from appliance.broker.replication.master.holding import Holding
from appliance.broker.replication.master.proof import MasterProof
from appliance.broker.replication.master.slaves import SlaveService
from appliance.failover import view as decided
from appliance.failover.actions import (
    Action,
    Drain,
    DropSwitch,
    PublishSet,
    Refuse,
    Release,
    Renew,
    Require,
    Resume,
    StepDown,
    StopRequiring,
)
from appliance.failover.decide import decide
from appliance.failover.own import Own, Role
from appliance.failover.view import TermState
from appliance.process.awake import awake_s
from appliance.register.etcd import EtcdError
from appliance.register.register import Register, TakenBack
from appliance.register.term import Term, View
from appliance.settings.roles import BrokerConfig
from gantrymq.timeouts import timeout
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

LOOK_S = 0.25
DRAINING_LOOK_S = 0.02
STOP_S = 2.0  # for the slaves in sync to have all, and for etcd to be told, when this broker stops
NOT_TAKEN = "no other member has become the master"
ELSEWHERE = (Renew, Require, PublishSet, StopRequiring, StepDown, Refuse)  # a later epoch is heard of by the set, too


class MasterRoleParts(Protocol):
    """What it uses of its broker."""

    config: BrokerConfig
    store: MessageStore
    standing: StandingFile
    member: MembershipFile
    turns: Turns
    seen: Seen
    session: str


class MasterRole:
    """One opened master's. run() ends with the broker's turn."""

    def __init__(
        self, parts: MasterRoleParts, register: Register, slaves: SlaveService, proof: MasterProof, holding: Holding
    ) -> None:
        self._parts = parts
        self._register = register
        self._slaves = slaves
        self._proof = proof
        self._holding = holding
        self._role = Role.MASTER
        self._target = ""  # where the slave serves that is to be the next master
        self._switch = ""  # the id of the switch for that
        self._draining_since = 0.0
        self._has_drained = False
        self._released_at: float | None = None  # when etcd was known to have it
        self._cluster_id = self._term_revision = 0

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._look()
            await asyncio.sleep(DRAINING_LOOK_S if self._role is Role.DRAINING else LOOK_S)

    async def release(self) -> None:
        """This broker stops: have a successor begin at once, if there is one. Bounded; whatever fails costs a lease."""
        if not self._proof.is_proven or not self._slaves.has_slaves_in_sync:
            return
        self._holding.pin(True)
        try:
            async with timeout(STOP_S):
                if (await self._register.view()).pause is not None:  # for this very stop, perhaps
                    return
                await self._until_all_confirmed()
                self._switch = ""  # it ends whether one is asked for or not
                await self._put_release()
        except (TimeoutError, EtcdError) as exc:
            facts = {"event": "role_not_given_up", "why": str(exc) or "slaves in sync do not have all"}
            logger.warning("master stops without giving up its role", extra=facts)

    async def _until_all_confirmed(self) -> None:
        while True:
            if self._slaves.is_all_confirmed:
                return
            await asyncio.sleep(DRAINING_LOOK_S)

    # -- one look -----------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Read, decide, act. A look that fails is the next one's."""
        if self._role is Role.DRAINING and not self._has_drained:
            self._see_drained()
        sent = awake_s()
        try:
            read = await self._register.view()
            received = awake_s()
            found = self._as_decided(read, sent, received)
            if self._has_drained and found.term is not None and found.term.state is TermState.RELEASED:
                self._released_at = self._released_at or received  # its answer was lost, perhaps
            if read.term is not None and self._released_at is not None:
                await self._take_back(read, read.term, received)
                return
            for action in decide(found, self._own(found), received):
                await self._do(action, read)
        except EtcdError as exc:
            logger.debug("etcd can't be asked: %s", exc)  # the renewals say so

    def _as_decided(self, read: View, sent: float, received: float) -> decided.View:
        members = self._parts.seen.recent(read.figures, received)
        lease_s = self._parts.config.failover_lease_s
        found = as_decided(read, members, sent=sent, received=received, lease_s=lease_s)
        epochs, term = self._parts.standing.standing.epochs, read.term
        if term is not None and term.is_of(epochs.current, epochs.current_id) and term.session == self._parts.session:
            self._cluster_id, self._term_revision = read.cluster_id, read.term_revision
        return found

    def _own(self, found: decided.View) -> Own:
        """The set is as it is on record, so no change of it is decided here; a slave that is gone can't be a target."""
        parts, membership = self._parts, self._parts.member.membership
        epochs, end = parts.standing.standing.epochs, parts.store.max_physical_offset
        required = frozenset() if found.term is None else found.term.in_sync
        there = {slave.broker for slave in self._slaves.slaves}
        lost = frozenset(
            holder for holder in required if (said := found.members.get(holder.id)) and said.address not in there
        )
        return Own(
            id=membership.number,
            store_uuid=membership.store,
            group=membership.group,
            boot=membership.boot,
            session=parts.session,
            role=self._role,
            epoch=epochs.current,
            epoch_id=epochs.current_id,
            highest=epochs.highest,
            log_end=end,
            dispatched_end=end,
            confirmed=end,
            cluster_id=self._cluster_id,
            term_revision=self._term_revision,
            required=required,
            lost=lost,
            draining_since=self._draining_since,
            has_drained=self._has_drained,
            lease_s=parts.config.failover_lease_s,
            is_automatic=True,
        )

    # -- the actions --------------------------------------------------------------------------------------------------

    async def _do(self, action: Action, read: View) -> None:
        match action:
            case Drain():
                self._drain(action.target, read)
            case Release():
                await self._put_release()
            case DropSwitch():
                logger.warning("switchover is cancelled", extra={"event": "switch_dropped", "why": action.reason})
                await self._register.drop_switch(read, action.reason)
            case Resume():
                self._resume("no switchover is asked for any more")
            case _:
                assert isinstance(action, ELSEWHERE), f"no master does this: {action}"

    def _drain(self, target: int, read: View) -> None:
        assert read.term is not None and read.switch is not None
        self._switch = read.switch.id
        self._target = next((at for at, holder in read.term.holders.items() if holder.id == target), "")
        self._role, self._draining_since, self._has_drained = Role.DRAINING, awake_s(), False
        self._holding.pin(True)
        logger.warning("messages held back for a switchover", extra={"event": "draining", "slave": self._target})

    def _see_drained(self) -> None:
        """Confirm nothing more once the target, and all that are required, have everything."""
        since_s = awake_s() - self._draining_since
        if self._slaves.is_all_confirmed and self._holding.has_all(self._target, within_s=since_s):
            self._proof.give_up()
            self._has_drained = True

    def _resume(self, why: str) -> None:
        self._role, self._has_drained, self._target, self._switch = Role.MASTER, False, "", ""
        self._proof.take_back()
        self._holding.pin(False)
        logger.warning("master goes on", extra={"event": "master_goes_on", "why": why})

    async def _put_release(self) -> None:
        """Nothing is accepted or confirmed here from now on, whatever becomes of the transaction."""
        self._proof.give_up()
        epochs = self._parts.standing.standing.epochs
        end = self._parts.store.max_physical_offset
        try:
            is_given_up = await self._register.release(epochs.current, epochs.current_id, end, switch=self._switch)
        except TakenBack as exc:  # no release for it can be executed later
            self._resume(str(exc))
            return
        if is_given_up:
            self._released_at = awake_s()
            facts = {"event": "role_given_up", "epoch": epochs.current, "physical_offset": end}
            logger.warning("master gave up its role", extra=facts)

    async def _take_back(self, read: View, term: Term, now: float) -> None:
        """No other member has begun for a lease: have the same epoch again, unless one is faster."""
        epochs = self._parts.standing.standing.epochs
        assert self._released_at is not None
        if not term.is_of(epochs.current, epochs.current_id) or self._parts.turns.turn is not None:
            return  # the successor is heard of
        if now - self._released_at >= self._parts.config.failover_lease_s:
            if read.switch is not None:
                await self._register.drop_switch(read, NOT_TAKEN)
            self._released_at, self._register.takes_back = None, True
            self._resume(NOT_TAKEN)
