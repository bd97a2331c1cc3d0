"""Brokers that are taken out of service from here, by the steps of `gantry admin drain`.

Only the first step needs a process that continues it: routes are sent again until every client has renewed its own.
Where a drain is after that, and what is left, the broker says itself; a web process that ends in the first step leaves
the broker accepting, and its page says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from django.http import HttpRequest

from appliance.draining import steps
from appliance.draining.left import Left, look
from appliance.draining.steps import ROUTES_S
from dashboard.audit.notes import note
from dashboard.cluster.calls import CALL_ERRORS
from dashboard.cluster.errors import BrokerUnreachable, GatewayError, NotAllowed, explain
from dashboard.cluster.gateway import Gateway, gateway
from dashboard.cluster.values import BrokerRef
from dashboard.language.sentences import gettext

logger = logging.getLogger(__name__)

LOOK_TIMEOUT_S = 10.0  # it asks for each topic and group of the broker


class Phase(StrEnum):
    """off: it accepts messages. routes: producers are leaving. groups: it rejects messages, groups have some left."""

    OFF = "off"
    ROUTES = "routes"
    GROUPS = "groups"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Draining:
    """How far a broker's drain is. is_only_master: no other takes what producers send."""

    broker: str
    phase: Phase
    left: Left
    is_only_master: bool


@dataclass
class Drains:
    """Those in their first step. One a process, one of its services."""

    _until: dict[str, tuple[BrokerRef, float]] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await self.step()
            await asyncio.sleep(steps.AGAIN_S)

    async def step(self) -> None:
        """Tell the name servers again; a broker whose time has come rejects messages."""
        for name, (broker, until) in list(self._until.items()):
            try:
                await gateway().calls.call(lambda admin, name=broker.name: steps.leave_routes(admin, name))  # type: ignore[misc]
                if time.monotonic() >= until:
                    await gateway().calls.call(lambda admin, at=broker.address: steps.reject_writes(admin, at))  # type: ignore[misc]
                    self._until.pop(name, None)
                    logger.warning("broker rejects writes", extra={"event": "drain_rejects", "broker": name})
            except CALL_ERRORS as exc:  # tried again in the next step
                logger.warning("drain waits", extra={"event": "drain_waits", "broker": name, "why": str(exc)})

    async def begin(self, name: str, routes_s: float = steps.ROUTES_S) -> None:
        """Take producers away. Raises BrokerNotFound, NotAllowed for a slave, BrokerUnreachable."""
        broker = await _master(gateway(), name)
        await _asked(broker, gateway().calls.call(lambda admin: steps.leave_routes(admin, broker.name)))
        self._until[name] = (broker, time.monotonic() + routes_s)

    async def end(self, name: str) -> None:
        """It accepts messages again. Raises BrokerNotFound, NotAllowed, BrokerUnreachable."""
        broker = await _master(gateway(), name)
        self._until.pop(name, None)
        await _asked(broker, gateway().calls.call(lambda admin: steps.undrain(admin, broker.name, broker.address)))

    async def now(self, name: str) -> Draining:
        """Ask the broker. Raises BrokerNotFound, NotAllowed, BrokerUnreachable."""
        broker = await _master(gateway(), name)
        calls = gateway().calls
        left = await _asked(broker, calls.call(lambda admin: look(admin, broker.address), LOOK_TIMEOUT_S))
        phase = Phase.ROUTES
        if name not in self._until:
            rejects = await _asked(broker, calls.call(lambda admin: steps.rejects_writes(admin, broker.address)))
            phase = Phase.OFF if not rejects else Phase.GROUPS if left.groups else Phase.DRAINED
        masters = (await calls.cluster()).brokers
        return Draining(name, phase, left, len(masters) == 1)


drains = Drains()
Answer = TypeVar("Answer")


async def _asked(broker: BrokerRef, call: Awaitable[Answer]) -> Answer:
    try:
        return await call
    except GatewayError:
        raise
    except CALL_ERRORS as exc:
        raise BrokerUnreachable(f"{broker.name}: {explain(exc)}") from exc


async def _master(of: Gateway, name: str) -> BrokerRef:
    broker = await of.brokers.get(name)
    if broker.broker_id:
        raise NotAllowed(
            gettext("%(name)s is a slave: it accepts no messages, so there is nothing to drain.") % {"name": name}
        )
    return broker


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
