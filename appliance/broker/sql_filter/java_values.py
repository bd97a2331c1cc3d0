"""Java's values and how RocketMQ compares them: a text beside a number is read as a number of that very type.

Imposed by RocketMQ's ComparisonExpression. A text that is no such number is no "false" but an error that ends the whole
evaluation: with `a` = "x" neither `a > 5 OR TRUE` nor `a <> 5` is true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from appliance.broker.sql_filter.errors import EvaluationError

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DIGITS_MAX = 4000  # Python refuses to read more


class Long(int):
    """A whole number that Java keeps in 64 bits; plain `int` stands for one of 32."""


Value = bool | int | float | str | None

_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fFdD]?)")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]++\.?[0-9a-fA-F]*+|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++[fFdD]?")
_BLANK = "".join(map(chr, range(33)))  # what Java's trim takes off


def read_int(text: str) -> int:
    """Integer.valueOf: 32 bits, digits with or without a sign, no blanks. Raises EvaluationError."""
    number = _read_whole(text)
    if -INT_MAX - 1 <= number <= INT_MAX:
        return number
    raise EvaluationError(f"{text[:40]!r} is not a 32-bit number")


def read_long(text: str) -> int:
    """Long.valueOf, likewise of 64 bits."""
    number = _read_whole(text)
    if -LONG_MAX - 1 <= number <= LONG_MAX:
        return number
    raise EvaluationError(f"{text[:40]!r} is no 64-bit number")


def _read_whole(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or max(digits) > "\uffff":  # Java looks at 16-bit units
        raise EvaluationError(f"{text[:40]!r} is not a whole number")
    if len(digits) > DIGITS_MAX:
        digits = digits.lstrip("0") or "0"
        if len(digits) > DIGITS_MAX:
            raise EvaluationError("a number of too many digits")
        return -int(digits) if text[0] == "-" else int(digits)
    return int(text)


def read_double(text: str) -> float:
    """Double.valueOf: also NaN, Infinity, hexadecimal, a trailing f or d, blanks around it."""
    stripped = text.strip(_BLANK)
    if _DECIMAL.fullmatch(stripped):
        if stripped[-1] in "fFdD":
            stripped = stripped[:-1]
        return float(stripped)
    if _HEXADECIMAL.fullmatch(stripped):
        if stripped[-1] in "fFdD":
            stripped = stripped[:-1]
        try:
            return float.fromhex(stripped)
        except OverflowError:
            return -math.inf if stripped[0] == "-" else math.inf
    raise EvaluationError(f"{text[:40]!r} is not a number")


def read_boolean(text: str) -> bool:
    """Boolean.valueOf: "true" in any case is true, everything else is false."""
    return text.lower() == "true"


_READERS: dict[type, Callable[[str], int | float | bool]] = {
    bool: read_boolean,
    int: read_int,
    Long: read_long,
    float: read_double,
}


def are_equal(left: Value, right: Value) -> bool | None:
    """The `=` of RocketMQ: with NULL on the left unknown, on the right false, on both sides true."""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    return compare(left, right) == 0


def compare(left: bool | int | float | str, right: bool | int | float | str) -> int:
    """Negative, 0 or positive. Values that have nothing in common are said to be in ascending order."""
    left_type, right_type = type(left), type(right)
    if left_type is not right_type:
        if left_type is str:
            left = _READERS[right_type](left)  # type: ignore[arg-type]
        elif left_type is bool:
            if right_type is str:
                raise EvaluationError("TRUE or FALSE is on the left of a text: RocketMQ fails there")
            return -1
        elif right_type is str:
            right = _READERS[left_type](right)  # type: ignore[arg-type]
        elif right_type is bool:
            return -1
        elif left_type is float or right_type is float:
            left, right = float(left), float(right)
    if isinstance(left, float):
        return compare_doubles(left, right)  # type: ignore[arg-type]
    return (left > right) - (left < right)  # type: ignore[operator]


def compare_doubles(left: float, right: float) -> int:
    """Double.compare: NaN equals itself and is above everything, -0.0 is below 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right:
        return int(math.copysign(1, left) - math.copysign(1, right)) if left == 0 else 0
    return (left != left) - (right != right)
