"""How long property tests may look: bounded by examples, never by a clock, and the same ones each time in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def bounded(examples: int, **more: int) -> settings:
    """Settings for a property: so many examples; state machines also take `stateful_step_count`."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=os.environ.get("CI", "").lower() == "true",
        database=None,  # nothing is left in the checkout; the seed is printed
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        **more,  # type: ignore[arg-type]
    )
