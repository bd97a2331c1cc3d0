"""/api/v1/clients: who is connected, and the end of one's connections."""

from __future__ import annotations

import logging

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note
from dashboard.clients.closing import disconnect, find_client
from dashboard.clients.listing import client_book
from dashboard.clients.selection import in_order, select
from dashboard.cluster.gateway import gateway
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, caller
from dashboard.rest.values import Given, MaybeFromSeconds, Offset, Out, named

logger = logging.getLogger(__name__)

router = Router()
LIST_MAX = 500
READ = Token(Permission.CLUSTER_READ)
WRITE = Token(Permission.CLIENTS_WRITE)


class ConnectionOut(Out):
    """One connection to one broker. requests: since it was opened; request_rate: a second."""

    broker: str
    address: str
    opened_at: MaybeFromSeconds
    last_seen_at: MaybeFromSeconds
    has_tls: bool | None
    account: str | None
    requests: int | None
    request_rate: float | None = named("rate")


class ClientOut(Out):
    """A client. client_id is empty for what says none, such as a tool. is_twice: two processes use the id."""

    client_id: str
    language: str
    version: str = named("version_text")
    producer_groups: list[str]
    consumer_groups: list[str]
    is_twice: bool
    connections: list[ConnectionOut]


class ClientList(Schema):
    """The clients that match. telling_less: brokers of Apache, which tell neither TLS, accounts nor rates."""

    clients: list[ClientOut]
    total: int
    telling_less: list[str]
    troubles: list[str]


class DisconnectIn(Given):
    """Whose connections are to be closed."""

    client_id: str = Field(min_length=1, max_length=1024)


class Disconnected(Schema):
    """How many connections each broker closed. The client may connect again."""

    client_id: str
    closed: dict[str, int]


@router.get("", response={200: ClientList} | REFUSALS, auth=READ, summary="List connected clients",
            operation_id="list_clients")  # fmt: skip
async def list_clients(
    request: HttpRequest,
    q: str = Query("", max_length=255, description="part of id, address, group, account or language"),
    tools: bool = Query(False, description="connections without a client id, too"),
    twice: bool = Query(False, description="only ids that two processes use"),
    offset: Offset = 0,
    limit: int = Query(100, ge=1, le=LIST_MAX),
) -> ClientList:
    listing = await client_book.listing(gateway())
    found = in_order(select(listing, q, with_tools=tools, only_twice=twice), "client", down=False)
    return ClientList(
        clients=[ClientOut.of(one) for one in found[offset : offset + limit]],
        total=len(found),
        telling_less=list(listing.telling_less),
        troubles=[f"{one.what}: {one.reason}" for one in listing.failures],
    )


@router.post("/disconnect", response={200: Disconnected} | REFUSALS, auth=WRITE,
             summary="Close a client's connections", operation_id="disconnect_client")  # fmt: skip
async def disconnect_client(request: HttpRequest, body: DisconnectIn) -> Disconnected:
    closed = await disconnect(gateway(), await find_client(gateway(), body.client_id))
    note(request, "client disconnected", body.client_id, {name: f"{count} closed" for name, count in closed.items()})
    facts = {"event": "client_disconnected", "client": body.client_id, **caller(request)}
    logger.info("client disconnected", extra=facts)
    return Disconnected(client_id=body.client_id, closed=closed)
