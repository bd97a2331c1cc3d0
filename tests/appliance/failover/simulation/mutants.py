"""Wrong rules, each a bug that a broker, a database or a draft of this has had. The simulation has to find every one.

A mutant replaces one function of appliance.failover, or sets one of the Rules of what members do besides it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

from appliance.failover import decide, in_sync_rules, lease, older_copy, switching, view, winning
from appliance.failover.grace import Grace
from appliance.failover.own import Own
from appliance.failover.view import Figures, Holder, Switch, Term, View
from appliance.register import owner
from tests.appliance.failover.simulation.world import (
    ANY,
    ASKED_AGAIN,
    BOOTS,
    BROKEN,
    COPIES,
    ETCD_RESTORED,
    FLAPPING,
    LOSSES,
    OPENING,
    OVERTAKEN,
    PEOPLE,
    RATES,
    ROTATION,
    SETS,
    TIMES,
    TWINS,
    TWO_ETCDS,
    Mixture,
    Rules,
)


@dataclass(frozen=True)
class Mutant:
    """It has to be found in at most seeds_max scenarios, from `seed` on: where that is not 1, CI saves some seconds."""

    name: str
    rule: str = ""
    instead: tuple[tuple[object, str, Callable[..., Any]], ...] = ()
    mixture: Mixture = ANY
    seed: int = 1
    seeds_max: int = 60

    @contextlib.contextmanager
    def applied(self) -> Iterator[Rules]:
        rules = Rules()
        with contextlib.ExitStack() as stack:
            if self.rule:
                setattr(rules, self.rule, not getattr(rules, self.rule))
            for module, function, wrong in self.instead:
                stack.enter_context(mock.patch.object(module, function, wrong))
            yield rules

    def __str__(self) -> str:
        return self.name


def _ignores_empty_set(term: Term, own: Own) -> bool:
    """RocketMQ with the set shrunk to the master alone: whoever is there may win."""
    return not term.in_sync.isdisjoint(own.holders) or all(each.id == term.owner for each in term.in_sync)


def _ignores_boot(term: Term, own: Own) -> bool:
    return True


def _takes_any_clean_stop(term: Term, own: Own) -> bool:
    return own.holder in term.in_sync or bool(own.clean_boot)


def _takes_any_term_for_its_own(term: Term, own: Own) -> bool:
    """Once it follows its master: it would never follow one that it takes for dead."""
    return term.session != own.session and own.following == term.epoch


def _publishes_at_once(term: Term, own: Own) -> frozenset[Holder] | None:
    """Before it is required: others acknowledge without it meanwhile."""
    wanted = ((term.in_sync - own.lost) | (own.caught_up - own.lost)) | {own.holder}
    return wanted if wanted != term.in_sync else None


def _requires_what_is_on_record(term: Term, own: Own) -> frozenset[Holder]:
    return term.in_sync - own.required


def _stops_at_once(term: Term, own: Own) -> frozenset[Holder]:
    """Before it is published: messages are acknowledged that one on record lacks (R#5663)."""
    return (own.required & own.lost) - {own.holder}


def _sees_no_renewal(view: View) -> tuple[int, int]:
    """What was seen before a silence counts on, whatever etcd has executed meanwhile."""
    return view.cluster_id, view.term_revision


def _begins_anew(grace: Grace) -> None:
    """With each silence."""
    grace.is_given, grace.answered_at = False, None


def _sees_any_revision(view: View, term: Term) -> Switch | None:
    """What a person accepted of another state of things counts on."""
    return view.switch if view.switch is not None and view.switch.epoch == term.epoch else None


def _sees_no_group(view: View, own: Own) -> str:
    """Nor whose number it is."""
    return _why_frozen(dataclasses.replace(view, group=own.group, ids={own.id: own.store_uuid}), own)


def _sees_own_figures(view: View, own: Own) -> bool:
    """What a member has told itself, which an owner of an epoch does not."""
    return _is_older_copy(dataclasses.replace(view, term=None), own)


def _sees_others_figures(view: View, own: Own) -> bool:
    """What others have told, who may lack what a slave had."""
    told = {member: each for member, each in view.told.items() if member != own.id}
    return _is_older_copy(dataclasses.replace(view, told=told), own)


def _sees_members_in_sync(
    epoch: int, owner: int, in_sync: frozenset[Holder], told: Mapping[int, Figures], since: object, end: int
) -> tuple[int, int]:
    """What others have told says nothing of the log of a sole master."""
    return _owners_end(epoch, owner, in_sync, told, (), end)


def _blind(function: Callable[[Own], Any], **seen: Any) -> Callable[[Own], Any]:
    return lambda own: function(dataclasses.replace(own, **seen))


_owners_end = older_copy.owners_end
_why_frozen, _is_older_copy = winning.why_frozen, older_copy.is_older_copy
WORKS = (("renews", decide, "_renewal"), ("takes over", winning, "_why_not_able"))
BROKEN_PARTS = (("whose disk does not write", "is_disk_healthy"), ("that stood still", "has_ticked"))

MUTANTS = (
    *(
        Mutant(name, instead=((winning, "is_in_set", seen), (winning, "has_kept_log", seen)))
        for name, seen in (("any member may win", _ignores_boot), ("an empty set is ignored", _ignores_empty_set))
    ),
    Mutant("the boot is ignored", instead=((winning, "has_kept_log", _ignores_boot),), seed=16),
    Mutant(
        "a clean stop in another boot counts",
        instead=((winning, "has_kept_log", _takes_any_clean_stop),),
        mixture=BOOTS,
    ),
    Mutant(
        "stops requiring before publishing",
        instead=((in_sync_rules, "to_stop_requiring", _stops_at_once),),
        mixture=SETS,
    ),
    Mutant(
        "publishes before requiring",
        instead=(
            (in_sync_rules, "to_publish", _publishes_at_once),
            (in_sync_rules, "to_require", _requires_what_is_on_record),
        ),
        mixture=SETS,
        seed=2,
    ),
    Mutant("a removal of unknown outcome counts", rule="trusts_unknown_removal", mixture=SETS),
    Mutant("an addition of unknown outcome is forgotten", rule="forgets_unknown_addition", mixture=SETS, seed=56),
    Mutant(
        "a restored etcd is accepted",
        instead=((winning, "why_frozen", lambda view, own: ""),),
        mixture=ETCD_RESTORED,
        seed=24,
    ),
    Mutant(
        "another cluster of etcd is accepted",
        instead=((winning, "is_restored", lambda view: False),),
        mixture=ETCD_RESTORED,
        seed=16,
    ),
    Mutant("the beat is not compared", rule="compares_beat", mixture=TIMES),
    Mutant("a change of the set does not compare the term", rule="compares_term", mixture=SETS, seed=18),
    Mutant("no epoch is checked", rule="checks_epoch", mixture=TIMES),
    Mutant("an epoch without writes is not on record (R#9689)", rule="puts_epoch_on_record"),
    Mutant("cuts below the own confirmed position", rule="guards_confirmed", mixture=LOSSES, seed=16),
    Mutant("a stranger's acknowledgement counts (R#3015)", rule="authenticates", mixture=SETS),
    Mutant("the supervisor releases any session", rule="witness_compares_session", mixture=PEOPLE, seed=30),
    *(
        Mutant(name, instead=((owner, function, lambda *seen: ""),), mixture=mixture)
        for name, function, mixture in (
            ("a restarted owner goes on though its machine has restarted", "why_end_is_lost", BOOTS),
            ("an owner goes on with an older copy of its store", "why_shorter", COPIES),
            ("an owner goes on with a copy of its store that another member has", "why_another_store", ROTATION),
        )
    ),
    Mutant("the supervisor releases a process that it has not reaped", rule="witness_reaps", mixture=TIMES, seed=9),
    Mutant("releases before it has stopped", rule="stops_before_release", mixture=PEOPLE, seed=38),
    Mutant("the proof counts from the answer", rule="proof_from_answer", mixture=TIMES, seed=10),
    Mutant("the proof counts from the last try", rule="proof_from_last_try", mixture=TIMES, seed=273),
    Mutant(
        "a proof never ends (R#7017)",
        instead=((lease, "is_proven", lambda first_sent, lease_s, now: first_sent is not None),),
        mixture=TIMES,
    ),
    Mutant("consumers see what is not confirmed (R#7689)", rule="gates_reads", mixture=TIMES),
    *(
        Mutant(
            f"a member {part} {does} (dledger#287)",
            instead=((module, function, _blind(getattr(module, function), **{seen: True})),),
            mixture=BROKEN,
        )
        for does, module, function in WORKS
        for part, seen in BROKEN_PARTS
    ),
    Mutant("a renewal without an answer proves something", rule="trusts_unknown_renewal", mixture=TIMES),
    Mutant("a pause suspends the deadline", rule="proof_outlives_pause", mixture=TIMES),
    Mutant("a candidate waits from the writer's clock", rule="waits_from_stamp"),
    Mutant("a candidate waits from when it asked", rule="waits_from_asking", mixture=TIMES, seed=22),
    Mutant("begins before the transaction is known", rule="begins_before_known"),
    Mutant("begins though it is overtaken", rule="yields_when_overtaken", mixture=OVERTAKEN, seed=76),
    Mutant(
        "no margin, and clocks differ",
        instead=((lease, "deadline", lambda first, lease_s: first + lease_s),),
        mixture=RATES,
    ),
    Mutant("a renewal does not begin the wait anew", instead=((view, "_marks", _sees_no_renewal),), mixture=TIMES),
    Mutant(
        "each silence of etcd puts a successor off",
        instead=((Grace, "silent", _begins_anew),),
        mixture=FLAPPING,
        seed=3,
    ),
    Mutant("a new master does not renew while it opens", rule="renews_while_opening", mixture=OPENING, seed=6),
    Mutant("who opens as the master renews without an end", rule="bounds_opening", mixture=OPENING, seed=8),
    Mutant(
        "an unclean switch counts for whatever etcd has by then",
        instead=((switching, "valid_switch", _sees_any_revision),),
        mixture=ASKED_AGAIN,
        seed=26,
    ),
    Mutant("a switch that was taken back counts", rule="compares_switch", mixture=ASKED_AGAIN),
    Mutant("what another etcd answers counts", rule="checks_cluster", mixture=TWO_ETCDS, seed=43),
    Mutant(
        "another group's record is accepted",
        instead=((winning, "why_frozen", _sees_no_group),),
        mixture=TWO_ETCDS,
    ),
    *(
        Mutant(f"an older copy counts, {of}", instead=((older_copy, "is_older_copy", seen),), mixture=COPIES)
        for of, seen in (("of a master's store", _sees_own_figures), ("of a slave's store", _sees_others_figures))
    ),
    Mutant(
        "an older copy counts, of a sole master's store",
        instead=((older_copy, "owners_end", _sees_members_in_sync),),
        mixture=COPIES,
        seed=109,
    ),
    Mutant(
        "a release voids what was told of the log",
        instead=((older_copy, "counted_since", lambda *seen: 0),),
        mixture=COPIES,
        seed=31,
    ),
    Mutant(
        "a member whose machine lost the end of its log voids what it told",
        instead=((older_copy, "known_end", lambda view, own: (own.epoch, own.log_end)),),
        mixture=COPIES,
        seed=270356,
    ),
    Mutant("the number of a member that is gone is given out again", rule="numbers_last", mixture=ROTATION, seed=5),
    Mutant("a copy that runs beside its original counts as that", rule="copies_have_own_boot", mixture=TWINS),
    Mutant("a candidate does not wait", instead=((lease, "has_waited", lambda changed, lease_s, now: True),)),
    Mutant(
        "any old term is taken for the own restarted one (no lock)",
        instead=((winning, "is_restarted_owner", _takes_any_term_for_its_own),),
    ),
)
