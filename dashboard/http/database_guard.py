"""While the database can't be used no page can: each answers 503 with the reason, at once, and asks no database."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from dashboard.database.state import state
from dashboard.http.error_pages import database_unusable
from dashboard.http.middleware import AsyncMiddleware

LOOK_S = 0.5
_left_behind: set[asyncio.Future[HttpResponseBase]] = set()  # the loop keeps weak references only
# The page with the reason has styles and scripts, too.
NEED_NO_DATABASE = ("/healthz", "/readyz", "/words/", settings.STATIC_URL)


class DatabaseGuard(AsyncMiddleware):
    """Stands before sessions, which would wait for the database."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if state.why and not request.path.startswith(NEED_NO_DATABASE):
            return database_unusable(request, state.why)
        if settings.APPLIANCE.database_url and request.method in ("GET", "HEAD"):
            return await self._while_it_answers(request)
        response: HttpResponseBase = await self.get_response(request)
        return response

    async def _while_it_answers(self, request: HttpRequest) -> HttpResponseBase:
        """A server that falls silent holds up the requests that have asked it: those that only read are answered.

        The reading goes on until the server answers, or its connection ends; then no request waits for it.
        """
        reading = asyncio.ensure_future(self.get_response(request))
        try:
            while not (await asyncio.wait({reading}, timeout=LOOK_S))[0]:
                if state.why:
                    _left_behind.add(reading)
                    reading.add_done_callback(_forget)
                    return database_unusable(request, state.why)
        except asyncio.CancelledError:
            reading.cancel()
            raise
        response: HttpResponseBase = reading.result()
        return response


def _forget(reading: asyncio.Future[HttpResponseBase]) -> None:
    _left_behind.discard(reading)
    if not reading.cancelled():
        reading.exception()  # looked at: nothing else will
