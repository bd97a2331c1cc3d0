"""What a usual run takes less of: examples, messages. `--long` takes all."""

from __future__ import annotations

import os

LONG = "GANTRY_TEST_LONG"  # in the environment of a run with --long; modules ask while they are imported


def in_all(usual: int, *, long: int) -> int:
    """So many in a usual run, or with --long."""
    return long if LONG in os.environ else usual
