"""Time: how long a beat proves that its sender is the master, and how long a candidate waits. No clock here.

Both are measured on the own clock, from an event of their own: the master from before it first sent a counter, the
candidate from when it received the last change. The first comes before the change, the second after it, so only the
rates of the clocks matter: the margin is for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEASE_S = 5.0  # above an election of etcd (2.1 s measured) and two renewals
LEASE_S_MIN, LEASE_S_MAX = 3.0, 60.0
RENEW_EVERY_S = 1.0
TRY_S = 0.7  # of one try at one member of etcd
MARGIN_S = 0.5
PENDING_MAX = 64  # counters without an answer: more than a lease of them


def deadline(first_sent: float, lease_s: float) -> float:
    """Until when a counter that etcd has proves its sender to be the master. first_sent: before its first try left."""
    return first_sent + lease_s - max(MARGIN_S, lease_s / 10)


def is_proven(first_sent: float | None, lease_s: float, now: float) -> bool:
    """Whether the master may accept, acknowledge and register now. first_sent: of the newest counter that etcd is known
    to have; None: of none."""
    return first_sent is not None and now < deadline(first_sent, lease_s)


def has_waited(changed: float, lease_s: float, now: float) -> bool:
    """Whether the master's proof is over, as a candidate can know it."""
    return now - changed >= lease_s


@dataclass(slots=True)
class Watched:
    """Since when the beat has been what it is, by the clock of who watches it."""

    revision: int = -1
    since: float = 0.0

    def is_still(self, revision: int, lease_s: float, now: float) -> bool:
        """Whether it has not changed for a lease, from when it was first seen."""
        if revision != self.revision:
            self.revision, self.since = revision, now
        return has_waited(self.since, lease_s, now)


@dataclass(slots=True)
class Beats:
    """The counters of one session: which to send next, and which proves what. The owner's thread calls it.

    A try whose outcome is unknown keeps when its counter was first sent; what is read back later proves from there.
    Counters never repeat, and an older one that arrives late proves no more than it did.
    """

    counter: int = 0
    first_sent: float | None = None  # of the newest counter that etcd is known to have had
    pending: dict[int, float] = field(default_factory=dict)  # counter to when it was first sent

    def next(self, now: float) -> int:
        """A new counter, which is about to be sent; further tries send the same one."""
        self.counter += 1
        self.pending[self.counter] = now
        for old in sorted(self.pending)[:-PENDING_MAX]:
            del self.pending[old]
        return self.counter

    def arrived(self, counter: int) -> None:
        """etcd has, or had, this counter of this session."""
        first = self.pending.get(counter)
        if first is None:
            return
        if self.first_sent is None or first > self.first_sent:
            self.first_sent = first
        for older in [each for each in self.pending if each <= counter]:
            del self.pending[older]
