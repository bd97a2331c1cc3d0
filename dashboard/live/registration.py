"""Whether clients find a way to the appliance's own brokers: a name server tells of those that have registered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from gantrymq.timeouts import timeout

LOOK_S = 0.05  # between two looks: a broker registers within some milliseconds of its own start


async def wait_registered(gateway: Gateway, addresses: Collection[str], within_s: float) -> list[str]:
    """Wait until the name server knows a broker at each address. Returns those that it did not know in time."""
    missing = set(addresses)
    with contextlib.suppress(TimeoutError):
        async with timeout(within_s):
            while missing:
                with contextlib.suppress(GatewayError):  # the name server is silent, which the page tells
                    cluster = await gateway.brokers.list(timeout_s=within_s, max_age_s=0)
                    missing -= {broker.address for broker in (*cluster.brokers, *cluster.slaves)}
                if missing:
                    await asyncio.sleep(LOOK_S)
    return sorted(missing)
