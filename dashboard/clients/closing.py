"""An end of a client's connections, at the brokers that have them."""

from __future__ import annotations

from dashboard.clients.listing import client_book
from dashboard.clients.values import ConnectedClient
from dashboard.cluster.errors import ClientNotFound, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.language.sentences import gettext, joined
from gantrymq.client.admin.client import AdminClient


async def find_client(gateway: Gateway, client_id: str) -> ConnectedClient:
    """The client as it is connected now. Raises ClientNotFound, NotAllowed where a broker has no request for it."""
    client_book.forget()
    listing = await client_book.listing(gateway)
    found = next((one for one in listing.named if one.client_id == client_id), None)
    if found is None:
        raise ClientNotFound(gettext("No client %(client)s is connected.") % {"client": client_id})
    if found.proxies:
        told = gettext("%(client)s is connected to the proxy %(proxies)s: stop the process, or close its account.")
        raise NotAllowed(told % {"client": client_id, "proxies": joined(found.proxies)})
    less = [name for name in found.brokers if name in listing.telling_less]
    if less:
        told = gettext("%(brokers)s cannot disconnect a client: only GantryMQ's brokers can.")
        raise NotAllowed(told % {"brokers": joined(less)})
    return found


async def disconnect(gateway: Gateway, client: ConnectedClient) -> dict[str, int]:
    """How many connections each broker closed. Raises BrokerUnreachable, Refused."""
    cluster = await gateway.brokers.list()
    closed: dict[str, int] = {}

    async def close(admin: AdminClient, broker: BrokerRef) -> None:
        closed[broker.key] = await admin.clients.disconnect_at(broker.address, client_id=client.client_id)

    brokers = [broker for broker in (*cluster.brokers, *cluster.slaves) if broker.key in client.brokers]
    await gateway.calls.tell_brokers(brokers, close)
    client_book.forget()
    return closed
