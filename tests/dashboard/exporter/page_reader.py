"""A page of /metrics, read again."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r'^(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read_page(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name. A line that is none fails."""
    page: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = _SAMPLE.match(line)
        assert found is not None, line
        page.setdefault(found[1], []).append((dict(_LABEL.findall(found[2] or "")), float(found[3])))
    return page
