"""Time, chance and the network of a simulated group; what happens next is an event, and a step is one of them."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from appliance.failover.lease import LEASE_S
from tests.appliance.failover.simulation.checker import Checker
from tests.appliance.failover.simulation.etcd import Change, Etcd

if TYPE_CHECKING:
    from appliance.failover.view import View
    from tests.appliance.failover.simulation.member import Member, Process

TRACE_MAX = 400
STALE_READS = 8
ETCD = 0  # as an end of a link


@dataclass(slots=True)
class Rules:
    """What members do besides decide(); a mutant sets one of these otherwise."""

    compares_beat: bool = True
    compares_term: bool = True  # when a master changes the set
    checks_epoch: bool = True
    authenticates: bool = True
    witness_compares_session: bool = True
    witness_reaps: bool = True
    puts_epoch_on_record: bool = True
    guards_confirmed: bool = True
    stops_before_release: bool = True
    proof_from_answer: bool = False
    proof_from_last_try: bool = False
    proof_outlives_pause: bool = False
    trusts_unknown_renewal: bool = False
    waits_from_stamp: bool = False
    waits_from_asking: bool = False
    trusts_unknown_removal: bool = False
    forgets_unknown_addition: bool = False
    begins_before_known: bool = False
    gates_reads: bool = True  # at what is confirmed
    renews_while_opening: bool = True
    bounds_opening: bool = True
    compares_switch: bool = True  # when a member takes over
    checks_cluster: bool = True  # of the etcd that answers a transaction
    numbers_last: bool = True  # no store gets the number of another one that is gone
    copies_have_own_boot: bool = True  # of a store's folder that was open
    yields_when_overtaken: bool = True  # by a later epoch, between the transaction and the first byte of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Which faults, and how often; without any, each scenario has its own from its seed.

    is_quick: members look and open as quickly as they can, so that what should wait is seen not to.
    """

    name: str
    faults: Mapping[str, float] = field(default_factory=dict)
    is_quick: bool = False
    lease_s: float = 0.0  # 0: from the seed
    chaos_s: float = 45.0
    rates: tuple[float, ...] = ()  # of each member's clock; (): from the seed, up to one percent off
    pace: float = 0.0  # faults a second; 0: from the seed
    open_s: float = 0.0  # that a member may take to open in its epoch; 0: a moment
    broken_s: float = 12.0  # that a disk, or a loop, may stand still
    only_renews_while_opening: bool = False  # as a broker does it; otherwise it decides meanwhile, too
    decides_on_answers: bool = False  # as a broker does it; otherwise slaves decide with what they saw last, too


ANY = Mixture(name="any")
TIMES = Mixture(
    name="times",
    faults={"stall": 6, "cut_from_etcd": 3, "kill": 1, "pause_failover": 2, "pause_process": 1},
    is_quick=True,
)
RATES = Mixture(
    name="rates",
    faults={"cut_from_etcd": 1},
    is_quick=True,
    lease_s=60.0,
    chaos_s=150.0,
    rates=(0.99, 1.01, 1.01),
    pace=0.01,
)
SETS = Mixture(
    name="sets", faults={"stall": 4, "cut": 6, "kill": 3, "lose_requests": 2, "stray": 3, "slow": 1}, is_quick=True
)
ETCD_RESTORED = Mixture(
    name="restored", faults={"restore": 3, "cut_from_etcd": 3, "kill": 3, "switch": 1, "pause_process": 1}
)
LOSSES = Mixture(name="losses", faults={"switch_unclean": 3, "cut": 5, "kill": 3, "lose_power": 2})
BOOTS = Mixture(name="boots", faults={"lose_power": 4, "stop_cleanly": 4, "all_lose_power": 1, "cut": 1})
PEOPLE = Mixture(
    name="people", faults={"switch": 5, "kill": 4, "cut": 2, "stall": 2, "pause_failover": 1}, is_quick=True
)
OVERTAKEN = Mixture(
    name="overtaken", faults={"cut_from_etcd": 4, "kill": 2, "cut": 2}, is_quick=True, lease_s=3.0, open_s=9.0
)
BROKEN = Mixture(name="broken", faults={"break_disk": 4, "kill": 1}, is_quick=True, lease_s=3.0, broken_s=60.0)
OPENING = Mixture(
    name="opening",
    faults={"lose_master": 2, "hang": 2},
    is_quick=True,
    chaos_s=100.0,
    lease_s=LEASE_S,
    open_s=2.8 * LEASE_S,
    only_renews_while_opening=True,
    pace=0.2,
)
FLAPPING = Mixture(
    name="flapping", faults={"flap": 1}, is_quick=True, chaos_s=150.0, pace=0.015, decides_on_answers=True
)
ASKED_AGAIN = Mixture(
    name="asked again",
    faults={"switch_unclean_again": 5, "lose_master": 4, "cut": 4, "stall": 4, "kill": 1, "pause_failover": 1},
    lease_s=3.0,
)
TWO_ETCDS = Mixture(
    name="two etcds",
    faults={"see_another_etcd": 5, "kill": 3, "switch": 1, "cut": 1, "stop_cleanly": 1},
    is_quick=True,
)
COPIES = Mixture(
    name="copies", faults={"put_older_copy_back": 5, "kill": 3, "lose_power": 1, "stop_cleanly": 2, "cut": 1}
)
ROTATION = Mixture(name="rotation", faults={"rotate": 4, "switch": 3, "kill": 2, "cut": 2, "put_older_copy_back": 1})
TWINS = Mixture(
    name="twins", faults={"run_copy": 3, "cut": 5, "kill": 4, "switch": 1, "cut_from_etcd": 1, "lose_power": 1}
)
MIXTURES = {
    each.name: each
    for each in (
        ANY,
        TIMES,
        RATES,
        SETS,
        ETCD_RESTORED,
        LOSSES,
        BOOTS,
        PEOPLE,
        OVERTAKEN,
        BROKEN,
        OPENING,
        FLAPPING,
        ASKED_AGAIN,
        TWO_ETCDS,
        COPIES,
        ROTATION,
        TWINS,
    )
}


class World:
    """One group, from a seed. lease_s and clocks come from the seed, too."""

    def __init__(self, seed: int, rules: Rules, mixture: Mixture) -> None:
        self.seed = seed
        self.rules = rules
        self.rng = random.Random(seed)
        self.now = 0.0
        self.steps = 0
        self.trace: deque[tuple[float, str, tuple[object, ...]]] = deque(maxlen=TRACE_MAX)
        self.checker = Checker(self)
        self.members: dict[int, Member] = {}
        self.etcd: Etcd
        self.etcds: dict[int, Etcd] = {}  # another one, for members that find it at the same address
        self.mixture = mixture
        self.owners_go_on = seed % 2 == 1  # in their epoch, as brokers do it: see Process._may_go_on
        self.lease_s = mixture.lease_s or self.rng.choice((3.0, LEASE_S, LEASE_S, 10.0))
        self.cuts: set[tuple[int, int]] = set()  # (from, to): nothing passes
        self.look_s = 0.05 if mixture.is_quick else self.rng.choice((0.1, 0.2, 0.5))
        self.open_s = mixture.open_s if mixture.is_quick else self.rng.choice((0.0, 0.05, 0.3))
        self.loss = 0.0  # of requests to etcd, and of their answers
        self.slowness = 1.0
        self.stalls: dict[tuple[int, int], float] = {}  # (from, to): seconds more, at most
        # Of reads: an answer that was long on its way, as from a watch. A candidate begins to wait anew then.
        self.is_healed = False
        self.staleness = 0.0 if mixture.is_quick else 0.05
        self._events: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def note(self, text: str, *facts: object) -> None:
        """For the trace."""
        self.trace.append((self.now, text, tuple(map(str, facts))))

    def at(self, delay: float, act: Callable[..., object], *args: Any) -> None:
        """Have this done later."""
        self._number += 1
        heapq.heappush(self._events, (self.now + delay, self._number, act, args))

    def run_until(self, end: float) -> None:
        events = self._events
        while events and events[0][0] <= end:
            self.now, _, act, args = heapq.heappop(events)
            self.steps += 1
            act(*args)
        self.now = end

    def etcd_of(self, member: int) -> Etcd:
        """The one that answers it."""
        return self.etcds.get(member, self.etcd)

    # -- a process's own time -----------------------------------------------------------------------------------------

    def soon(self, process: Process, delay: float, act: Callable[..., None], *args: Any) -> None:
        """Later, by the true clock, in this process; never once it is dead."""
        self.at(delay, self._in_process, process, act, args)

    def _in_process(self, process: Process, act: Callable[..., None], args: tuple[Any, ...]) -> None:
        member = process.member
        if member.process is not process:
            return
        if member.paused_until > self.now:
            self.at(member.paused_until - self.now, self._in_process, process, act, args)
            return
        act(*args)

    # -- the network --------------------------------------------------------------------------------------------------

    def delay(self) -> float:
        """Of one message: milliseconds, sometimes much more."""
        chance = self.rng.random()
        if chance < 0.97 or self.is_healed:
            return 0.001 + 0.01 * chance * self.slowness
        return self.rng.random() * 2.0 * self.slowness

    def call(
        self, process: Process, change: Change | None, then: Callable[[bool, View], None] = lambda is_done, view: None
    ) -> None:
        """Ask etcd: a read, or a transaction. then: with whether it was executed, and what stands there; perhaps
        never."""
        name, rng, sent = process.member.at, self.rng, process.clock()
        if (name, ETCD) in self.cuts or rng.random() < self.loss:
            return
        self.at(self.delay() + self._stalled(name, ETCD), self._execute, process, change, then, sent)

    def _stalled(self, sender: int, receiver: int) -> float:
        most = self.stalls.get((sender, receiver)) if self.stalls else None
        return 0.0 if most is None else self.rng.random() * most

    def _execute(
        self, process: Process, change: Change | None, then: Callable[[bool, View], None], sent: float
    ) -> None:
        name = process.member.at
        store = self.etcd_of(name)
        is_done = change is not None and store.execute(change)
        if (ETCD, name) in self.cuts or self.rng.random() < self.loss:
            return
        stale = self.rng.randrange(STALE_READS) if change is None and self.rng.random() < self.staleness else 0
        view, stamp = store.view(stale, sent, 0.0), store.state.stamp
        self.soon(process, self.delay() + self._stalled(ETCD, name), process.answered, then, is_done, view, stamp)
