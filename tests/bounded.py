"""How long property tests may look: bounded by examples, a fifth of them without `--long`; in CI the same each time.

Making a failing example smaller can take Hypothesis five minutes, more than a test may; for slow properties it is done
on request: GANTRY_SHRINK=1.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from tests.suite.long_runs import in_all

QUICK_PHASES = (Phase.explicit, Phase.generate)


def bounded(examples: int, *, steps: int = 50, shrink: bool = True) -> settings:
    """Settings for a property: so many examples with --long, else a fifth; `steps` is for state machines."""
    return settings(
        max_examples=in_all(max(examples // 5, 10), long=examples),
        stateful_step_count=steps,
        phases=(*QUICK_PHASES, Phase.shrink) if shrink or os.environ.get("GANTRY_SHRINK") else QUICK_PHASES,
        deadline=None,
        derandomize=os.environ.get("CI", "").lower() == "true",
        database=None,  # nothing is left in the checkout
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
