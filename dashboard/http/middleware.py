"""What every middleware of the dashboard has in common: it is a coroutine, and so is what it stands before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase


class AsyncMiddleware:
    """Calls `self.get_response`. Django would run one that is not marked so in a thread, for each request."""

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        assert iscoroutinefunction(get_response)
        self.get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        return response
