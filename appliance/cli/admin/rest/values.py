"""Values that the verbs read from words."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import Any

TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)?")
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def choice(*known: Any) -> Callable[[str], Any]:
    """One of these words or numbers."""
    values = {str(value): value for value in known}

    def read(text: str) -> Any:
        if text not in values:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(values)}")
        return values[text]

    return read


def number(text: str) -> float:
    """A number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0, such as 300")
    return value


def integer(text: str) -> int:
    """A whole number, also below zero."""
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, such as -100")
    return int(text)


def seconds(text: str) -> float:
    """ "90", "30s", "5min", "2h" or "7d" in seconds."""
    found = TIME.fullmatch(text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: use 30s, 5min, 2h or 7d")
    return float(found[1]) * SECONDS[found[2] or "s"]
