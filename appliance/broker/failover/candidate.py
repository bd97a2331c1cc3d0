"""A slave that may become the master by itself: it reads etcd twice a second, decides, and does what was decided.

What guards messages is in appliance.failover; here only the order counts. A transaction of unknown outcome is neither
taken for done nor for failed: the next look tells, and until then this slave may begin that epoch. Nothing is
acknowledged to the master of before from before the transaction is sent, until it is known to have failed. The epoch
begins when etcd is known to have it, with the log as it is when the broker has closed as a slave.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import secrets
from typing import Protocol

from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.epochs.turns import Cut, Promotion, Turns
from appliance.broker.failover.on_record import Seen, as_decided
from appliance.broker.failover.tellers import Tellers
from appliance.broker.replication.ha_client import HaClient
from appliance.broker.replication.in_sync_file import InSyncFile
from appliance.broker.replication.master_address import MasterAddress
from appliance.failover import view as decided
from appliance.failover.actions import Action, Begin, Follow, Forget, Hear, Refuse, TakeOver
from appliance.failover.decide import decide
from appliance.failover.grace import Grace
from appliance.failover.lease import Beats
from appliance.failover.older_copy import is_older_copy, known_end
from appliance.failover.own import Attempt, Doubt, Own, Role
from appliance.failover.view import Beat, Figures, TermState, following
from appliance.failover.winning import is_restored, why_doubted, why_never
from appliance.process.awake import awake_s
from appliance.process.json_file import StateFileError
from appliance.process.process_identity import runs
from appliance.register.etcd import EtcdError, OutcomeUnknown
from appliance.register.register import ID_BYTES, Register
from appliance.register.term import Term, View
from appliance.settings.replication import MASTER_ROLES
from appliance.settings.roles import BrokerConfig
from store.base.running_state import RunningFlags
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

LOOK_S = 0.25
TELL_EVERY = 8  # looks
STOOD_STILL_S = 1.0  # longer than a look should take to begin


class CandidateParts(Protocol):
    """What a candidate uses of its broker."""

    config: BrokerConfig
    store: MessageStore
    standing: StandingFile
    member: MembershipFile
    in_sync_file: InSyncFile
    turns: Turns
    seen: Seen
    session: str


class Candidate:
    """One opened slave's. run() ends with the broker's turn."""

    def __init__(
        self, parts: CandidateParts, register: Register, ha_client: HaClient, master: MasterAddress, own_address: str
    ) -> None:
        self._parts = parts
        self._register = register
        self._ha_client = ha_client
        self._master = master
        self._own_address = own_address
        self._session = parts.session
        self._beats = Beats()
        self._read: View | None = None  # as the register had it
        self._lost_at = -1  # the term's revision in an etcd that has lost later ones
        self._view: decided.View | None = None  # the same, to decide with
        self._attempt: Attempt | None = None
        self._deciding = contextlib.ExitStack()  # while an attempt may be executed
        self._has_ticked = True
        self._told: str | None = None  # the refusal that this member has told, in this turn
        self._has_compared = False  # this log with what etcd was told of it before this process tells anything
        self._began = parts.standing.standing.epochs.current, parts.store.max_physical_offset  # before it copies
        self._grace = Grace()
        self._tellers = Tellers(parts.session, lambda session: runs(session, parts.session))
        self.refusal = "etcd has not answered yet"  # why it does not become the master now
        self.why_never = self.refusal  # and why it would not if the master died now; "": it would

    async def run(self) -> None:
        """Look until cancelled."""
        looks, began = 0, awake_s()
        with self._deciding:
            while True:
                self._has_ticked = awake_s() - began < STOOD_STILL_S
                self._told = None if looks % TELL_EVERY == 0 else self._told
                await self.look()
                looks, began = looks + 1, awake_s() + LOOK_S
                await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Read, decide, act. A look that fails is the next one's."""
        may_tell = self._has_compared and self._tellers.may_tell(awake_s())
        why = self.why_never  # another one is told with the next look, so it is once a look at most
        if self._told != why and self._read is not None and (may_tell or self._read.is_restored):
            self._told = why if await self._tell(self._read) else None
        sent = awake_s()
        try:
            read = await self._register.view()
        except EtcdError as exc:
            self._refuse(f"etcd can't be asked: {exc}")
            self._grace.silent()
            return
        if self._has_lost_changes(read):
            self._refuse("etcd has an earlier record than before: `gantry admin ha adopt` has to say whose log counts")
            self.why_never = self.refusal
            return
        received = awake_s()
        await self._settle(read)
        self._tellers.look(read.figures.get(self._parts.member.membership.number), received)
        members = self._parts.seen.recent(read.figures, received)
        lease_s = self._register.lease_of(read.beat)
        found = as_decided(read, members, sent=sent, received=received, lease_s=lease_s)
        self._view = following(self._view, found)
        view = self._grace.granted(self._view)
        if await self._is_copy(view):  # first: until it is compared, it tells nothing, no rival either
            return
        if (rival := self._parts.standing.standing.rival) is not None:
            self._refuse(f"epoch {rival.number} was begun twice: an administrator has to choose")
            self.why_never = self.refusal
            return
        self.why_never = why_never(view, self.own())
        for action in decide(view, self.own(), received):
            await self._do(action)

    async def _settle(self, read: View) -> None:
        """A promotion by hand was executed, or never will be: until that is known, a master that handed over waits."""
        turns, term = self._parts.turns, read.term
        if turns.unsettled is None or term is None:
            return
        cluster_id, revision = turns.unsettled
        if read.cluster_id == cluster_id and read.term_revision <= revision:
            with contextlib.suppress(EtcdError):
                await self._register.settle(read)  # the next look tells
        elif term.id not in turns.asked:
            turns.unsettled = None
            logger.warning("promotion did not happen", extra={"event": "promotion_settled", "epoch": term.epoch})

    async def _is_copy(self, view: decided.View) -> bool:
        """A cut at the end that there is has the store open with a new boot: what is on record is not of it then."""
        doubt = self._doubt(view)
        if doubt is Doubt.NONE:
            return False
        own = self.own()
        self._refuse(why_doubted(own.id, doubt))
        self.why_never = self.refusal
        if self._parts.turns.turn is None:
            facts = {"event": "older_copy", "physical_offset": own.log_end, "why": self.refusal}
            logger.error("store is a copy", extra=facts)
            try:
                await asyncio.to_thread(self._parts.member.doubted, doubt)
            except StateFileError as exc:
                self._refuse(f"{self.refusal}; that can't be put on record: {exc}")
                return True
            self._parts.turns.ask(Cut(own.log_end))
        return True

    def _doubt(self, view: decided.View) -> Doubt:
        """Whether it is an older copy, until etcd has what it tells, since a term that has changed refuses that. By its
        own record: another etcd's, and one of before, does not know how long it was. Or runs beside the one that it is
        a copy of, and has its boot."""
        own, (epoch, end) = self.own(), self._began
        if is_restored(view) or view.ids.get(own.id) != own.store_uuid:
            return Doubt.NONE
        if self._tellers.is_twice and self._tellers.is_sure and self._tellers.boot == own.boot:
            return Doubt.COPY
        told = view.told.get(own.id)
        has_told = self._has_compared and told is not None and told.session == self._session
        if not has_told and is_older_copy(view, dataclasses.replace(own, epoch=epoch, log_end=end)):
            return Doubt.OLDER
        self._has_compared = True
        return Doubt.NONE

    async def _tell(self, read: View) -> bool:
        """For people, and for who is to go first. One member of etcd that stands still does not answer this, and says
        nothing of whether the master can renew at the others: the read does. False: the term has just changed."""
        try:
            return await self._register.tell(self._parts.member.membership.number, self._figures(), read)
        except EtcdError:
            return True  # in its turn

    def _has_lost_changes(self, read: View) -> bool:
        """Whether etcd went back to an earlier record, as it does with an old copy of its folder: until it changes."""
        before, self._read = self._read, read
        if before is None or read.cluster_id != before.cluster_id:
            self._lost_at = -1
        elif read.term_revision < before.term_revision:
            self._lost_at = read.term_revision
        return read.term_revision == self._lost_at

    def own(self) -> Own:
        parts, membership = self._parts, self._parts.member.membership
        epochs, end = parts.standing.standing.epochs, parts.store.max_physical_offset
        return Own(
            id=membership.number,
            store_uuid=membership.store,
            group=membership.group,
            boot=membership.boot,  # lasts over a clean stop, see Membership
            session=self._session,
            role=Role.FOLLOWING,
            epoch=epochs.current,
            epoch_id=epochs.current_id,
            highest=epochs.highest,
            log_end=end,
            dispatched_end=end,
            confirmed=parts.in_sync_file.record.confirmed_of(end),
            asked=frozenset(parts.turns.asked),
            attempt=self._attempt,
            master_end=self._ha_client.master_end,
            is_disk_healthy=self._is_disk_healthy,
            has_ticked=self._has_ticked,
            is_store_local=self._is_before_dead,
            priority=parts.config.broker_election_priority,
            lease_s=parts.config.failover_lease_s,
            doubt=membership.doubt,
            is_twice=self._tellers.is_twice,
            is_automatic=True,
        )

    @property
    def _is_before_dead(self) -> bool:
        """Whether the process that is the master on record is known to be dead, if it had this store."""
        term = None if self._read is None else self._read.term
        return term is not None and self._register.is_dead(term)

    @property
    def _is_disk_healthy(self) -> bool:
        return not self._parts.store.flags & ~RunningFlags.INDEX_ERROR

    def _figures(self) -> Figures:
        end = self._parts.store.max_physical_offset
        known = known_end(self._view, self.own()) if self._view is not None else (-1, -1)
        return Figures(
            self._own_address,
            self._parts.member.membership.boot,
            self._parts.standing.standing.epochs.current,
            end,
            end,
            is_healthy=self._is_disk_healthy,
            priority=self._parts.config.broker_election_priority,
            refusal=self.why_never,
            session=self._session,
            known_epoch=known[0],
            known_end=known[1],
        )

    # -- the actions --------------------------------------------------------------------------------------------------

    async def _do(self, action: Action) -> None:
        match action:
            case Hear():
                await self._hear(action)
            case Follow():
                self._follow()
            case TakeOver():
                await self._take_over(action)
            case Begin():
                assert self._read is not None and self._read.term is not None
                if self._attempt is not None or not self._parts.turns.is_deciding:
                    self._begin(self._read.term)  # otherwise the request that asks for it goes on
            case Forget():
                self._forget("a later change was executed instead")
            case Refuse():
                self._refuse(action.reason)
            case _:
                raise AssertionError(f"no slave does this: {action}")

    async def _hear(self, action: Hear) -> None:
        """On disk, before the new master is followed: the one before is refused from then on."""
        file = self._parts.standing
        try:
            await asyncio.to_thread(file.hear, action.epoch, action.epoch_id)
        except StateFileError as exc:
            self._refuse(f"a later epoch can't be put on record: {exc}")
            return
        self._ha_client.look_again()

    def _follow(self) -> None:
        """The record says where the master serves, and its slaves; haMasterAddress may name a dead one."""
        assert self._read is not None and self._read.term is not None
        term = self._read.term
        if term.ha:
            self._master.on_record(term.owner, term.ha)

    async def _take_over(self, action: TakeOver) -> None:
        read, view = self._read, self._view
        assert read is not None and read.term is not None and view is not None
        if self._parts.turns.turn is not None:  # of two turns the second is not taken: the epoch would have no master
            self._refuse("this broker reopens first")
            return
        was_asked = self._attempt is not None
        if not was_asked:
            self._ha_client.pause()  # nothing is acknowledged to the master of before from now on
            self._deciding.enter_context(self._parts.turns.deciding())
            self._beats = Beats()
        epoch_id = self._attempt.epoch_id if self._attempt is not None else secrets.token_hex(ID_BYTES)
        self._attempt = Attempt(epoch_id, view.cluster_id, action.term_revision, action.beat_revision)
        end = self._parts.store.max_physical_offset
        holders = self._holders(read.term, action)
        term = Term(
            action.epoch,
            epoch_id,
            self._own_address,
            tuple(sorted(holders)),
            read.term.level,
            holders,
            self._register.ha,
            self._session,
            TermState.OPENING,
        )
        beat = Beat(self._session, self._beats.next(awake_s()), self._parts.config.failover_lease_s)
        facts = {"event": "failover_attempt", "epoch": action.epoch, "why": action.reason, "physical_offset": end}
        logger.warning("slave takes over", extra=facts)
        try:
            out_ms = int((awake_s() - view.changed) * 1000)
            is_given = await self._register.succeed(read, term, beat, start=end, reason=action.reason, out_ms=out_ms)
        except OutcomeUnknown as exc:
            self._refuse(f"epoch {action.epoch} may be given to this slave, the next look tells: {exc}")
            return
        except EtcdError as exc:
            self._has_failed(str(exc), was_asked=was_asked)
            return
        if is_given:
            self._begin(term)
        else:
            self._has_failed("another change was executed first", was_asked=was_asked)

    def _has_failed(self, why: str, *, was_asked: bool) -> None:
        """This try. The other change may be an earlier try of this attempt, so only a look tells what became of it."""
        if was_asked:
            self._refuse(f"an earlier try may have been executed, the next look tells: {why}")
        else:
            self._forget(why)

    def _holders(self, term: Term, action: TakeOver) -> dict[str, decided.Holder]:
        """Where the members of the new set serve: the old one without its master. Each has all that was acknowledged,
        and is required from the beginning of the epoch."""
        own = self._parts.member.membership
        there = {at: term.holders[at] for at in term.in_sync if term.holders.get(at) in action.in_sync}
        return {**there, self._own_address: decided.Holder(own.number, own.boot)}

    def _begin(self, new: Term) -> None:
        """etcd has the epoch: become its master."""
        assert self._read is not None
        standing, term, epoch = self._parts.standing.standing, self._read.term, new.epoch
        in_sync = tuple(each for each in new.in_sync if each != self._own_address)
        untold = dict.fromkeys(filter(None, [self._ha_client.master_address, *standing.untold]))
        named = (*term.in_sync, term.owner) if term is not None else ()
        others = tuple(dict.fromkeys(each for each in named if each != self._own_address))
        role = standing.master_role or MASTER_ROLES[1]
        logger.warning("slave becomes the master", extra={"event": "failover", "epoch": epoch})
        self._parts.turns.ask(Promotion(role, tuple(untold), epoch - 1, others, new.id, in_sync))

    def _forget(self, why: str) -> None:
        self._attempt = None
        self._deciding.close()
        self._ha_client.resume()
        self._refuse(f"the epoch was not given to this slave: {why}")

    def _refuse(self, reason: str) -> None:
        """Log another kind of reason, not each second of the same one."""
        if reason.partition(":")[0] != self.refusal.partition(":")[0]:
            logger.info("slave does not take over", extra={"event": "no_failover", "why": reason})
        self.refusal = reason
