"""REST is imported by the first request that may need it: its schemas and operations cost more of a core than all pages
together, at each start, and who waits for the start wants to see that it is there.

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
NEEDS_NONE = ("/static/", "/healthz", "/readyz", "/metrics", "/login", "/first-run")


class RestUrls(URLResolver):
    """Addresses that are known once one of them is asked for: Django imports a module that is given by its name."""

    def __init__(self) -> None:
        super().__init__(RoutePattern(PREFIX), OPERATIONS, app_name="ninja", namespace="api")

    def _populate(self) -> None:
        """Django's, called by the first `reverse` of any page. In a namespace nothing is needed before it is named."""


class RestLoader(AsyncMiddleware):
    """Imports REST in a thread for the first request that may need it, so that sockets and others are answered
    meanwhile. Pages do as well: their forms name addresses of REST, and some have its schemas.
    """

    is_loaded = False

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not self.is_loaded and not request.path_info.startswith(NEEDS_NONE):
            await asyncio.to_thread(import_module, OPERATIONS)
            self.is_loaded = True
        response: HttpResponseBase = await self.get_response(request)
        return response
