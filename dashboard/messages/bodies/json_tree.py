"""JSON that folds: the lines of a pretty print, with each object and array in a <details>. No script is needed.

The element's whole text is the pretty print itself, so that copying it gives JSON.
"""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

NODES_MAX = 2000  # more are a plain text: a page of thousands of folds is slow, and helps no reader
DEPTH_MAX = 60


def fold(value: Any) -> SafeString | None:
    """The markup; None for what is no object or array, too deep, or too much."""
    if not isinstance(value, dict | list) or _count(value, 0) > NODES_MAX:
        return None
    return _lines(value, "", "", "")


def _count(value: Any, depth: int) -> int:
    """How many values there are; more than NODES_MAX as soon as there are too many, or they are too deep."""
    if not isinstance(value, dict | list):
        return 1
    if depth > DEPTH_MAX or len(value) > NODES_MAX:
        return NODES_MAX + 1
    total = 1
    for item in value.values() if isinstance(value, dict) else value:
        total += _count(item, depth + 1)
        if total > NODES_MAX:
            break
    return total


def _lines(value: Any, indent: str, key: str, comma: str) -> SafeString:
    """One value with its key, from its indent to its line end."""
    if not isinstance(value, dict | list) or not value:
        return format_html("{}{}{}{}\n", indent, key, json.dumps(value, ensure_ascii=False), comma)
    is_object = isinstance(value, dict)
    if isinstance(value, dict):
        items = [(f"{json.dumps(name, ensure_ascii=False)}: ", item) for name, item in value.items()]
    else:
        items = [("", item) for item in value]
    inner = format_html_join(
        "", "{}", ((_lines(item, indent + "  ", name, "," if at < len(items) - 1 else ""),)
                   for at, (name, item) in enumerate(items)),
    )  # fmt: skip
    return format_html(
        '<details open><summary data-n="{}">{}{}{}<span>\n</span></summary>{}</details>{}{}{}\n',
        len(items), indent, key, "{" if is_object else "[", inner, indent, "}" if is_object else "]", comma,
    )  # fmt: skip
