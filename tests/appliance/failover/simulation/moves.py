"""What people do to machines and folders: members replaced, copies of stores, and another etcd at the same address."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import deque
from dataclasses import dataclass

from appliance.failover.view import Beat, Holder, TermState
from tests.appliance.failover.simulation import etcd
from tests.appliance.failover.simulation.member import Disk, Member
from tests.appliance.failover.simulation.world import World

COPIES_MAX = 12
COPY_S = 6.0  # from one copy to the next, at most
JOINS_S = 3.0
COPY_AT, BOOTS_OF_COPY = 100, 1000
JOIN_TRIES = 5
ANOTHER_S = 12.0


@dataclass(frozen=True, slots=True)
class Copy:
    """A folder as it was, of a member in that boot of its machine."""

    number: int
    boots: int
    disk: Disk


class Moves:
    def __init__(self, world: World) -> None:
        self._world = world
        self._copies: deque[Copy] = deque(maxlen=COPIES_MAX)
        self._number = max(world.members)
        self._clusters = 1000
        self._runs = 0  # of copies
        self.is_on = True
        self._times = random.Random(world.seed)  # of copies: they change nothing else in a scenario without them
        world.at(self._times.random() * COPY_S, self._copy)

    # -- folders ------------------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        world = self._world
        if self.is_on:
            member = self._times.choice(list(world.members.values()))
            self._copies.append(Copy(member.id, member.boots, copy.deepcopy(member.disk)))
            world.at(self._times.random() * COPY_S, self._copy)

    def put_older_copy_back(self) -> None:
        """An older copy of a member's folder in its place, with all that it says of itself. It is older than what etcd
        knows of it: what was never told can't be found out."""
        world = self._world
        copies = [each for each in self._copies if each.number in world.members and self._is_older(each)]
        if not copies:
            return
        found = world.rng.choice(copies)
        member = world.members[found.number]
        world.note("older copy", member.id, "of", len(found.disk.log), "instead of", len(member.disk.log))
        member.kill()
        member.disk = copy.deepcopy(found.disk)
        if found.boots != member.boots:
            member.boot()
        world.at(world.rng.random() * JOINS_S, member.start)

    def _is_older(self, found: Copy) -> bool:
        """Whether any figure shows it that etcd has: of its own in that boot, of its release, or another member's."""
        etcd, disk, term = self._world.etcd, found.disk, self._world.etcd.state.term
        told, own = etcd.members, etcd.members.get(found.number)
        if own is not None and own.boot == f"boot{found.boots}" and own.log_end > len(disk.log):
            return True
        if term.owner != found.number:
            return False
        since = {number for number, at in etcd.told_at.items() if at >= etcd.state.told_from}
        others = since.union(each.id for each in term.in_sync if each.id in told) - {found.number}
        end = max([term.end, *(told[number].end_in(term.epoch) for number in others)])
        return (term.epoch, end) > (disk.epochs.current, len(disk.log)) and end >= 0

    def run_copy(self) -> None:
        """A copy of a member's folder as it is now is started beside it, on its machine; one at a time."""
        world, at = self._world, COPY_AT
        if at in world.members:
            world.members.pop(at).kill()
        original = world.rng.choice(list(world.members.values()))
        found = Member(world, original.id, original.store, at)
        found.disk, found.boots = copy.deepcopy(original.disk), original.boots
        self._runs += 1
        if world.rules.copies_have_own_boot:
            found.boots += BOOTS_OF_COPY * self._runs
        world.members[at] = found
        world.note("copy of", original.id, "with a log of", len(found.disk.log))
        found.start()

    # -- members ------------------------------------------------------------------------------------------------------

    def rotate(self) -> None:
        """A machine is gone for good, not the last one that has everything; another one comes with a store that has
        never joined: empty, or a copy of any member's folder without its number."""
        world, rng = self._world, self._world.rng
        gone = rng.choice(list(world.members.values()))
        state = world.etcd.state
        left = {each.id for each in state.term.in_sync} & world.members.keys() - {gone.id}
        if not left or not all(number in state.stores for number in world.members):
            return  # another one is about to join
        gone.kill()
        del world.members[gone.id]
        self._number += 1
        if not world.rules.numbers_last:
            world.etcd.execute(etcd.operators(stores={n: s for n, s in state.stores.items() if n != gone.id}))
        member = Member(world, self._number if world.rules.numbers_last else gone.id, f"store{self._number}")
        if self._copies and rng.random() < 0.6:
            member.disk = dataclasses.replace(copy.deepcopy(rng.choice(self._copies).disk), clean_boot="")
        world.members[member.id] = member
        world.note("instead of", gone.id, member.id, "with a log of", len(member.disk.log))
        world.at(rng.random() * JOINS_S, self._join, member, JOIN_TRIES)

    def _join(self, member: Member, left: int) -> None:
        world = self._world
        world.at(world.rng.random() * JOINS_S, self._put, world.etcd.state, member, left)

    def _put(self, seen: etcd.State, member: Member, left: int) -> None:
        is_joined = self._world.etcd.execute(etcd.joined(seen, member.id, member.store))
        if not is_joined and left:
            self._join(member, left - 1)
        member.start()

    # -- etcd ---------------------------------------------------------------------------------------------------------

    def see_another_etcd(self) -> None:
        """Another cluster answers some members, or all, at the same address: with a backup of the record, or with
        another group's, and with members of its own."""
        world, rng = self._world, self._world.rng
        self._clusters += 1
        state = rng.choice([*world.etcd.backups, world.etcd.state])
        another = etcd.Etcd(dataclasses.replace(state, cluster_id=self._clusters))
        if rng.random() < 0.5:
            another.state = self._of_another_group(another.state)
        who = rng.sample(list(world.members), rng.randint(1, len(world.members)))
        world.note("another etcd", self._clusters, another.state.group, "for", *who)
        world.etcds.update(dict.fromkeys(who, another))
        world.at(rng.random() * ANOTHER_S, self._see_own_etcd, who)

    def _of_another_group(self, state: etcd.State) -> etcd.State:
        """Of the same cluster and broker name: its members have the same numbers, and its master is dead."""
        world = self._world
        holders = frozenset(Holder(each.id, f"boot{each.boots}") for each in world.members.values())
        term = dataclasses.replace(
            state.term,
            epoch=max(state.term.epoch + world.rng.choice((-1, 0, 3)), 1),
            epoch_id=f"another{self._clusters}",
            session="another",
            state=TermState.OPEN,
            in_sync=holders,
        )
        stores = {number: f"another{number}" for number in state.stores}
        return dataclasses.replace(
            state,
            adopted=state.cluster_id,
            group="another",
            stores=stores,
            term=term,
            told_from=state.term_revision,
            beat=Beat("another", 1),
            pause=None,
            switch=None,
        )

    def _see_own_etcd(self, who: list[int]) -> None:
        for number in who:
            self._world.etcds.pop(number, None)
