"""Asks each broker name that has its record in etcd how it would go on without its master: each some seconds, since
that reads etcd."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from django.conf import settings

from appliance.process.local_etcd import local_etcd
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.status.board import BrokerState
from dashboard.status.check import Check
from dashboard.status.failover import Failover, looked, not_elected

logger = logging.getLogger(__name__)

LOOK_S = 2.0
ETCD = "etcd"


class FailoverWatch:
    """states: of all brokers, as the sampler has them. seen: by broker name."""

    def __init__(self, gateway: Gateway, states: Callable[[], Iterable[BrokerState]]) -> None:
        self._gateway = gateway
        self._states = states
        self.seen: dict[str, Failover] = {}

    async def run(self) -> None:
        """Look until cancelled. A look that fails is logged."""
        while True:
            try:
                await self.look()
            except Exception:  # a bug in one reading must not end the watching
                logger.exception("looking at failover failed", extra={"event": "failover_look_failed"})
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Ask once, all names side by side; a name without a broker that tells of etcd is forgotten."""
        addresses: dict[str, list[str]] = {}
        for state in self._states():
            if state.facts is not None and state.facts.told.get("epochRegister") == ETCD:
                addresses.setdefault(state.broker_name, []).append(state.address)
        found = await asyncio.gather(*(self._ask(name, asked) for name, asked in addresses.items()))
        self.seen = {each.name: each for each in found}

    async def _ask(self, name: str, addresses: list[str]) -> Failover:
        told, why = None, ""
        try:
            told = await self._gateway.succession.failover(name, *addresses)
        except GatewayError as exc:
            why = str(exc)
        return looked(self.seen.get(name), name, told, why, time.time())


def problems() -> tuple[Check, ...]:
    """Of the appliance itself."""
    config = settings.APPLIANCE
    return (not_elected(),) if config.replicas > 1 and local_etcd(config.etcd_folder) is None else ()
