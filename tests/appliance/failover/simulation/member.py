"""A member: its disk, and one process of it after the other. The process does what decide() says, as the actor does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from appliance.broker.epochs.history import Epochs
from appliance.broker.replication.master.proof import OPENING_LEASES
from appliance.failover import actions as do
from appliance.failover import lease, older_copy, winning
from appliance.failover.decide import decide, is_own_term
from appliance.failover.grace import Grace
from appliance.failover.lease import Beats, Watched
from appliance.failover.own import Attempt, Own, Role
from appliance.failover.view import Beat, Figures, Holder, Term, TermState, View, following
from tests.appliance.failover.simulation import etcd
from tests.appliance.failover.simulation.copying import Copying
from tests.appliance.failover.simulation.on_record import why_not_on
from tests.appliance.failover.simulation.world import World

TRIES = 4  # of one counter
ANSWER_S = 0.7
PAUSE_S_MAX = 4.0  # between a decision and its effect
DEADLINE_S = 2.0  # of a call
HANGS_LOOK_S = 0.2


@dataclass(slots=True)
class Disk:
    """What outlives a process. log: records; each counts as one byte. synced: of it, what outlives the machine."""

    log: list[int] = field(default_factory=list)
    synced: int = 0
    epochs: Epochs = field(default_factory=Epochs)
    confirmed: int = 0
    clean_boot: str = ""  # in which the last process closed it
    master_of: str = ""  # the id of the epoch in which its process is the master, or was when it ended
    yields_to: str = ""


class Member:
    """clock: its offset and rate, anew with each boot."""

    def __init__(self, world: World, number: int, store: str, at: int = 0) -> None:
        self.world = world
        self.id, self.store = number, store
        self.at = at or number  # where it is found: a copy of a member's folder has another place
        self.disk = Disk()
        self.boots = self.processes = 0
        self.offset, self.rate = 0.0, 1.0
        self.process: Process | None = None
        self.paused_until = 0.0
        self.priority = world.rng.choice((5, 5, 5, 0))
        self.boot()

    def boot(self) -> None:
        """Its machine starts."""
        rng = self.world.rng
        self.boots += 1
        self.offset, self.rate = rng.uniform(0, 1e6), rng.uniform(0.99, 1.01)
        if rates := self.world.mixture.rates:
            self.rate = rates[self.id - 1]

    def start(self) -> None:
        """Unless its machine is gone for good."""
        if self.process is None and self.world.members.get(self.at) is self:
            self.processes += 1
            self.process = Process(self)
            self.disk.clean_boot = ""
            self.world.note("starts", self.process)

    def clock(self) -> float:
        return self.offset + self.world.now * self.rate

    def kill(self) -> Process | None:
        """The process is gone, the page cache is kept."""
        process, self.process = self.process, None
        self.paused_until = 0.0
        if process is not None:
            self.world.note("killed", process)
        return process

    def lose_power(self) -> None:
        """What was not synced may be lost."""
        self.kill()
        disk = self.disk
        kept = self.world.rng.randint(min(disk.synced, len(disk.log)), len(disk.log))
        self.world.note("loses power", self.id, "keeps", kept, "of", len(disk.log))
        del disk.log[kept:]
        disk.synced = min(disk.synced, kept)
        disk.epochs = disk.epochs.until(kept)
        self.boot()


class Process:
    """From a start to a kill."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.world = member.world
        self.disk = member.disk
        self.session = f"{member.at}:{member.boots}/{member.processes}"  # it begins with the boot of a machine
        self.role = Role.FOLLOWING
        self.clean_boot = self.disk.clean_boot
        self.has_compared = self.has_told = False  # its log with what etcd was told of it before; and what it is
        self.began = self.disk.epochs.current, len(self.disk.log)
        self.decided: View | None = None  # the view by which it was decided what is done
        self.seen: View | None = None  # as etcd had it
        self.view: View | None = None  # the same, to decide with
        self.beats = Beats()
        self.renewed_at = -1e9
        self.attempt: Attempt | None = None
        self.is_claiming = self.is_shortened = False
        self.before = Watched()  # the beat of the process before
        self.cluster_id = self.term_revision = 0
        self.lease_s = self.world.lease_s
        self.is_ready = self.is_busy = self.is_disk_bad = self.is_stuck = False
        self.broken_at = 0.0  # of the true clock, if it is: what was decided before is done by then
        self.taken = 0  # its number
        self.renews_until = 0.0  # while it opens; then it is taken for one that hangs
        self.is_hanging = False  # as it opens
        self.required: frozenset[Holder] = frozenset()
        self.sent_sets: dict[int, frozenset[Holder]] = {}  # term revision compared, to all members of what was sent
        self.confirmed = self.disk.confirmed
        self.draining_since, self.target = 0.0, 0
        self.is_over = False  # releases: nothing more is acknowledged
        self.asked_at = -1e9
        self.grace, self.heard_at = Grace(), self.clock()
        self.refusal = ""
        self.copying = Copying(self)
        self.world.soon(self, self.world.rng.random() * self.world.look_s, self.look)

    def __str__(self) -> str:
        return f"member {self.session} ({self.role}, epoch {self.disk.epochs.current})"

    def clock(self) -> float:
        return self.member.clock()

    @property
    def holder(self) -> Holder:
        return Holder(self.member.id, f"boot{self.member.boots}")

    def is_proven(self) -> bool:
        """Whether this process would serve now, as its own clock says."""
        if self.role != Role.MASTER:
            return False
        if self.world.rules.proof_outlives_pause and self.view is not None and self.view.pause is not None:
            return True
        return lease.is_proven(self.beats.first_sent, self.lease_s, self.clock())

    def break_part(self, part: str) -> None:
        if not self.is_disk_bad and not self.is_stuck:
            self.broken_at = self.world.now + PAUSE_S_MAX
        setattr(self, part, True)

    # -- looking at etcd ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Again and again: ask etcd, and look at the connections."""
        self.world.soon(self, self.world.look_s, self.look)
        self.copying.look()
        now = self.clock()
        if now - self.heard_at > DEADLINE_S:
            self.grace.silent()
        if now - self.asked_at >= ANSWER_S or self.asked_at < 0:
            self.asked_at = now
            self.world.call(self, None)
            if self.has_compared and self.role == Role.FOLLOWING:
                self.tell()
        elif self.view is not None and not (self.role == Role.FOLLOWING and self.world.mixture.decides_on_answers):
            self.consider()

    def tell(self) -> None:
        """members/<id>: with whatever age it has when it is read."""
        if self.view is None:
            return
        known_epoch, known_end = older_copy.known_end(self.view, self.own())
        figures = Figures(
            "",
            self.holder.boot,
            self.disk.epochs.current,
            len(self.disk.log),
            len(self.disk.log),
            is_healthy=not self.is_disk_bad,
            priority=self.member.priority,
            known_epoch=known_epoch,
            known_end=known_end,
        )
        if (self.member.at, 0) not in self.world.cuts:
            etcd_of_it = self.world.etcd_of(self.member.at)
            self.has_told |= etcd_of_it.tell(self.member.id, figures, self.view.term_revision)

    def answered(self, then: Callable[[bool, View], None], is_done: bool, view: View, stamp: float) -> None:
        """etcd's answer has arrived: of a read, or of a transaction, whose failure branch reads, too."""
        now, rules = self.clock(), self.world.rules
        self.asked_at = -1.0
        received = dataclasses.replace(view, received=now)
        if (
            now - view.sent > DEADLINE_S
        ):  # the caller has given it up; only a transaction's outcome still says something
            self._learn(received)
            then(is_done, received)
            return
        self.heard_at = now
        self.seen = following(self.seen, received)
        if rules.waits_from_asking and self.seen.changed == now:
            self.seen = dataclasses.replace(self.seen, changed=view.sent)
        if rules.waits_from_stamp:
            self.seen = dataclasses.replace(self.seen, changed=stamp)
        self.view = self.grace.granted(self.seen)
        self._learn(self.view)
        if self.world.owners_go_on and view.cluster_id == view.adopted_cluster_id:
            self._has_gone_on(self.view)
        if self.role == Role.FOLLOWING and not self._may_go_on(self.view):
            self._compare(self.view)
        then(is_done, self.view)
        self.consider()

    def _compare(self, view: View) -> None:
        """Until it has said something of itself, by a view that was true then: an older copy of the log has lost what
        it had."""
        if self.has_told or (view.group, view.ids.get(self.member.id)) != ("group", self.member.store):
            return
        self.has_compared, (epoch, end) = True, self.began
        if older_copy.is_older_copy(view, dataclasses.replace(self.own(), epoch=epoch, log_end=end)):
            self.world.note("is an older copy", self)
            self.member.boots += 1
            self.clean_boot = ""

    def _ask(self, change: etcd.Change, then: Callable[[bool, View], None] = lambda is_done, view: None) -> None:
        """A transaction in the etcd by which it was decided; what another one answers says nothing."""
        meant = self.cluster_id or (0 if self.decided is None else self.decided.cluster_id)

        def answered(is_done: bool, view: View) -> None:
            if view.cluster_id == meant or not self.world.rules.checks_cluster:
                then(is_done, view)

        self.world.call(self, change, answered)

    def _learn(self, view: View) -> None:
        """What the view says of own transactions whose answers were lost."""
        if not is_own_term(view, self.own()):
            return
        if view.term_revision >= self.term_revision:
            self.term_revision = view.term_revision
            for old in [each for each in self.sent_sets if each < view.term_revision]:
                del self.sent_sets[old]
        if view.beat is not None and view.beat.session == self.session:
            self._proves(view.beat.counter)

    def _proves(self, counter: int) -> None:
        if self.world.rules.proof_from_answer and counter in self.beats.pending:
            self.beats.pending[counter] = self.clock()
        self.beats.arrived(counter)
        self.world.checker.is_only_master(self)

    # -- deciding -----------------------------------------------------------------------------------------------------

    def own(self) -> Own:
        member, disk, epochs = self.member, self.disk, self.disk.epochs
        caught_up, lost = self.copying.caught_up_and_lost()
        return Own(
            id=member.id,
            store_uuid=member.store,
            group="group",
            boot=self.holder.boot,
            session=self.session,
            role=self.role,
            epoch=epochs.current,
            epoch_id=epochs.current_id,
            highest=epochs.highest,
            log_end=len(disk.log),
            dispatched_end=len(disk.log),
            confirmed=self.confirmed,
            clean_boot=self.clean_boot,
            attempt=self.attempt,
            first_sent=self.beats.first_sent,
            cluster_id=self.cluster_id,
            term_revision=self.term_revision,
            is_ready=self.is_ready,
            required=self.required,
            unsettled=frozenset().union(*self.sent_sets.values()),
            caught_up=caught_up,
            lost=lost,
            draining_since=self.draining_since,
            has_drained=self.is_over,
            is_disk_healthy=not self.is_disk_bad,
            has_ticked=not self.is_stuck,
            following=self.copying.following,
            is_store_local=not self._runs_elsewhere(),
            priority=member.priority,
            lease_s=self.world.lease_s,
            is_automatic=True,
        )

    def _runs_elsewhere(self) -> bool:
        """Whether the process of the term still runs, on a copy of this store or on what this is a copy of."""
        term = None if self.view is None else self.view.term
        twins = [each for each in self.world.members.values() if each.id == self.member.id and each is not self.member]
        return any(
            each.process is not None and term is not None and each.process.session == term.session for each in twins
        )

    def consider(self) -> None:
        """Decide, and do it a moment later: sometimes seconds later."""
        if self.role == Role.TAKEN and not self.is_ready and self.world.mixture.only_renews_while_opening:
            self._renew_while_opening()
            return
        if self.is_busy or self.view is None:
            return
        if self._may_go_on(self.view):
            self._go_on(self.view)
            return
        if self.role == Role.FOLLOWING:
            self._compare(self.view)  # also where it has just been told not to go on, as a broker's candidate does
        self.decided = self.view
        decided = decide(self.view, self.own(), self.clock())
        if not decided:
            return
        self.is_busy = True
        rng = self.world.rng
        delay = rng.random() * 0.005 if self.world.is_healed or rng.random() < 0.97 else rng.random() * PAUSE_S_MAX
        self.world.soon(self, delay, self._do, decided)

    def _do(self, decided: tuple[do.Action, ...]) -> None:
        self.is_busy = False
        for action in decided:
            HANDLERS[type(action)](self, action)

    def renew(self, action: do.Renew) -> None:
        now = self.clock()
        if now - self.renewed_at < lease.RENEW_EVERY_S * 0.9 or self.role == Role.FOLLOWING:
            return
        self.renewed_at = now
        counter = self.beats.next(now)
        self._try(counter, action.term_revision)
        self.world.soon(self, lease.TRY_S, self._try_again, counter, TRIES)

    def _renew_while_opening(self) -> None:
        """No more is looked at and decided while it closes as a slave and opens as the master."""
        if self.world.rules.renews_while_opening and (
            self.clock() < self.renews_until or not self.world.rules.bounds_opening
        ):
            self.renew(do.Renew(self.term_revision))

    def _try_again(self, counter: int, left: int) -> None:
        """At another endpoint, with the counter and its first sending as they were."""
        if counter in self.beats.pending and self.role != Role.FOLLOWING and left:
            self.world.soon(self, lease.TRY_S, self._try_again, counter, left - 1)
            if self.world.rules.proof_from_last_try:
                self.beats.pending[counter] = self.clock()
            self._try(counter, self.term_revision)

    def _try(self, counter: int, term_revision: int) -> None:
        change = etcd.renewal(term_revision, Beat(self.session, counter), self.clock())
        self._ask(change, lambda is_done, view: self._proves(counter) if is_done else None)
        if self.world.rules.trusts_unknown_renewal:
            self._proves(counter)

    def take_over(self, action: do.TakeOver) -> None:
        view, rules = self.decided, self.world.rules
        if self.role != Role.FOLLOWING or view is None:
            return
        if rules.checks_epoch:
            self.copying.stop()
        attempt, now = self.attempt, self.clock()
        epoch_id = attempt.epoch_id if attempt is not None else f"e{self.world.rng.randrange(1 << 48):x}"
        self.attempt = Attempt(epoch_id, view.cluster_id, action.term_revision, action.beat_revision)
        self.beats = self.beats if attempt is not None else Beats()
        beat = Beat(self.session, self.beats.next(now))
        term = Term(
            action.epoch,
            epoch_id,
            self.member.id,
            str(self.member.at),
            self.session,
            TermState.OPENING,
            action.in_sync,
            lease_s=self.world.lease_s,
        )
        beat_revision = action.beat_revision if rules.compares_beat else None
        self.world.note("asks for epoch", action.epoch, self, action.reason)
        change = etcd.take_over(view, beat_revision, term, beat, now, compares_switch=rules.compares_switch)

        def execute(state: etcd.State) -> etcd.State | None:
            changed = change(state)
            if changed is not None:
                self.world.checker.is_taken_over(state.term)
                if not action.is_clean:
                    self.world.checker.takes_uncleanly(self, state)
            return changed

        self._ask(execute)
        if rules.begins_before_known:
            self.cluster_id, self.required = view.cluster_id, action.in_sync
            self.role, self.is_ready = Role.MASTER, True
            self._begin_epoch(term)
            self.world.checker.opens(self)

    # -- a restarted owner, as brokers do it --------------------------------------------------------------------------

    def _may_go_on(self, view: View) -> bool:
        """Whether it has opened as the master of the epoch on record, as the folder says. A sole owner whose machine
        has restarted goes on, too, in a broker, with what its disk has left of what nobody else had: not here."""
        term, epochs = view.term, self.disk.epochs
        if not self.world.owners_go_on or self.role != Role.FOLLOWING or self.attempt is not None or term is None:
            return False
        if self.is_shortened or self.has_compared or view.group != "group" or winning.is_restored(view):
            return False
        is_its = (epochs.current, epochs.current_id, epochs.highest) == (term.epoch, term.epoch_id, term.epoch)
        is_alone = all(each.id == self.member.id for each in term.in_sync)
        is_kept = not is_alone or not term.in_sync.isdisjoint(self.own().holders)
        return is_its and is_kept and self.disk.master_of == term.epoch_id

    def _go_on(self, view: View) -> None:
        """In the same epoch, once the term has this process's session: no other has begun a later one then."""
        assert view.term is not None
        if view.term.session == self.session:
            return  # its answer is on its way
        why, why_not_yet = why_not_on(view, self, self.before)
        if why:
            self.world.note("does not go on", self, why)
            self.is_shortened, self.disk.master_of = True, ""
        if why or why_not_yet:
            return

        def claimed(term: Term) -> Term:
            others = (each for each in term.in_sync if each.id not in (term.owner, self.member.id))
            in_sync = frozenset({self.holder, *others})
            owner, state = self.member.id, TermState.OPEN
            return dataclasses.replace(term, owner=owner, in_sync=in_sync, session=self.session, state=state, end=-1)

        def then(is_done: bool, view: View) -> None:
            self._has_gone_on(view)

        self.is_claiming, self.decided = True, view
        self.world.note("goes on", self)
        self._change_term(view.term_revision, claimed, then)

    def _has_gone_on(self, view: View) -> None:
        """Also when the answer was lost, and a later look finds it."""
        term, epochs = view.term, self.disk.epochs
        if self.role != Role.FOLLOWING or term is None or not self.is_claiming or term.state != TermState.OPEN:
            return
        if (term.session, term.epoch_id) == (self.session, epochs.current_id) and epochs.highest == term.epoch:
            self._serve(view)

    def _serve(self, view: View) -> None:
        assert view.term is not None
        self.is_claiming = self.is_shortened = False
        self.before = Watched()  # the beat of the process before
        self.copying.stop()
        self.role, self.is_ready, self.is_over = Role.MASTER, True, False
        self.cluster_id, self.term_revision, self.lease_s = view.cluster_id, view.term_revision, view.term.lease_s
        self.required, self.sent_sets, self.beats = view.term.in_sync, {}, Beats()
        self.renewed_at = -1e9
        self.copying.begin()
        self.world.checker.opens(self)

    def begin(self, action: do.Begin) -> None:
        view = self.view
        if self.role != Role.FOLLOWING or self.attempt is None or view is None or view.term is None:
            return
        if view.term.epoch_id != self.attempt.epoch_id:
            return
        self.taken = view.term.epoch
        self.attempt, self.cluster_id, self.term_revision = None, view.cluster_id, action.term_revision
        self.role, self.is_ready, self.is_over, self.lease_s = Role.TAKEN, False, False, view.term.lease_s
        self.required, self.sent_sets = view.term.in_sync, {}
        self.renewed_at = self.clock()
        if view.beat is not None and view.beat.session == self.session:
            self._proves(view.beat.counter)
        if self.world.rules.checks_epoch:
            self.copying.stop()
        self.world.note("takes epoch", self, view.term.epoch)
        self.renews_until = self.clock() + OPENING_LEASES * self.lease_s
        self.world.checker.takes(self)
        takes_s = self.world.rng.random() * self.world.open_s
        self.world.soon(self, takes_s, self._begin_epoch, view.term, takes_s)

    def _begin_epoch(self, term: Term, takes_s: float = 0.0) -> None:
        """It has closed as a slave. The epoch is on disk before the first byte of it."""
        disk = self.disk
        if self.is_hanging:
            self.world.soon(self, HANGS_LOOK_S, self._begin_epoch, term, takes_s)
            return
        if self.role == Role.FOLLOWING or disk.epochs.is_overtaken(term.epoch, term.epoch_id):
            if self.world.rules.yields_when_overtaken:
                return
            self.role, self.required = Role.TAKEN, term.in_sync
        if self.world.rules.puts_epoch_on_record or self.world.rng.random() < 0.5:
            disk.epochs = disk.epochs.begun(len(disk.log), term.epoch - 1, term.epoch_id)
            disk.master_of = term.epoch_id
            self.world.checker.begins(self)
        self.renews_until = self.clock() + OPENING_LEASES * self.lease_s
        self.world.soon(self, takes_s, self._is_open, term)

    def _is_open(self, term: Term) -> None:
        """As the master; once etcd has it as open, too, it serves."""
        if self.is_hanging:
            self.world.soon(self, HANGS_LOOK_S, self._is_open, term)
        elif self.role == Role.TAKEN and self.taken == term.epoch:
            self.is_ready = True
            self.copying.begin()

    def forget(self, action: do.Forget) -> None:
        self.attempt = None

    def hear(self, action: do.Hear) -> None:
        self.disk.epochs = self.disk.epochs.heard(action.epoch, action.epoch_id)

    def mark_opened(self, action: do.MarkOpened) -> None:
        epoch = self.disk.epochs.current_id

        def opened(term: Term) -> Term:
            return dataclasses.replace(term, state=TermState.OPEN)

        def then(is_done: bool, view: View) -> None:
            if is_done and self.role == Role.TAKEN and self.disk.epochs.current_id == epoch:
                self.role = Role.MASTER
                self.world.note("opens", self)
                self.world.checker.opens(self)

        self._change_term(action.term_revision, opened, then)

    def _change_term(
        self, revision: int | None, make: Callable[[Term], Term], then: Callable[[bool, View], None] = lambda *_: None
    ) -> None:
        def after(is_done: bool, view: View) -> None:
            self._learn(view)
            then(is_done, view)

        self._ask(etcd.new_term(revision, make), after)

    def require(self, action: do.Require) -> None:
        self.required |= action.holders

    def publish(self, action: do.PublishSet) -> None:
        revision, in_sync = action.term_revision, action.in_sync
        if not self.world.rules.forgets_unknown_addition:
            self.sent_sets[revision] = self.sent_sets.get(revision, frozenset()) | in_sync
        self.world.note("publishes", self, *in_sync)
        if self.world.rules.trusts_unknown_removal:
            self.required &= in_sync
        compared = revision if self.world.rules.compares_term else None
        self._change_term(compared, lambda term: dataclasses.replace(term, in_sync=in_sync))

    def stop_requiring(self, action: do.StopRequiring) -> None:
        self.required -= action.holders
        self.copying.confirm()

    def drain(self, action: do.Drain) -> None:
        if self.role == Role.MASTER and not self.world.rules.stops_before_release:
            self.release(do.Release(self.term_revision, len(self.disk.log)))
        elif self.role == Role.MASTER:
            self.role, self.draining_since, self.target = Role.DRAINING, self.clock(), action.target

    def drop_switch(self, action: do.DropSwitch) -> None:
        name = action.id

        def change(state: etcd.State) -> etcd.State | None:
            if state.switch is None or state.switch.id != name:
                return None
            return dataclasses.replace(state, revision=state.revision + 1, switch=None)

        self._ask(change)

    def resume(self, action: do.Resume) -> None:
        if self.role == Role.DRAINING and not self.is_over:
            self.role = Role.MASTER
            self.world.checker.is_only_master(self)

    def release(self, action: do.Release) -> None:
        self._change_term(action.term_revision, lambda term: etcd.released(term, action.end))

    def step_down(self, action: do.StepDown) -> None:
        self.fall("", action.reason)

    def fall(self, told_by: str, reason: str) -> None:
        """At once a slave."""
        if self.role != Role.FOLLOWING:
            self.world.note("steps down", self, reason, told_by)
        self.role, self.is_ready, self.is_over = Role.FOLLOWING, False, False
        self.disk.master_of = ""
        self.cluster_id = self.term_revision = 0
        self.required, self.sent_sets = frozenset(), {}
        self.copying.stop()

    def follow(self, action: do.Follow) -> None:
        if self.role == Role.FOLLOWING:
            self.copying.follow(int(action.address or action.owner))

    def refuse(self, action: do.Refuse) -> None:
        self.refusal = action.reason


HANDLERS: dict[type, Callable[..., None]] = {
    do.Renew: Process.renew,
    do.TakeOver: Process.take_over,
    do.Begin: Process.begin,
    do.Forget: Process.forget,
    do.Hear: Process.hear,
    do.MarkOpened: Process.mark_opened,
    do.Require: Process.require,
    do.PublishSet: Process.publish,
    do.StopRequiring: Process.stop_requiring,
    do.Drain: Process.drain,
    do.DropSwitch: Process.drop_switch,
    do.Resume: Process.resume,
    do.Release: Process.release,
    do.StepDown: Process.step_down,
    do.Follow: Process.follow,
    do.Refuse: Process.refuse,
}
