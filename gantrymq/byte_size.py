"""How a number of bytes is said to people: "512 B", "3.2 GiB", "22 TiB". Exact numbers are for programs."""

from __future__ import annotations

from math import isfinite

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def readable(count: int | float, space: str = " ") -> str:
    """In the largest unit of which there is one, with three digits or so; "—": it is no number of bytes."""
    amount, unit = float(count), 0
    if not isfinite(amount):
        return "—"
    while abs(amount) >= 1023.5 and unit < len(_UNITS) - 1:  # what is rounded to 1024 is one of the next
        amount /= 1024
        unit += 1
    digits = f"{amount:.0f}" if unit == 0 or abs(amount) >= 99.95 else f"{amount:.1f}"
    return f"{digits}{space}{_UNITS[unit]}"
