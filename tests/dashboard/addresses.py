"""Every address of the dashboard, with examples for what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.api.operations import api

OPEN = {
    "login", "provider", "provider-back", "first-run", "invitation", "theme", "language", "words", "healthz", "readyz",
    "static",
}  # fmt: skip
EXAMPLES = {
    "name": "no-such-topic", "place": "broker-a.0.0", "form": "csv", "token_id": "1", "kind": "webhook",
    "path": "dashboard/app.css",
}  # fmt: skip


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


METHODS = ("get", "post", "put", "patch", "delete")
_PARTS = {
    "name": "no-such", "run_id": "no-such", "place": "broker-a.0.0", "form": "csv", "message_id": "no-such",
} | dict.fromkeys(
    (
        "token_id", "number", "run", "run_id", "invitation_id", "alert_id", "rule_id", "channel_id", "mute_id",
        "search_id",
    ),
    "1000000",
)  # fmt: skip


def guarded_patterns() -> dict[str, str]:
    """Name and example address of everything that is neither open nor REST."""
    return {
        item.name: example_address(route)
        for route, item in all_patterns()
        if item.name not in OPEN and not getattr(item.callback, "checks_itself", False)
    }


def rest_operations() -> set[tuple[str, str]]:
    """Method and example address, below /api/v1, of each operation."""
    return {
        (method.lower(), re.sub(r"{(?:int:)?(\w+)}", lambda found: _PARTS[found[1]], prefix + path))
        for prefix, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        for method in operation.methods
    }
