"""The rules under faults from a thousand seeds, and every wrong rule found by them.

By hand, longer: python -m tests.appliance.failover.simulation --steps 100000000
"""

from __future__ import annotations

import pytest

from tests.appliance.failover.simulation.checker import Violation
from tests.appliance.failover.simulation.mutants import MUTANTS, Mutant
from tests.appliance.failover.simulation.scenario import run
from tests.appliance.failover.simulation.world import ANY, MIXTURES, Mixture

STEPS = 1_000_000  # over all parts: 15 s of a core
PARTS = 8

pytestmark = pytest.mark.slow


def run_steps(steps: int, seed: int, mixture: Mixture) -> int:
    """Run scenarios from a seed on; return how many epochs opened in them."""
    done = opened = 0
    while done < steps:
        world = run(seed, mixture=mixture)
        done, opened, seed = done + world.steps, opened + world.checker.take_overs, seed + 1
    return opened


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_confirmed_is_lost_and_one_master_is_proven_whatever_happens(part: int) -> None:
    assert run_steps(STEPS // 2 // PARTS, 10_000 * part, ANY) > 10


@pytest.mark.parametrize("mixture", list(MIXTURES)[1:])
def test_it_holds_under_the_faults_that_show_wrong_rules(mixture: str) -> None:
    assert run_steps(STEPS // 2 // len(MIXTURES), 2, MIXTURES[mixture]) > 1


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_wrong_rule_is_found(mutant: Mutant) -> None:
    with mutant.applied() as rules, pytest.raises(Violation, match="seed"):
        for seed in range(mutant.seed, mutant.seed + mutant.seeds_max):
            run(seed, rules, mutant.mixture)


def test_a_seed_plays_the_same_scenario_again() -> None:
    first, again = run(77), run(77)
    assert (first.steps, list(first.trace)[:50]) == (again.steps, list(again.trace)[:50])
