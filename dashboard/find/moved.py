"""Addresses that pages had in 0.1.0: a bookmark of that time leads to the page where it is now."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.urls import reverse

from dashboard.access.permissions import Permission, requires


@requires(Permission.ACCOUNT)
async def moved(request: HttpRequest, to: str, **parts: object) -> HttpResponsePermanentRedirect:
    """Lead to the page `to`, with the query as it came; that page checks who may open it."""
    query = request.META["QUERY_STRING"]
    return HttpResponsePermanentRedirect(reverse(to, kwargs=parts) + (f"?{query}" if query else ""))
