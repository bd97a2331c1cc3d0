"""After a silence of etcd: the time that a candidate leaves to the master, which could not renew. No clock here.

It is only for fewer take-overs: a master that is there goes on in its epoch once etcd answers. Nothing that guards
messages depends on it. It is given once for a beat, and runs while etcd answers, so silences that follow each other
before it is over add only their own length, and a dead master has a successor though none of them is ever the last.

Why the wait itself may go on over a silence, and is never begun anew by one: what it has to prove is that etcd has
executed no renewal for a lease, by this member's own clock. Each change of a key gives it a revision that it never had
before. So when the first answer after the silence has the revisions of the last one before it, nothing was executed in
between, seen or not; the observation made before the silence holds, and the clock went on. If they differ, following()
begins to count anew from this answer. Grace only ever moves `changed` to later than that, never to earlier. A renewal
that this answer does not have yet defeats the transaction, which compares the beat.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from appliance.failover.view import View

GRACE_S = 3.0  # a round of renewals, its tries and the next one; at most the shortest lease
ANSWER_S = 0.25  # that one answer counts after a silence, since it is not known how long etcd has answered before it


@dataclass(slots=True)
class Grace:
    """One candidate's."""

    left_s: float = 0.0
    is_given: bool = False  # for the beat that etcd had last
    wait_from: float = -math.inf  # with it, a candidate waits a lease from then on
    answered_at: float | None = None  # None: etcd was silent at the last look

    def silent(self) -> None:
        """A look at etcd had no answer."""
        self.answered_at = None

    def granted(self, view: View) -> View:
        """This view, as following() has it of an answer, to decide with: its `changed` is later by the grace."""
        self._count(view)
        self.answered_at = view.received
        if self.left_s > 0 and view.term is not None:
            self.wait_from = view.received - view.term.lease_s + self.left_s
        return dataclasses.replace(view, changed=max(view.changed, self.wait_from))

    def _count(self, view: View) -> None:
        was_silent = self.answered_at is None
        if view.changed >= view.received:  # who renews needs none
            self.left_s, self.is_given, self.wait_from = 0.0, False, -math.inf
        elif was_silent and not self.is_given:
            self.left_s, self.is_given = GRACE_S, True
        elif self.left_s > 0:
            self.left_s -= ANSWER_S if self.answered_at is None else view.received - self.answered_at
