"""python -m tests.appliance.failover.simulation --steps 100000000: run scenarios until so many steps are done."""

from __future__ import annotations

import argparse
import sys
import time

from tests.appliance.failover.simulation.checker import Violation
from tests.appliance.failover.simulation.scenario import run
from tests.appliance.failover.simulation.world import MIXTURES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.appliance.failover.simulation", description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="events, over all scenarios (default: 1,000,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first scenario (default: 1)")
    parser.add_argument("--scenarios", type=int, default=sys.maxsize, help="at most")
    parser.add_argument("--mixture", choices=MIXTURES, help="of faults (default: all, one after the other)")
    options = parser.parse_args()
    mixtures = [MIXTURES[options.mixture]] if options.mixture else list(MIXTURES.values())
    began, steps, take_overs, confirmed, losses, slowest, seed = time.monotonic(), 0, 0, 0, 0, 0.0, options.seed
    while steps < options.steps and seed - options.seed < options.scenarios:
        try:
            world = run(seed, mixture=mixtures[seed % len(mixtures)])
        except Violation as found:
            print(found)
            return 1
        seed += 1
        steps += world.steps
        take_overs += world.checker.take_overs
        confirmed += world.checker.confirmations
        losses += world.checker.losses_accepted
        slowest = max(slowest, world.checker.slowest_s)
        if (seed - options.seed) % 1000 == 0:
            print(f"{steps:,} steps, seed {seed}", flush=True)
    took = time.monotonic() - began
    print(
        f"{steps:,} steps in {seed - options.seed:,} scenarios: {take_overs:,} take-overs, {confirmed:,} records "
        f"confirmed, {losses:,} losses accepted by people, {slowest:.1f} s from healing to a master at most, "
        f"{steps / max(took, 0.001):,.0f} steps/s: nothing was violated"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
