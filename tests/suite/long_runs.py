"""What a usual run leaves out or takes less of: examples, messages, further combinations. `--long` takes all.

`--long-part 2/4` takes the modules of the second of four parts: `.ci/run` chooses one by the commit, so that nothing
stays out for long.

A test marked `long` shows again what a usual run shows with another client or load. Of the combinations of one marked
`each_value`, a usual run takes as few as have every value of every parameter. A module that is named on the command
line runs whole.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

OPTION = "--long"
PART = "--long-part"
ALL = "1/1"
MARKER = "long"
EACH_VALUE = "each_value"
LONG = "GANTRY_TEST_LONG"  # in the environment of a run with --long, its part; modules ask while they are imported

Amount = TypeVar("Amount")


def part_of(text: str) -> str:
    """The same text. ValueError unless it is the number of a part and how many there are."""
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(text)
    return text


def in_all(usual: Amount, *, long: Amount) -> Amount:
    """So many, or such a one, in a usual run, or with --long."""
    return long if os.environ.get(LONG) == ALL else usual


def left_out(items: Sequence[pytest.Item], arguments: Sequence[str]) -> set[pytest.Item]:
    """Those that a run with these arguments does not take. arguments: paths, also with ::names."""
    named = {Path(argument.partition("::")[0]).resolve() for argument in arguments}
    asked = [item for item in items if item.path not in named and not is_taken(item.path.name)]
    grids: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in asked:
        if item.get_closest_marker(EACH_VALUE):
            grids[item.nodeid.partition("[")[0]].append(item)
    out = {item for item in asked if item.get_closest_marker(MARKER)}
    return out.union(*(set(cases) - set(_with_each_value(cases)) for cases in grids.values()))


def is_taken(name: str) -> bool:
    """Whether this run takes all of a module, or what else has a name: with --long, or with the part that it is in."""
    number, _, parts = os.environ.get(LONG, "1/0").partition("/")
    return parts != "0" and zlib.crc32(name.encode()) % int(parts) == int(number) - 1


def _with_each_value(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Again and again the first of those that show most that was not shown yet."""
    values = {case: {(name, repr(value)) for name, value in case.callspec.params.items()} for case in cases}  # type: ignore[attr-defined]
    left, taken = set[tuple[str, str]]().union(*values.values()), []
    while left:
        taken.append(max(cases, key=lambda case: len(values[case] & left)))
        left -= values[taken[-1]]
    return taken
