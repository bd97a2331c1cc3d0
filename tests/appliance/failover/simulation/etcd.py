"""etcd as a linearizable register: each request is executed at one moment, or never, and the answer may be lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from appliance.failover import older_copy
from appliance.failover.view import Beat, Figures, Pause, Switch, Term, TermState, View

STALE_MAX = 12  # states that a read may still see


@dataclass(frozen=True, slots=True)
class State:
    """All keys, and the revisions that matter."""

    term: Term
    term_revision: int
    beat: Beat
    beat_revision: int
    revision: int
    cluster_id: int = 1
    adopted: int = 1
    pause: Pause | None = None
    switch: Switch | None = None
    group: str = "group"
    stores: Mapping[int, str] = field(default_factory=dict)  # of each member's number, for ever
    told_from: int = 0  # the revision from which on figures of the owner's log count
    stamp: float = 0.0  # by the clock of who put the beat: only a mutant looks at it


Change = Callable[["State"], "State | None"]


@dataclass(slots=True)
class Etcd:
    """members: what members said of themselves last; told_at: and the revision of the term there was then."""

    state: State
    members: dict[int, Figures] = field(default_factory=dict)
    told_at: dict[int, int] = field(default_factory=dict)
    past: list[State] = field(default_factory=list)
    backups: list[State] = field(default_factory=list)

    def tell(self, number: int, figures: Figures, term_revision: int) -> bool:
        """Unless the term has changed since it looked."""
        if term_revision == self.state.term_revision:
            self.members[number], self.told_at[number] = figures, term_revision
        return term_revision == self.state.term_revision

    def execute(self, change: Change) -> bool:
        """Run a transaction; whether it compared equal."""
        changed = change(self.state)
        if changed is None:
            return False
        self.past.append(self.state)
        if len(self.past) > STALE_MAX:
            self.past.pop(0)
        self.state = changed
        return True

    def restore(self, backup: State) -> None:
        """From a backup: what came later is forgotten, and revisions are given out again."""
        self.past.clear()
        self.state = dataclasses.replace(backup, cluster_id=self.state.cluster_id + 1)

    def view(self, stale: int, sent: float, received: float) -> View:
        """What a read says. stale: so many changes ago, if they are remembered."""
        state = self.past[-stale] if 0 < stale <= len(self.past) else self.state
        return View(
            cluster_id=state.cluster_id,
            received=received,
            changed=received,
            sent=sent,
            adopted_cluster_id=state.adopted,
            group=state.group,
            ids=state.stores,
            term=state.term,
            term_revision=state.term_revision,
            beat=state.beat,
            beat_revision=state.beat_revision,
            pause=state.pause,
            switch=state.switch,
            members=self.members,
            told=self.members,
            told_since=[number for number, revision in self.told_at.items() if revision >= state.told_from],
        )


# -- the transactions -------------------------------------------------------------------------------------------------


def renewal(term_revision: int, beat: Beat, stamp: float) -> Change:
    def change(state: State) -> State | None:
        if state.term_revision != term_revision:
            return None
        revision = state.revision + 1
        return dataclasses.replace(state, revision=revision, beat=beat, beat_revision=revision, stamp=stamp)

    return change


def new_term(term_revision: int | None, make: Callable[[Term], Term]) -> Change:
    """term_revision: None: whatever it is by then, which is wrong."""

    def change(state: State) -> State | None:
        if term_revision not in (None, state.term_revision):
            return None
        revision, term = state.revision + 1, make(state.term)
        owners = [(each.epoch_id, each.holder(each.owner)) for each in (state.term, term)]
        since = older_copy.counted_since(*owners, state.told_from, state.term_revision) or revision
        return dataclasses.replace(state, revision=revision, term=term, term_revision=revision, told_from=since)

    return change


def take_over(
    seen: View, beat_revision: int | None, term: Term, beat: Beat, stamp: float, *, compares_switch: bool = True
) -> Change:
    """beat_revision: None: whatever it is by then, which is wrong."""

    def change(state: State) -> State | None:
        if state.term_revision != seen.term_revision or beat_revision not in (None, state.beat_revision):
            return None
        if state.pause is not None or (compares_switch and state.switch != seen.switch):
            return None
        revision = state.revision + 1
        return dataclasses.replace(
            state,
            revision=revision,
            term=term,
            term_revision=revision,
            told_from=revision,
            beat=beat,
            beat_revision=revision,
            switch=None,
            stamp=stamp,
        )

    return change


def released(term: Term, end: int = -1) -> Term:
    was_open = term.was_open or term.state == TermState.OPEN
    return dataclasses.replace(term, state=TermState.RELEASED, end=end, was_open=was_open)


def operators(**fields: object) -> Change:
    """A person's change of pause or switch."""

    def change(state: State) -> State | None:
        return dataclasses.replace(state, revision=state.revision + 1, **fields)  # type: ignore[arg-type]

    return change


def asked(seen: State, switch: Switch) -> Change:
    """A person's switch in the place of the one that was seen, for the term that was seen."""

    def change(state: State) -> State | None:
        if state.pause is not None or (state.term_revision, state.switch) != (seen.term_revision, seen.switch):
            return None
        return operators(switch=switch)(state)

    return change


def joined(seen: State, number: int, store: str) -> Change:
    """A store gets its number: nobody has had it, and the term is the one that was seen."""

    def change(state: State) -> State | None:
        if state.term_revision != seen.term_revision or number in state.stores:
            return None
        return operators(stores={**state.stores, number: store})(state)

    return change
