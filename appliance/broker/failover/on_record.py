"""What the register of a broker name says, in the terms in which appliance.failover decides. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping

from appliance.failover import view as decided
from appliance.failover.view import Figures, Level
from appliance.register.term import IN_SYNC, Term, View

FIGURES_LIFE_S = 10.0  # what a member said of itself counts for so long after it was first seen


class Seen:
    """Which figures of members are recent: by when this process first saw them, since clocks of machines differ."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[int, float]] = {}  # member to revision, and when it was first seen
        self._looked = -math.inf
        self.unsure: set[int] = set()  # members whose figures may be older: they were there when it had not looked

    def recent(self, figures: Mapping[int, tuple[int, Figures]], now: float) -> dict[int, Figures]:
        """Those that are not older than FIGURES_LIFE_S, as far as is known."""
        found, has_watched = {}, now - self._looked <= FIGURES_LIFE_S
        self._looked = now
        for member, (revision, said) in figures.items():
            if self._first.get(member, (0, 0.0))[0] != revision:
                self._first[member] = revision, now
                (self.unsure.discard if has_watched else self.unsure.add)(member)
            if now - self._first[member][1] <= FIGURES_LIFE_S:
                found[member] = said
        return found


def as_decided(
    view: View, members: Mapping[int, Figures], *, sent: float, received: float, lease_s: float
) -> decided.View:
    """members: what is recent of what they said. sent, received: of the clock that is decided with. lease_s: of this
    term."""
    return decided.View(
        cluster_id=view.cluster_id,
        received=received,
        changed=received,
        sent=sent,
        adopted_cluster_id=view.adopted_cluster_id or view.cluster_id,
        group=view.group,
        ids={number: store for store, number in view.stores.items()},
        term=None if view.term is None else _term(view, view.term, lease_s),
        term_revision=view.term_revision,
        beat=view.beat,
        beat_revision=view.beat_revision,
        pause=view.pause,
        switch=view.switch,
        members=members,
        told={member: said for member, (_, said) in view.figures.items()},
        told_since=view.told_since,
        starts={row.epoch: row.start for row in view.history},
    )


def _term(view: View, term: Term, lease_s: float) -> decided.Term:
    """An owner that has not joined has no number, and no member of the set that has not joined can win."""
    owner = term.holders.get(term.owner)
    return decided.Term(
        epoch=term.epoch,
        epoch_id=term.id,
        owner=0 if owner is None else owner.id,
        address=term.owner,
        session=term.session or ("" if view.beat is None else view.beat.session),
        state=term.state,
        in_sync=frozenset(term.holders[address] for address in term.in_sync if address in term.holders),
        end=term.end,
        was_open=term.was_open,
        level=Level.IN_SYNC if term.level == IN_SYNC else Level.LOCAL,
        lease_s=lease_s,
    )
