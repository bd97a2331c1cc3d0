"""Limits the log-ins in progress, before Django processes them.

Even a refused log-in takes some milliseconds of the pages' time: middleware, a form, a template. So only a few are
processed at a time, and the others get a prepared response. Browsers that have logged in before have places of their
own, and so have the two steps of a sign-in with a provider: while that one hangs, passwords work.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from dashboard.access.in_flight import InFlight, TooManyAtOnce
from dashboard.access.known_browsers import Source, browser_of_cookies, counted_source
from dashboard.http.client_address import client_address
from dashboard.http.headers import content_security_policy
from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 2
PASSWORD, START, BACK = "/login", "/login/provider", "/login/provider/back"
_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Busy</title>
<h1>Too many log-ins at once</h1><p>Nothing was tried. Go back, and try again in a moment.</p></html>
"""
_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-length", str(len(_PAGE)).encode()),
    (b"retry-after", str(RETRY_AFTER_S).encode()),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", content_security_policy().encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]

Application = Callable[[Any, Any, Any], Awaitable[None]]


class LogInLimit:
    """An ASGI application in front of the pages."""

    def __init__(self, pages: Application) -> None:
        self._pages = pages
        self._unknown_sources = {
            PASSWORD: InFlight(all_max=16, of_one_max=4),
            START: InFlight(all_max=8, of_one_max=2),
            BACK: InFlight(all_max=8, of_one_max=2),
        }
        self._known = {step: InFlight(all_max=16, of_one_max=2) for step in self._unknown_sources}
        self._log_limit = LogLimit()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        step = _step_of(scope)
        if step is None:
            await self._pages(scope, receive, send)
            return
        source = _source_of(scope)
        places = (self._known if source.is_known else self._unknown_sources)[step]
        try:
            places.enter(source.key)
        except TooManyAtOnce:
            await self._refuse(scope, send)
            return
        try:
            await self._pages(scope, receive, send)
        finally:
            places.leave(source.key)

    async def _refuse(self, scope: dict[str, Any], send: Any) -> None:
        address = client_address(scope)
        left_out = self._log_limit.left_out("log_ins_refused", address)
        if left_out is not None:
            facts = {"event": "log_ins_refused", "address": address, "left_out": left_out}
            logger.warning("too many log-ins at once", extra=facts)
        await send({"type": "http.response.start", "status": 429, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _PAGE})


def is_log_in(scope: dict[str, Any]) -> bool:
    """Whether a request is bounded here."""
    return _step_of(scope) is not None


def _step_of(scope: dict[str, Any]) -> str | None:
    """A password that is tried, or a step of a sign-in with a provider. A proxy may have added a prefix."""
    path: str = scope["path"]
    if scope["method"] == "POST" and path.endswith(PASSWORD):
        return PASSWORD
    return next((step for step in (START, BACK) if path.endswith(step)), None)


def _source_of(scope: dict[str, Any]) -> Source:
    """The browser when it has logged in to any account before, else the address."""
    for name, value in scope["headers"]:
        if name == b"cookie" and (browser := browser_of_cookies(value.decode("latin-1"))):
            return Source(f"browser:{browser}", is_known=True)
    return counted_source(client_address(scope))
