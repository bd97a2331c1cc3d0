"""REST is imported when it is first asked for: its schemas and operations cost more of a core than all pages together,
at each start, and many web processes are never asked.

What imports it whole, and so notices a mistake in it, are the tests, `manage.py check`, and the first request.
"""

from __future__ import annotations

import asyncio
from importlib import import_module

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLResolver
from django.urls.resolvers import RoutePattern

from dashboard.http.middleware import AsyncMiddleware

PREFIX = "api/v1/"
OPERATIONS = "dashboard.api.operations"


class RestUrls(URLResolver):
    """Addresses that are known once one of them is asked for: Django imports a module that is given by its name."""

    def __init__(self) -> None:
        super().__init__(RoutePattern(PREFIX), OPERATIONS, app_name="ninja", namespace="api")

    def _populate(self) -> None:
        """Django's, called by the first `reverse` of any page. In a namespace nothing is needed before it is named."""


class RestLoader(AsyncMiddleware):
    """Imports REST in a thread, before Django looks for the address, so that pages are answered meanwhile."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(f"/{PREFIX}"):
            await asyncio.to_thread(import_module, OPERATIONS)  # of a loaded module a look into a table
        response: HttpResponseBase = await self.get_response(request)
        return response
