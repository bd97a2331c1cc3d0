"""What people ask etcd for: pauses and switches, also twice, late, and without knowing what became of the first."""

from __future__ import annotations

from appliance.failover.view import Pause, Switch
from tests.appliance.failover.simulation import etcd
from tests.appliance.failover.simulation.world import World

UNDECIDED_S = 4.0  # so long a transaction may be on its way, and a person waits for its outcome, at most
ASKS_MAX = 3


class People:
    """Their commands compare what they have seen, as the shell's do."""

    def __init__(self, world: World) -> None:
        self._world = world

    def pause_failover(self) -> None:
        world = self._world
        world.etcd.execute(etcd.operators(pause=Pause("ops", "work", 0, 0)))
        world.at(world.rng.random() * 15, self._resume)

    def _resume(self) -> None:
        self._world.etcd.execute(etcd.operators(pause=None))

    def switch(self) -> None:
        world = self._world
        state = world.etcd.state
        if state.switch is None:
            target = world.rng.choice(list(world.members))
            name = f"s{world.steps}"
            switch = Switch(name, target, True, 0, state.term.epoch, state.term_revision)
            world.etcd.execute(etcd.operators(switch=switch))

    def switch_unclean(self) -> None:
        """A person accepts the loss of what a member outside the set lacks. It replaces an earlier switch."""
        state = self._world.etcd.state
        if state.cluster_id == state.adopted:
            self._world.etcd.execute(etcd.asked(state, self._accepting(state)))

    def _accepting(self, seen: etcd.State) -> Switch:
        """Of the term and the beat that were seen, for any member, with any loss."""
        world = self._world
        target = world.rng.choice(list(world.members))
        revisions = seen.term.epoch, seen.term_revision, seen.beat_revision
        epoch = world.members[target].disk.epochs.current
        return Switch(f"u{world.steps}", target, False, 1 << 30, *revisions, accepts_unknown=True, accepted_epoch=epoch)

    def switch_unclean_again(self, left: int = ASKS_MAX) -> None:
        """Asked for, and again: each time for what was there at the look before, while the one before may be on its
        way, waited for, or half done. In the end it is taken back, unless the command is killed."""
        world, rng = self._world, self._world.rng
        state = world.etcd.state
        if state.cluster_id == state.adopted and (left < ASKS_MAX or state.switch is None):
            change = etcd.asked(state, self._accepting(state))
            world.at(rng.random() * rng.choice((0.05, UNDECIDED_S)), world.etcd.execute, change)
        if left > 1:
            world.at(rng.random() * UNDECIDED_S, self.switch_unclean_again, left - 1)
        elif rng.random() < 0.7:
            world.at(rng.random() * UNDECIDED_S, world.etcd.execute, etcd.operators(switch=None))
