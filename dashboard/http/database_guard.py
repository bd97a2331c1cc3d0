"""While the database can't be used no page can: each answers 503 with the reason, at once, and asks no database."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from dashboard.database.state import state
from dashboard.http.error_pages import database_unusable
from dashboard.http.middleware import AsyncMiddleware

NEED_NO_DATABASE = ("/healthz", settings.STATIC_URL)


class DatabaseGuard(AsyncMiddleware):
    """Stands before sessions, which would wait for the database."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if state.why and not request.path.startswith(NEED_NO_DATABASE):
            return database_unusable(request, state.why)
        response: HttpResponseBase = await self.get_response(request)
        return response
