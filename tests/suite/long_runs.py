"""What a usual run takes less of: examples, messages, and expensive tests (`turns.py`). `--long` takes all.

`--long-part 2/4` is the second of four turns, which together take every test. `.ci/run` chooses one by the commit; who
says nothing gets the first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

OPTION = "--long"
PART = "--long-part"
FIRST, ALL = "1/4", "1/1"
LONG = "GANTRY_TEST_LONG"  # the part, in the environment: modules ask while they are imported

Amount = TypeVar("Amount")
Case = TypeVar("Case")


def part_of(text: str) -> str:
    """The same text. ValueError unless it is the number of a part and how many there are."""
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(text)
    return text


def in_all(usual: Amount, *, long: Amount) -> Amount:
    """So many, or such a one, in a usual run, or with --long."""
    return long if os.environ.get(LONG) == ALL else usual


def in_turn(cases: Sequence[Case]) -> list[Case]:
    """Those whose turn it is: one of each four, another one each time, so that of a grid no row is all there is.

    If there are fewer than turns, each turn has one.
    """
    number, parts = map(int, os.environ.get(LONG, FIRST).split("/"))
    if 0 < len(cases) < parts:
        return [cases[(number - 1) % len(cases)]]
    return [case for at, case in enumerate(cases) if (at + at // parts) % parts == number - 1]
