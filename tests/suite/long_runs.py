"""What a usual run leaves out or takes less of: examples, messages, further combinations. `--long` takes all.

A test marked `long` shows again what a usual run shows with another client, another combination or a smaller load. A
module that is named on the command line runs whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

OPTION = "--long"
MARKER = "long"
LONG = "GANTRY_TEST_LONG"  # in the environment of a run with --long; modules ask while they are imported


def in_all(usual: int, *, long: int) -> int:
    """So many in a usual run, or with --long."""
    return long if LONG in os.environ else usual


def left_out(items: Iterable[pytest.Item], arguments: Sequence[str]) -> list[pytest.Item]:
    """Those that a run with these arguments does not take. arguments: paths, also with ::names."""
    if LONG in os.environ:
        return []
    named = {Path(argument.partition("::")[0]).resolve() for argument in arguments}
    return [item for item in items if item.get_closest_marker(MARKER) and item.path not in named]
