"""While the database can't be used no page can: each answers 503 with the reason, at once, and asks no database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from dashboard.database.state import state
from dashboard.http.error_pages import database_unusable

NEED_NO_DATABASE = ("/healthz", settings.STATIC_URL)


class DatabaseGuard:
    """Stands before sessions, which would wait for the database."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        assert iscoroutinefunction(get_response)
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if state.why and not request.path.startswith(NEED_NO_DATABASE):
            return database_unusable(request, state.why)
        response: HttpResponseBase = await self.get_response(request)
        return response
