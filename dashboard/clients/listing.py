"""Asks the brokers who is connected. What is known is shared for a moment: many tabs cost what one costs.

A GantryMQ broker tells its connections; of another one the producers (328) and the members of each group (203) are put
together, at most so many groups of them.
"""

from __future__ import annotations

import asyncio

from dashboard.clients.values import ClientListing, ConnectedClient, Connection, Draft, in_order
from dashboard.cluster.calls import LastAnswers
from dashboard.cluster.errors import ClientNotFound, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.values import BrokerRef
from dashboard.language.sentences import gettext, joined
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.clients import OpenConnection
from gantrymq.errors import ResponseError
from gantrymq.remoting.bodies import ProxiedClient
from gantrymq.remoting.codes import LanguageCode, ResponseCode

SHARED_S = 1.0
RATE_STEP_MIN_S = 0.5  # below, a rate says more about the moment of reading than about the client
GROUPS_ASKED_MAX = 200  # of a broker that has no list of connections
ASKED_AT_ONCE = 8

Answer = list[OpenConnection] | list[Draft]


class ClientBook:
    """The newest listing, and what each connection had asked before it."""

    def __init__(self) -> None:
        self._listing: ClientListing | None = None
        self._running: asyncio.Task[ClientListing] | None = None
        self._told: LastAnswers[Answer] = LastAnswers(_connections_at)
        self._counts: dict[tuple[str, int], tuple[float, int, float | None]] = {}  # when, requests, rate until then

    def clear(self) -> None:
        self._listing, self._running, self._told = None, None, LastAnswers(_connections_at)
        self._counts.clear()

    def forget(self) -> None:
        """Have the next look ask anew."""
        self._listing = None
        self._told.changed()

    async def listing(self, gateway: Gateway) -> ClientListing:
        """Who is connected, at most SHARED_S old; at a silent broker, who was. Raises ClusterUnreachable."""
        known, loop = self._listing, asyncio.get_running_loop()
        if known is not None and 0 <= gateway.calls.clock() - known.at < SHARED_S:
            return known
        running = self._running
        if running is None or running.done() or running.get_loop() is not loop:
            running = self._running = loop.create_task(self._ask(gateway), name="clients")
        return await asyncio.shield(running)

    async def _ask(self, gateway: Gateway) -> ClientListing:
        cluster = await gateway.brokers.list()
        answers, failures = await self._told.ask(gateway.calls, (*cluster.brokers, *cluster.slaves))
        now = gateway.calls.clock()
        drafts: dict[str, Draft] = {}
        less = []
        counts: dict[tuple[str, int], tuple[float, int, float | None]] = {}
        for broker, told in answers:
            found = told.answer
            for one in found:
                if isinstance(one, Draft):
                    _merge(drafts, one)
                else:
                    counts[broker.key, one.number] = self._counted(broker.key, one, told.at)
                    _add(drafts, broker, one, counts[broker.key, one.number][2])
            if found and isinstance(found[0], Draft):
                less.append(broker.key)
        self._counts = counts
        self._listing = ClientListing(in_order(drafts.values()), now, tuple(failures), tuple(less))
        return self._listing

    def _counted(self, broker: str, one: OpenConnection, now: float) -> tuple[float, int, float | None]:
        """When it was counted, how much it had asked, and how much a second since the look before."""
        before = self._counts.get((broker, one.number))
        if before is None or one.requests < before[1]:
            return now, one.requests, None
        seconds = now - before[0]
        if seconds < RATE_STEP_MIN_S:
            return before
        return now, one.requests, (one.requests - before[1]) / seconds


async def _connections_at(admin: AdminClient, broker: BrokerRef) -> Answer:
    try:
        return await admin.clients.connections_at(broker.address)
    except ResponseError as exc:
        if exc.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
    return await _put_together(admin, broker)


async def _put_together(admin: AdminClient, broker: BrokerRef) -> list[Draft]:
    """Producers and members as a broker of Apache tells them."""
    found: list[Draft] = []
    for group, members in (await admin.clients.producers_at(broker.address)).items():
        for one in members:
            draft = Draft(one.client_id, one.language, one.version, {group: None})
            draft.connections.append(Connection(broker.key, one.remote_ip.lstrip("/"), groups=(group,)))
            found.append(draft)
    names = (await admin.groups.configs_at(broker.address)).subscription_group_table
    wanted = sorted(name for name in names if not is_system_group(name))[:GROUPS_ASKED_MAX]
    gate = asyncio.Semaphore(ASKED_AT_ONCE)

    async def members_of(group: str) -> list[Draft]:
        async with gate:
            try:
                connection = await admin.clients.consumers_at(broker.address, group)
            except ResponseError as exc:
                if exc.code in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.SYSTEM_ERROR):
                    return []  # no member is there; older brokers say so with a system error
                raise
        drafts = []
        for one in connection.connection_set:
            draft = Draft(one.client_id, str(one.language), one.version, consumer_groups={group: None})
            draft.connections.append(Connection(broker.key, one.client_addr, groups=(group,)))
            drafts.append(draft)
        return drafts

    for drafts in await asyncio.gather(*map(members_of, wanted)):
        found += drafts
    return found


def _add(drafts: dict[str, Draft], broker: BrokerRef, one: OpenConnection, rate: float | None) -> None:
    groups = (*one.producer_groups, *one.consumer_groups)
    connection = Connection(
        broker.key, one.address, one.opened_at / 1000, one.last_seen_at / 1000, one.tls, one.account, one.requests,
        rate, groups,
    )  # fmt: skip
    for client_id in one.client_ids or [""]:
        draft = drafts.setdefault(client_id or f" {broker.key} {one.number}", Draft(client_id))
        draft.language, draft.version = draft.language or _language(one.language), max(draft.version, one.version)
        draft.producer_groups |= dict.fromkeys(one.producer_groups)
        draft.consumer_groups |= dict.fromkeys(one.consumer_groups)
        draft.serves = one.proxy
        draft.connections.append(connection)
    for client in one.proxied:
        _add_proxied(drafts, broker, one.proxy, client)


def _add_proxied(drafts: dict[str, Draft], broker: BrokerRef, proxy: str, client: ProxiedClient) -> None:
    """A client of RocketMQ 5: the proxy reports it to each broker that has its topics, and it counts once."""
    draft = drafts.setdefault(client.client_id, Draft(client.client_id))
    draft.language, draft.release = client.language, client.version
    draft.producer_groups |= dict.fromkeys(client.topics)
    draft.consumer_groups |= dict.fromkeys([client.group] if client.group else [])
    if not any((one.address, one.proxy) == (client.address, proxy) for one in draft.connections):
        groups = (client.group,) if client.group else ()
        draft.connections.append(Connection(broker.key, client.address, groups=groups, proxy=proxy))


def _merge(drafts: dict[str, Draft], part: Draft) -> None:
    """One membership more of a client: on the same connection as another one, or on its own."""
    draft = drafts.setdefault(part.client_id, Draft(part.client_id))
    draft.language = draft.language or _language(part.language)
    draft.version = max(draft.version, part.version)
    draft.producer_groups |= part.producer_groups
    draft.consumer_groups |= part.consumer_groups
    for new in part.connections:
        place = (new.broker, new.address)
        index = next((at for at, known in enumerate(draft.connections) if (known.broker, known.address) == place), None)
        if index is None:
            draft.connections.append(new)
        else:
            known = draft.connections[index]
            draft.connections[index] = Connection(new.broker, new.address, groups=(*known.groups, *new.groups))


def _language(text: str) -> str:
    """A language by its name, however the broker said it."""
    return LanguageCode(int(text)).name if text.isdecimal() and int(text) in set(LanguageCode) else text


client_book = ClientBook()


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
