"""Every address of the dashboard, with examples for what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

OPEN = {"login", "first-run", "invitation", "theme", "healthz", "static"}
EXAMPLES = {
    "name": "no-such-topic",
    "place": "broker-a.0.0",
    "form": "csv",
    "token_id": "1",
    "kind": "webhook",
    "path": "dashboard/app.css",
}


def all_patterns(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for item in (resolver or get_resolver()).url_patterns:
        if isinstance(item, URLResolver):
            yield from all_patterns(item, prefix + str(item.pattern))
        else:
            yield prefix + str(item.pattern), item


def example_address(route: str) -> str:
    route = re.sub(r"\(\?P<(\w+)>.*?\)(?=/|\$|$)", lambda found: EXAMPLES.get(found[1], "1"), route)
    route = re.sub(r"<(?:\w+:)?(\w+)>", lambda found: EXAMPLES.get(found[1], "1"), route)
    return "/" + route.replace("^", "").replace("$", "").replace("\\Z", "")
