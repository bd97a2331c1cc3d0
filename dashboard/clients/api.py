"""/api/v1/clients: who is connected, and the end of one's connections."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note
from dashboard.clients.listing import client_book, disconnect, find_client
from dashboard.clients.selection import in_order, select
from dashboard.cluster.gateway import gateway
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Listed, part_of
from dashboard.rest.routes import Routes
from dashboard.rest.values import Given, MaybeFromSeconds, Out, named

router = Routes(asks_cluster=True)
READ = Token(Permission.CLUSTER_READ)
WRITE = Token(Permission.CLIENTS_WRITE)


class ConnectionOut(Out):
    """One connection to one broker. requests: since it was opened; request_rate: a second.

    proxy: host:port of the proxy to which a client of RocketMQ 5 is connected, empty for others.
    """

    broker: str
    address: str
    opened_at: MaybeFromSeconds
    last_seen_at: MaybeFromSeconds
    has_tls: bool | None
    account: str | None
    requests: int | None
    request_rate: float | None = named("rate")
    proxy: str


class ClientOut(Out):
    """A client. client_id is empty for what says none, such as a tool. is_twice: two processes use the id.

    producer_groups: of a client of RocketMQ 5, the topics that it publishes. serves: host:port of a proxy.
    """

    client_id: str
    language: str
    version: str = named("version_text")
    producer_groups: list[str]
    consumer_groups: list[str]
    is_twice: bool
    serves: str
    connections: list[ConnectionOut]


class ClientList(Listed[ClientOut]):
    """The clients that match. telling_less: brokers of Apache, which tell neither TLS, accounts nor rates."""

    telling_less: list[str]


class DisconnectIn(Given):
    """Whose connections are to be closed."""

    client_id: str = Field(min_length=1, max_length=1024)


class ClosedOut(Schema):
    """How many connections a broker closed."""

    broker: str
    closed: int


class ClosedList(Listed[ClosedOut]):
    """By broker. The client may connect again."""


@router.get("", auth=READ, summary="List connected clients")
async def list_clients(
    request: HttpRequest,
    q: str = Query("", max_length=255, description="part of id, address, group, account or language"),
    tools: bool = Query(False, description="connections without a client id, too"),
    twice: bool = Query(False, description="only ids that two processes use"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> ClientList:
    part = part_of(cursor, limit)
    listing = await client_book.listing(gateway())
    found = in_order(select(listing, q, with_tools=tools, only_twice=twice), "client", down=False)
    items, silent = map(ClientOut.of, found[part.rows]), list(listing.telling_less)
    return ClientList.cut(part, items, len(found), listing.failures, telling_less=silent)


@router.post("/disconnect", auth=WRITE, response=(404, 409), summary="Close a client's connections")
async def disconnect_client(request: HttpRequest, body: DisconnectIn) -> ClosedList:
    closed = await disconnect(gateway(), await find_client(gateway(), body.client_id))
    note(request, "client disconnected", body.client_id, {name: f"{count} closed" for name, count in closed.items()})
    return ClosedList.whole(ClosedOut(broker=broker, closed=count) for broker, count in closed.items())
