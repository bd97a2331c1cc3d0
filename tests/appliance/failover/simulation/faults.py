"""What happens to a group from outside: cuts, kills, power cuts, pauses, etcd slow, gone or restored, and people."""

from __future__ import annotations

import dataclasses

from appliance.failover.own import Role
from appliance.failover.view import Holder, Term, TermState
from tests.appliance.failover.simulation import etcd
from tests.appliance.failover.simulation.member import DEADLINE_S, PAUSE_S_MAX, Member, Process
from tests.appliance.failover.simulation.moves import Moves
from tests.appliance.failover.simulation.people import People
from tests.appliance.failover.simulation.world import ETCD, World

RESTART_S_MAX = 3.0
OFTEN = (0, 0.3, 1, 1, 5, 20)  # as a kind of fault has it in a scenario
FLAPS = 12  # of etcd: more than a lease and the grace, of the times in which it answers


class Faults:
    """stop() ends what it began; what people have to do after that is in heal()."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._people, self._moves = People(world), Moves(world)
        self._is_on = True
        self._weights: list[float] = []
        self._pace = world.mixture.pace or world.rng.choice((0.2, 0.5, 1.0))  # faults a second
        world.at(world.rng.random() * 2.0, self._next)
        world.at(world.rng.random() * 5.0, self._back_up)

    def _next(self) -> None:
        if not self._is_on:
            return
        world = self._world
        kinds = (  # and how often; each scenario has its own mixture
            (self._cut, 6),
            (self._kill, 5),
            (self._lose_power, 2),
            (self._pause_process, 4),
            (self._lose_requests, 3),
            (self._slow, 2),
            (self._break_disk, 1),
            (self._stop_cleanly, 1),
            (self._all_etcd_gone, 2),
            (self._restore, 0.4),
            (self._people.pause_failover, 1),
            (self._people.switch, 3),
            (self._people.switch_unclean, 0.4),
            (self._all_lose_power, 0.2),
            (self._stray, 1),
            (self._stall, 3),
            (self._cut_from_etcd, 2),
            (self._flap, 0),  # this and the next ones need a time without others
            (self._lose_master, 0),
            (self._hang, 0),
            (self._people.switch_unclean_again, 0.3),
            (self._moves.see_another_etcd, 0.3),
            (self._moves.put_older_copy_back, 0.3),
            (self._moves.rotate, 0.3),
            (self._moves.run_copy, 0),
        )
        if not self._weights and (wanted := world.mixture.faults):
            self._weights = [wanted.get(kind.__name__.strip("_"), 0) for kind, _ in kinds]
        elif not self._weights:
            self._weights = [weight and weight * world.rng.choice(OFTEN) + 0.01 for _, weight in kinds]
        act = world.rng.choices([kind for kind, _ in kinds], self._weights)[0]
        world.note("--", act.__name__.strip("_"))
        act()
        world.at(world.rng.expovariate(self._pace), self._next)

    def _someone(self) -> Member:
        """Often the master: the others are less interesting."""
        world = self._world
        masters = [member for member in world.members.values() if _role(member) == Role.MASTER]
        if masters and world.rng.random() < 0.6:
            return world.rng.choice(masters)
        return world.rng.choice(list(world.members.values()))

    # -- the network --------------------------------------------------------------------------------------------------

    def _cut(self) -> None:
        """One member from etcd, from the others, or from both; one way or both ways."""
        world, member = self._world, self._someone()
        others = [each for each in (ETCD, *world.members) if each != member.at]
        chosen = (
            {ETCD} if world.rng.random() < 0.35 else set(world.rng.sample(others, world.rng.randint(1, len(others))))
        )
        cuts = {(member.at, other) for other in chosen} | {(other, member.at) for other in chosen}
        if world.rng.random() < 0.3:
            way = world.rng.random() < 0.5
            cuts = {cut for cut in cuts if (cut[0] == member.at) == way}
        world.note("cut", *cuts)
        world.cuts |= cuts
        world.at(world.rng.expovariate(0.15), world.cuts.difference_update, cuts)

    def _cut_from_etcd(self) -> None:
        """A master that clients and slaves still reach."""
        world, member = self._world, self._someone()
        cuts = {(member.at, ETCD), (ETCD, member.at)}
        world.cuts |= cuts
        world.at(world.lease_s * (0.5 + 2 * world.rng.random()), world.cuts.difference_update, cuts)

    def _stall(self) -> None:
        """Requests of a member are executed late, or answered late; soon none arrives any more."""
        world, member = self._world, self._someone()
        link = (member.at, ETCD) if world.rng.random() < 0.4 else (ETCD, member.at)
        world.stalls[link] = 4.0
        world.note("stalled", *link)
        world.at(world.rng.random() * 6.0, world.stalls.pop, link, None)
        if link[0] == ETCD and world.rng.random() < 0.7:
            cuts = {(member.at, ETCD)}
            world.at(world.rng.random() * 2.0, world.cuts.update, cuts)
            world.at(world.lease_s * 2, world.cuts.difference_update, cuts)

    def _lose_requests(self) -> None:
        self._world.loss = self._world.rng.choice((0.05, 0.3))
        self._world.at(self._world.rng.random() * 10, self._restore_network)

    def _slow(self) -> None:
        self._world.slowness = self._world.rng.choice((3.0, 20.0, 100.0))
        self._world.at(self._world.rng.random() * 6, self._restore_network)

    def _restore_network(self) -> None:
        self._world.loss, self._world.slowness = 0.0, 1.0

    def _stray(self) -> None:
        process, other = self._someone().process, self._someone()
        if process is not None and process.member is not other and process.role == Role.MASTER:
            for at in range(20):
                self._world.soon(process, at * 0.2, process.copying.stray, Holder(other.id, f"boot{other.boots}"))

    # -- members ------------------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        world, member = self._world, self._someone()
        process = member.kill()
        if process is not None and world.rng.random() < 0.5:
            Witness(world, process)
        world.at(world.rng.random() * world.rng.choice((0.2, RESTART_S_MAX)), member.start)

    def _lose_master(self) -> None:
        """For longer than a lease: another one becomes the master, or is about to."""
        world = self._world
        for member in [each for each in world.members.values() if _role(each) == Role.MASTER]:
            member.kill()
            world.at(world.lease_s * (1.5 + world.rng.random()), member.start)

    def _hang(self) -> None:
        """Who is about to be the master does not come to it; the thread of its renewals goes on."""
        world = self._world
        taken = [each.process for each in world.members.values() if _role(each) == Role.TAKEN]
        for process in [each for each in taken if each is not None and not each.is_hanging]:
            world.note("hangs", process)
            process.is_hanging = True

    def _stop_cleanly(self) -> None:
        member = self._someone()
        if member.kill() is not None:
            member.disk.synced, member.disk.clean_boot = len(member.disk.log), f"boot{member.boots}"
        if self._world.rng.random() < 0.5:
            member.boot()
        self._world.at(self._world.rng.random() * RESTART_S_MAX, member.start)

    def _lose_power(self) -> None:
        member = self._someone()
        member.lose_power()
        self._world.at(self._world.rng.random() * RESTART_S_MAX, member.start)

    def _all_lose_power(self) -> None:
        for member in self._world.members.values():
            member.lose_power()
            self._world.at(self._world.rng.random() * RESTART_S_MAX, member.start)

    def _pause_process(self) -> None:
        world, member = self._world, self._someone()
        member.paused_until = world.now + world.rng.choice((0.3, 2.0, 6.0, 12.0)) * world.rng.random()
        if not world.rules.witness_reaps and member.process is not None:
            Witness(world, member.process)  # it answers nothing: it is taken for dead

    def _break_disk(self) -> None:
        """Or its event loop stands still, and the thread of the renewals does not."""
        world, process = self._world, self._someone().process
        if process is not None:
            part = ("is_disk_bad", "is_stuck")[world.steps % 2]
            world.note("broken", process, part)
            process.break_part(part)
            world.at(world.rng.random() * world.mixture.broken_s, setattr, process, part, False)

    # -- etcd ---------------------------------------------------------------------------------------------------------

    def _all_etcd_gone(self) -> None:
        world = self._world
        cuts = {(member, ETCD) for member in world.members}
        world.cuts |= cuts
        world.at(world.rng.random() * 12, world.cuts.difference_update, cuts)

    def _flap(self) -> None:
        """The master is gone, and all of etcd is silent again and again: for longer than a look waits for an answer,
        for shorter than a lease. In the times between, a successor has to come."""
        world = self._world
        masters = [member for member in world.members.values() if _role(member) == Role.MASTER]
        if not masters or len(world.etcd.state.term.in_sync) < len(world.members):
            if self._is_on:
                world.at(1.0, self._flap)
            return
        world.rng.choice(masters).kill()
        opened, cuts, after_s = world.checker.opened, {(member, ETCD) for member in world.members}, 0.0
        for _ in range(FLAPS):
            silent_s, answers_s = world.rng.uniform(DEADLINE_S + 0.2, world.lease_s), world.rng.uniform(0.6, 1.5)
            world.at(after_s, world.cuts.update, cuts)
            world.at(after_s + silent_s, world.cuts.difference_update, cuts)
            after_s += silent_s + answers_s
        world.at(after_s, world.checker.has_opened, opened)

    def _back_up(self) -> None:
        store = self._world.etcd
        store.backups = [*store.backups[-3:], store.state]
        if self._is_on:
            self._world.at(self._world.rng.random() * 10.0, self._back_up)

    def _restore(self) -> None:
        world = self._world
        if world.etcd.backups and world.etcd.state.cluster_id == world.etcd.state.adopted:
            world.etcd.restore(world.rng.choice(world.etcd.backups))
            world.etcd.backups.clear()

    def stop(self) -> None:
        """No more of them."""
        self._is_on = self._moves.is_on = False

    def heal(self) -> None:
        """All works again, and people have done what is theirs to do."""
        world = self._world
        world.cuts.clear()
        world.stalls.clear()
        world.etcds.clear()
        self._restore_network()
        world.staleness = world.open_s = 0.0
        world.note("-- heals")
        world.checker.yields()
        world.is_healed = True
        world.run_until(world.now + PAUSE_S_MAX)  # the last ones of these end
        world.run_until(max([world.now, *(member.paused_until for member in world.members.values())]))
        for member in world.members.values():
            member.start()
            assert member.process is not None
            member.process.is_disk_bad = member.process.is_stuck = member.process.is_hanging = False
        state = world.etcd.state
        world.etcd.execute(etcd.operators(pause=None, switch=None))
        if state.cluster_id != state.adopted:
            self._adopt()

    def _adopt(self) -> None:
        """A person asks all members, and chooses the log of the latest epoch that goes furthest."""
        world = self._world
        members = list(world.members.values())
        known = world.checker.confirmed
        serving = [each for each in members if _role(each) == Role.MASTER]  # it may confirm more meanwhile
        best = max(serving or members, key=lambda each: (each.disk.epochs.current, len(each.disk.log)))
        whole = [each for each in members if each.disk.log[: len(known)] == known]
        if best not in whole:
            if whole:
                best = whole[0]
            else:
                world.checker.is_lossy = True
        epoch = max(each.disk.epochs.highest for each in members) + 1
        epoch = max(epoch, world.etcd.state.term.epoch + 1)
        boot = Holder(best.id, f"boot{best.boots}")
        term = Term(
            epoch, f"adopt{world.steps}", best.id, "", "adopt", TermState.RELEASED, frozenset({boot}),
            lease_s=world.lease_s,
        )  # fmt: skip
        state = world.etcd.state
        revision = state.revision + 1
        world.etcd.state = dataclasses.replace(
            state,
            revision=revision,
            term=term,
            term_revision=revision,
            told_from=revision,
            adopted=state.cluster_id,
            stores={**state.stores, **{each.id: each.store for each in members}},
        )
        world.note("adopts", best.id, "epoch", epoch)


class Witness:
    """The supervisor: it has reaped a process, and releases that very session."""

    def __init__(self, world: World, dead: Process) -> None:
        self._world, self._dead = world, dead
        world.at(0.05 + world.rng.random() * world.rng.choice((0.5, 4.0)), self._look)

    def _look(self) -> None:
        world = self._world
        if (self._dead.member.at, ETCD) in world.cuts:
            return
        state = world.etcd.state
        is_its = state.term.session == self._dead.session
        if not world.rules.witness_compares_session:
            is_its = state.term.owner == self._dead.member.id
        if is_its and state.term.state != TermState.RELEASED and state.cluster_id == state.adopted:
            world.at(world.delay(), world.etcd.execute, etcd.new_term(state.term_revision, etcd.released))


def _role(member: Member) -> Role | None:
    return None if member.process is None else member.process.role
