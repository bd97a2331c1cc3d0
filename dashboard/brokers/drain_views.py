"""A broker's page “Drain”: what is left there, and the buttons."""

from __future__ import annotations

from collections.abc import Awaitable

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import tell_trouble
from dashboard.brokers.draining import Phase, drains, start_drain, undo_drain
from dashboard.brokers.tabs import Tabs
from dashboard.cluster.errors import GatewayError
from dashboard.language.sentences import gettext


@requires(Permission.CONFIG_WRITE)
async def drain(request: HttpRequest, name: str) -> HttpResponse:
    now = await drains.now(name)
    context = {
        "drain": now,
        "name": name,
        "tabs": Tabs(name, name, "drain"),
        "is_on": now.phase != Phase.OFF,
        "shape": f"{now.phase}",
    }
    return render(request, "brokers/drain.html", context)


@requires(Permission.CONFIG_WRITE, ACT)
async def start(request: HttpRequest, name: str) -> HttpResponse:
    return await _done(request, name, start_drain(request, name), gettext("Producers are leaving %(name)s."))


@requires(Permission.CONFIG_WRITE, ACT)
async def undo(request: HttpRequest, name: str) -> HttpResponse:
    return await _done(request, name, undo_drain(request, name), gettext("%(name)s accepts messages."))


async def _done(request: HttpRequest, name: str, change: Awaitable[None], said: str) -> HttpResponse:
    """Make the change; what speaks against it is said on the page that is shown next."""
    try:
        await change
        notes.success(request, said % {"name": name})
    except GatewayError as exc:
        tell_trouble(request, str(exc))
    return redirect("broker-drain", name)
