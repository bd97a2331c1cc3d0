"""Conditions on what is inside a JSON body: `$.customer.id=7`, `$.amount>=100`, `$.items[*].sku="a 1"`. Pure.

A small part of JSONPath: names, numbers of array items, and [*] or .* for any. A condition holds when it holds for one
of the values that the path leads to; != holds when there is such a value and none is equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Step = str | int | None  # a name, an item's number, any

STEPS_MAX = 32
VALUES_MAX = 1000  # that one path is followed to: [*] within [*] multiplies
_STEP = re.compile(r'\.(?P<name>[^\s.\[\]"]+)|\["(?P<quoted>[^"]*)"\]|\[(?P<item>\d{1,9}|\*)\]')


@dataclass(frozen=True, slots=True)
class JsonCondition:
    """sign: =, !=, <, <=, >, >=, or "" for a path that leads to something. text: as it was written."""

    text: str
    steps: tuple[Step, ...]
    sign: str = ""
    wanted: str = ""

    def holds(self, document: Any) -> bool:
        """Whether it holds for what a body is in JSON; None is a body that is no JSON."""
        found = [value for value, _ in zip(_values(document, self.steps), range(VALUES_MAX), strict=False)]
        if self.sign == "!=":
            return bool(found) and not any(_compares(value, "=", self.wanted) for value in found)
        return bool(found) if not self.sign else any(_compares(value, self.sign, self.wanted) for value in found)


def read_path(text: str) -> tuple[Step, ...] | None:
    """The steps of "$.items[0].sku"; None for what is no path."""
    at = 1
    steps: list[Step] = []
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or len(steps) == STEPS_MAX:
            return None
        item = step["item"]
        if item is not None:
            steps.append(None if item == "*" else int(item))
        else:
            name = step["name"] if step["name"] is not None else step["quoted"]
            steps.append(None if step["name"] == "*" else name)
        at = step.end()
    return tuple(steps) or None


def _values(value: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step is None:
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for one in inside:
            yield from _values(one, rest)
    elif isinstance(value, dict) and str(step) in value:
        yield from _values(value[str(step)], rest)
    elif isinstance(value, list) and isinstance(step, int) and step < len(value):
        yield from _values(value[step], rest)


def _compares(value: Any, sign: str, wanted: str) -> bool:
    """Numbers as numbers, all else as text; true, false and null as JSON writes them, and in no order."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return _in_order(value, float(wanted), sign)
        except ValueError:
            return False
    if isinstance(value, str):
        return _in_order(value, wanted, sign)
    known = {None: "null", True: "true", False: "false"}
    return sign == "=" and not isinstance(value, dict | list) and known[value] == wanted


def _in_order(one: Any, other: Any, sign: str) -> bool:
    match sign:
        case "=":
            return bool(one == other)
        case "<":
            return bool(one < other)
        case "<=":
            return bool(one <= other)
        case ">":
            return bool(one > other)
        case _:
            return bool(one >= other)
