"""The addresses of definitions, and of the accounts with which clients sign.

What answers is imported by the first request: its schemas are pydantic's, which every start of a web process would
wait for (see dashboard/api/later.py), and few ask for these pages.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from dashboard.access.permissions import FORM, Permission, requires


@requires(Permission.CONFIG_READ)
async def export(request: HttpRequest) -> HttpResponse:
    from dashboard.definitions import pages

    return await pages.export(request)


@requires(Permission.CONFIG_WRITE, FORM)
async def definitions(request: HttpRequest) -> HttpResponse:
    from dashboard.definitions import pages

    return await pages.definitions(request)


@requires(Permission.CONFIG_WRITE, FORM)
async def accounts(request: HttpRequest) -> HttpResponse:
    from dashboard.definitions import pages

    return await pages.accounts(request)
