"""Starting and undoing a drain, with what the log and the audit log say of it: page and REST do it here."""

from __future__ import annotations

import logging

from django.http import HttpRequest

from appliance.draining.steps import ROUTES_S
from dashboard.audit.notes import note
from dashboard.brokers.draining import drains

logger = logging.getLogger(__name__)


async def start_drain(request: HttpRequest, name: str, routes_s: float = ROUTES_S) -> None:
    """Raises what Drains.begin raises."""
    await drains.begin(name, routes_s)
    logger.warning("drain started", extra={"event": "drain_started", "broker": name})
    note(request, "drain of a broker started", name, {"routes_s": routes_s})


async def undo_drain(request: HttpRequest, name: str) -> None:
    """Raises what Drains.end raises."""
    await drains.end(name)
    logger.warning("drain undone", extra={"event": "drain_undone", "broker": name})
    note(request, "drain of a broker undone", name, {})
