"""What must always hold, seen from above: the checker knows every log, every clock and every confirmed byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.broker.replication.master.proof import OPENING_LEASES
from appliance.failover.own import Role

if TYPE_CHECKING:
    from appliance.failover.view import Term
    from tests.appliance.failover.simulation.etcd import State
    from tests.appliance.failover.simulation.member import Process
    from tests.appliance.failover.simulation.world import World


AFTER_S = 5.0  # for better members to go first, and for requests that are long on their way


class Violation(AssertionError):
    """An invariant does not hold. The text has the seed, and the trace up to there."""


class Checker:
    """confirmed: each record that was ever confirmed, by its place in the log."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.confirmed: list[int] = []
        self.seen: list[int] = []  # the same, of what consumers have seen
        self.epochs: dict[int, str] = {}  # number to id of those that began
        self.opened = (0, 0)  # the latest epoch that opened, and where it starts
        self._yield_to, self._kept = "", 0
        self.is_lossy = False  # a person accepted a loss for the epoch that opens next
        self.take_overs = self.confirmations = self.losses_accepted = 0
        self.slowest_s = 0.0  # from healing to a master

    def confirms(self, process: Process, until: int) -> None:
        """A master has it from all that are required; consumers may see it, producers hear of it."""
        log, known, was = process.disk.log, self.confirmed, process.confirmed
        epoch, start = self.opened
        if self._is_given_up(process):
            return
        if process.disk.epochs.current < epoch and until > max(start, was):
            self.fail(f"{process} confirms up to {until} in an epoch that is over, epoch {epoch} starts at {start}")
        for at in range(was, min(until, len(known))):
            if log[at] != known[at]:
                self.fail(f"{process} confirms {log[at]} at {at}, where {known[at]} was confirmed before")
        if until > len(known):
            known.extend(log[len(known) : until])
        self.confirmations += until - was

    def takes(self, process: Process) -> None:
        """An epoch is given to it: it opens, or another one takes over. Where nothing else happens than that it hangs,
        or that masters are lost, this holds within twice as long as it may renew, and a lease."""
        world = self._world
        if world.mixture.name == "opening":
            world.at((2 * OPENING_LEASES + 1) * world.lease_s * 1.02 + AFTER_S, self._has_opened_or_left, process)

    def _has_opened_or_left(self, process: Process) -> None:
        term, members = self._world.etcd.state.term, self._world.members.values()
        is_still = process.member.process is process and term.session == process.session
        others = [each for each in members if each is not process.member and each.process and term.holder(each.id)]
        if is_still and process.role == Role.TAKEN and others:
            self.fail(f"{process} opens for ever, and no other member takes over")

    def is_taken_over(self, term: Term) -> None:
        """A later epoch than this is given out: not while its owner opens, which may take long."""
        owner = self._world.members.get(term.owner)
        process = None if owner is None else owner.process
        if self._world.mixture.name != "opening" or process is None or process.session != term.session:
            return
        if process.role == Role.TAKEN and not process.is_hanging:
            self.fail(f"{process} loses epoch {term.epoch} while it opens")

    def takes_uncleanly(self, process: Process, state: State) -> None:
        """A member that may lack something is given an epoch: a person accepted that for what etcd has at this moment,
        and has not taken it back."""
        switch, self.is_lossy = state.switch, True
        revisions = state.term_revision, state.beat_revision
        if switch is None or switch.is_planned or switch.target != process.member.id:
            self.fail(f"{process} takes over uncleanly, and etcd has {switch}")
        elif (switch.term_revision, switch.beat_revision) != revisions:
            self.fail(f"{process} takes over uncleanly by {switch}, and etcd has revisions {revisions} by now")

    def begins(self, process: Process) -> None:
        """An epoch is on disk: no other one of its number ever was."""
        epoch = process.disk.epochs.history[-1]
        if self.epochs.setdefault(epoch.number, epoch.id) != epoch.id:
            self.fail(f"{process} begins epoch {epoch.number}, which has begun before")

    def opens(self, process: Process) -> None:
        """A master serves from now on: it has everything that was confirmed."""
        log, known = process.disk.log, self.confirmed
        if self.is_lossy:
            self._gives_up(process)
        if log[: len(known)] != known:
            lost = common(log, known)
            self.fail(f"{process} opens with a log up to {len(log)}, and lacks what was confirmed at {lost}")
        current = process.disk.epochs.history[-1]
        if current.number > self.opened[0]:
            self.opened = (current.number, current.start)
        self.take_overs += 1
        self.is_only_master(process)

    def has_opened(self, before: tuple[int, int]) -> None:
        """A later epoch than before has."""
        if self.opened[0] <= before[0]:
            self.fail(f"no master after epoch {before[0]} though etcd has answered again and again")

    def is_only_master(self, process: Process) -> None:
        """No other process may prove that it is the master while this one may; and this one does its work."""
        if not process.is_proven():
            return
        if process.is_disk_bad or process.is_stuck:
            since, lease_s = max(process.broken_at, process.member.paused_until), self._world.lease_s
            if self._world.now > since + lease_s * 1.02:
                self.fail(f"{process} proves that it is the master, and has not worked since {since:.3f} s")
        for member in self._world.members.values():
            other = member.process
            if other is not None and other is not process and other.is_proven():
                self.fail(f"{process} and {other} both prove that they are the master")

    @property
    def has_accepted(self) -> bool:
        """Whether a person has let a member follow that may have lacked something."""
        return bool(self._yield_to)

    def _is_given_up(self, process: Process) -> bool:
        """A master that a person had another one follow uncleanly, also if nothing was lost at that moment: it may
        need nobody else to confirm, and producers hear nothing of it."""
        return self.has_accepted and process.disk.epochs.current < self.opened[0] and not process.is_proven()

    def shows(self, process: Process, until: int) -> None:
        """Consumers see it, and go on behind it: another record in its place would be skipped."""
        if self.losses_accepted or self._is_given_up(process):
            return  # a person gave up what they have seen
        seen, shown = self.seen, process.disk.log[:until]
        if shown[: len(seen)] != seen[: len(shown)]:
            self.fail(f"{process} shows another record at {common(shown, seen)} than was shown there before")
        seen.extend(shown[len(seen) :])

    def cuts(self, process: Process, end: int) -> None:
        """A log loses its tail: nothing that it knows as confirmed, unless a person gave that up."""
        if end < min(process.confirmed, len(process.disk.log)) and not process.disk.yields_to:
            self.fail(f"{process} cuts to {end}, and knows that all up to {process.confirmed} is confirmed")

    def _gives_up(self, process: Process) -> None:
        """A person accepted that this log counts, and told the others to yield to it."""
        self.is_lossy = False
        end = common(process.disk.log, self.confirmed)
        if end < len(self.confirmed):
            del self.confirmed[end:]
            self.losses_accepted += 1
            self.opened = (process.disk.epochs.current, end)
        self._yield_to, self._kept = process.disk.epochs.current_id, process.member.id
        self._world.at(self._world.rng.random() * 10.0, self.yields)

    def yields(self) -> None:
        """A person has the others give up what they know as confirmed."""
        for member in self._world.members.values():
            if self._yield_to and member.id != self._kept:
                member.disk.yields_to = self._yield_to

    def fail(self, why: str) -> None:
        world = self._world
        lines = [f"{at:9.3f} {text} {' '.join(map(str, facts))}" for at, text, facts in world.trace]
        for member in world.members.values():
            process = member.process
            said = "down" if process is None else f"{process}: {process.refusal or 'refuses nothing'}"
            lines.append(f"at the end {said}, log {len(member.disk.log)}, synced {member.disk.synced}")
        raise Violation(
            f"seed {world.seed}, step {world.steps}, {world.now:.3f} s: {why}\n"
            + "\n".join(lines)
            + f"\nagain: python -m tests.appliance.failover.simulation --mixture {world.mixture.name} "
            f"--seed {world.seed} --scenarios 1"
        )


def common(log: list[int], known: list[int]) -> int:
    """Up to where a log has what is known."""
    return next((at for at, record in enumerate(known) if at >= len(log) or log[at] != record), len(known))
