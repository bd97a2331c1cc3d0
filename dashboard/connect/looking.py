"""What there is now: the ticks, and where clients of RocketMQ 5 connect."""

from __future__ import annotations

from django.conf import settings

from dashboard.clients.listing import client_book
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.topic_requests import LISTING_SHARED_S
from dashboard.connect.ticks import Tick, Traces, ticks_of
from dashboard.groups.group_cache import group_book
from dashboard.status.board import board

READS_MAX = 32  # topics that one look asks for; of many topics the others are known from looks before


async def current_ticks(gateway: Gateway) -> tuple[Tick, ...]:
    """What the sampler and the brokers' connections say; without a cluster, only what is known."""
    try:
        clients = await client_book.listing(gateway)
        is_complete = any(one.sends_as for one in clients.named) and any(one.consumer_groups for one in clients.named)
        traces = Traces() if is_complete else Traces(await _written_last(gateway), _read_last())
    except GatewayError:
        return ticks_of(board.snapshot, None)
    return ticks_of(board.snapshot, clients, traces)


async def proxy_endpoints(gateway: Gateway) -> tuple[str, ...]:
    """host:port of each proxy: of this appliance's own; of another cluster those that its brokers know."""
    own: tuple[str, ...] = settings.APPLIANCE.proxy_endpoints
    if own or not settings.APPLIANCE.attach:
        return own
    try:
        clients = await client_book.listing(gateway)
    except GatewayError:
        return ()
    return tuple(sorted({one.serves for one in clients.clients if one.serves}))


async def _written_last(gateway: Gateway) -> str:
    """The applications' topic with the newest message; one whose messages have all expired counts, too."""
    rows = (await gateway.topics.list(max_age_s=LISTING_SHARED_S)).rows
    rows = tuple(row for row in rows if row.kind == "normal")
    known = await gateway.topics.with_metrics(rows, reads_max=READS_MAX)
    written = [
        (row.metrics.value.last_write_ms, row.name)
        for row in known
        if row.metrics is not None and row.metrics.value is not None and row.metrics.value.put_total
    ]
    return max(written, default=(0, ""))[1]


def _read_last() -> str:
    """The group that has confirmed the newest message."""
    read = ((one.last_consumed_ms, one.name) for one in group_book.seen if one.last_consumed_ms)
    return max(read, default=(0, ""))[1]
