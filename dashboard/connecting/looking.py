"""The ticks as of now."""

from __future__ import annotations

from dashboard.clients.listing import client_book
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.connecting.ticks import Tick, ticks_of
from dashboard.status.board import board


async def current_ticks(gateway: Gateway) -> tuple[Tick, ...]:
    """What the sampler and the brokers' connections say; without a cluster, only what is known."""
    try:
        clients = await client_book.listing(gateway)
    except GatewayError:
        return ticks_of(board.snapshot, None)
    return ticks_of(board.snapshot, clients)
