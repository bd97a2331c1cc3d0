"""Cutting a list into numbered pages, as the address asks for one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.http import HttpRequest

DIGITS_MAX = 5
Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of a list; `number` counts from 1 to `pages`."""

    number: int
    pages: int
    rows: Sequence[Row]


def page_of(request: HttpRequest, rows: Sequence[Row], rows_max: int) -> Page[Row]:
    """Return the page that `?page=` names, the nearest one that exists; the first for what is no number."""
    asked = request.GET.get("page", "1")
    pages = max(1, -(-len(rows) // rows_max))
    number = int(asked) if asked.isdecimal() and len(asked) <= DIGITS_MAX else 1
    number = min(max(1, number), pages)
    return Page(number, pages, rows[(number - 1) * rows_max : number * rows_max])


def head_cell(key: str, label: str, sort: str, down: bool, *, rises: bool) -> dict[str, str]:
    """The head of a column that a list sorts by: what a click on it asks for. rises: it starts with the smallest."""
    is_current = key == sort
    next_down = not down if is_current else not rises
    aria = ("descending" if down else "ascending") if is_current else "none"
    return {"key": key, "label": label, "down": "1" if next_down else "0", "aria": aria}
