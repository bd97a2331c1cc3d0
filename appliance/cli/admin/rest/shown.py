"""An answer of REST as lines for a person."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from appliance.cli.admin.output import when
from appliance.cli.tables import Cell, facts, table


def lines_of(answer: Any, rows: str | None, columns: Sequence[str]) -> list[str]:
    """A table where the answer is a list, or holds one under the key `rows`; else its facts, and lists below them."""
    items = answer if isinstance(answer, list) else answer.get(rows) if rows else None
    if items is not None:
        lines = table([name.replace("_", " ") for name in columns], [[cell(item.get(name)) for name in columns]
                                                                    for item in items])  # fmt: skip
        total = answer.get("total") if isinstance(answer, dict) else None
        return [*lines, f"{len(items)} of {total}"] if total is not None and total > len(items) else lines
    lists = {key: value for key, value in answer.items() if value and _is_rows(value)}
    lines = facts([(key.replace("_", " "), cell(value)) for key, value in answer.items() if key not in lists])
    for key, value in lists.items():
        names = list(value[0])
        lines += ["", f"{key.replace('_', ' ')}:", *table(names, [[cell(item.get(name)) for name in names]
                                                                  for item in value])]  # fmt: skip
    return lines


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def cell(value: Any) -> Cell:
    """A value as a table shows it: moments in this machine's zone, lists and objects in one line."""
    if isinstance(value, list):
        return ", ".join(str(cell(item)) for item in value) or None
    if isinstance(value, dict):
        return ", ".join(f"{name}={cell(item)}" for name, item in value.items() if item is not None) or None
    if isinstance(value, str):
        return moment(value) or value or None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | float) else None


def moment(text: str) -> str | None:
    """ "2026-11-21T07:30:00Z" as this machine's clocks show it; None for other texts."""
    if not (len(text) >= 19 and text[4:5] == "-" and text[10:11] == "T"):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when(round(at.timestamp() * 1000)) if at.tzinfo else None
