"""What there is now: the ticks, and where clients of RocketMQ 5 connect."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext

from dashboard.clients.listing import client_book
from dashboard.clients.values import ClientListing
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.topic_requests import LISTING_SHARED_S
from dashboard.groups.group_cache import group_book
from dashboard.language.sentences import joined
from dashboard.status.board import Snapshot, board

READS_MAX = 32  # topics that one look asks for; of many topics the others are known from looks before
NAMES_SHOWN = 2


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


@dataclass(frozen=True, slots=True)
class Tick:
    """One step. told: what is there, or what to do."""

    title: str
    is_done: bool
    told: str


@dataclass(frozen=True, slots=True)
class Traces:
    """What clients left that have gone again: the topic that was written to last, the group that read last; "" none."""

    topic: str = ""
    group: str = ""


def ticks_of(snapshot: Snapshot | None, clients: ClientListing | None, traces: Traces = Traces()) -> tuple[Tick, ...]:
    """Name server, broker, producer, consumer. A client that has gone again has been there."""
    if snapshot is None:
        return tuple(
            Tick(title, False, gettext("not checked yet"))
            for title in (gettext("Name server"), gettext("Broker"), gettext("Producer"), gettext("Consumer"))
        )
    masters = [broker.name for broker in snapshot.masters if broker.is_answering]
    silent = next((broker for broker in snapshot.masters if not broker.is_answering), None)
    why = snapshot.namesrv_why
    broker_told = ", ".join(masters) or (
        f"{silent.name}: {silent.why}" if silent else gettext("none is registered yet")
    )
    named = clients.named if clients is not None else []
    senders = _named_groups([(one.name, one.sends_as) for one in named])
    readers = _named_groups([(one.name, one.consumer_groups) for one in named])
    return (
        Tick(gettext("Name server"), why is None, snapshot.namesrv if why is None else why),
        Tick(gettext("Broker"), bool(masters), broker_told),
        Tick(
            gettext("Producer"),
            bool(senders or traces.topic),
            _some(senders) or _written(traces.topic) or gettext("run the program below, or send one from here"),
        ),
        Tick(
            gettext("Consumer"),
            bool(readers or traces.group),
            _some(readers) or _read(traces.group) or gettext("run the program below"),
        ),
    )


def _named_groups(clients: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Groups of (client, its groups); a single client is named too, so that the one just started is found."""
    groups = sorted({group for _, groups in clients for group in groups})
    alone = [client for client, groups in clients if groups]
    if len(groups) == len(alone) == 1:
        return [gettext("%(group)s at %(client)s") % {"group": groups[0], "client": alone[0]}]
    return groups


def _written(topic: str) -> str:
    return gettext("not connected now; messages are in %(topic)s") % {"topic": topic} if topic else ""


def _read(group: str) -> str:
    return gettext("not connected now; %(group)s has read") % {"group": group} if group else ""


def _some(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return joined(names[:NAMES_SHOWN]) + (gettext(" and %(count)s more") % {"count": more} if more > 0 else "")
