"""Routes: from a topic to its queues, from a broker's name to its addresses. Cached, refreshed each 30 s.

A topic no name server knows is looked up through TBW102, the template of topics made by their first message: its
brokers will create the topic. The next refresh finds the real one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from gantrymq.client.connection.name_servers import NameServers
from gantrymq.client.connection.send_codec import QUEUES_OF_NEW_TOPIC
from gantrymq.errors import ConnectError, GantryError, NoBrokerYet, RequestTimeout, RouteNotFound
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace
from gantrymq.message.topics import AUTO_CREATE_TOPIC
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, ClusterInfo, TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode

logger: logging.Logger = logging.getLogger(__name__)

REFRESH_S = 30.0  # RocketMQ: pollNameServerInterval
LOOK_AGAIN_S = 1.0  # between two looks at a topic whose brokers fail


@dataclass(slots=True)
class TopicRoute:
    """One topic's queues, sorted, and brokers. Writable are only queues whose broker has a master."""

    writable: tuple[MessageQueue, ...]
    readable: tuple[MessageQueue, ...]
    addresses: dict[str, dict[int, str]]  # broker name to broker id to address
    is_template: bool = False  # the topic does not exist yet; these queues are TBW102's
    lacks_master: bool = False  # of a broker with queues to write: it is stopped, or about to be another one


def writable_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues to send to. The route of an ordered topic lists them itself ("broker:count;..."), as an operator wrote
    it: what is no number of queues of a broker is left out."""
    if route.order_topic_conf:
        pairs = (part.partition(":") for part in route.order_topic_conf.split(";") if part)
        return tuple(
            MessageQueue(topic, name, queue_id) for name, _, n in pairs if n.isdecimal() for queue_id in range(int(n))
        )
    masters = {broker.broker_name for broker in route.broker_datas if broker.master_address}
    return tuple(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & PERM_WRITE and data.broker_name in masters
        for queue_id in range(data.write_queue_nums)
    )


def readable_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues to consume from."""
    return tuple(
        sorted(
            MessageQueue(topic, data.broker_name, queue_id)
            for data in route.queue_datas
            if data.perm & PERM_READ
            for queue_id in range(data.read_queue_nums)
        )
    )


def topic_route(
    topic: str, route: TopicRouteData, *, is_template: bool = False, new_topic_queues: int = QUEUES_OF_NEW_TOPIC
) -> TopicRoute:
    """The route as the client uses it."""
    if is_template:
        for data in route.queue_datas:
            data.read_queue_nums = data.write_queue_nums = min(new_topic_queues, data.read_queue_nums)
    addresses = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
    readable = () if is_template else readable_queues(topic, route)
    headless = {broker.broker_name for broker in route.broker_datas if not broker.master_address}
    lacks_master = any(data.perm & PERM_WRITE and data.broker_name in headless for data in route.queue_datas)
    return TopicRoute(writable_queues(topic, route), readable, addresses, is_template, lacks_master)


class Routes:
    """The routes of the topics a client uses."""

    def __init__(self, name_servers: NameServers, namespace: Namespace = NO_NAMESPACE) -> None:
        self.known: dict[str, TopicRoute] = {}  # the route that was learnt last is the last one
        # Called with a broker's name, its master's last address, None when none was known, and the new one.
        self.on_moved: Callable[[str, str | None, str], object] = lambda name, before, now: None
        self.on_headless: Callable[[str, str], object] = lambda name, topic: None  # a broker that has slaves alone
        self.on_back: Callable[[], object] = lambda: None  # a broker that left a route is in one: others have it, too
        self.new_topic_queues: int = QUEUES_OF_NEW_TOPIC  # of topics that are made by their first message
        self._name_servers = name_servers
        self._outages = name_servers.outages
        self._namespace = namespace
        self._addresses: dict[str, dict[int, str]] = {}
        self._masters: dict[str, str] = {}  # the last known ones: between two masters a route may show none
        self._gone: set[str] = set()  # brokers that left the route of a topic, and were in none since
        self._looking_up = asyncio.Lock()
        self._looked_at: dict[str, float] = {}

    async def to_send(self, topic: str, *, timeout_s: float | None = None) -> TopicRoute:
        """The route to send to a topic, of an existing one or of the template. RouteNotFound when there is neither.

        timeout_s: for the answer of a name server, or of all in turn."""
        route = self.known.get(topic)
        if route is None or not route.writable:
            route = await self._look_up(topic, use_template=True, timeout_s=timeout_s)
        if not route.writable:
            if route.lacks_master:
                raise NoBrokerYet(topic, "no broker of this topic has a master now")
            raise RouteNotFound(topic, "no queue of this topic can be written")
        return route

    async def to_read(self, topic: str) -> TopicRoute:
        """The route to consume a topic. RouteNotFound when it does not exist yet."""
        route = self.known.get(topic)
        if route is None or route.is_template:
            route = await self._look_up(topic, use_template=False)
        return route

    async def refresh(self) -> bool:
        """Ask for every known topic again; return whether a route has changed. What can't be asked now keeps its old
        one."""
        before = dict(self.known)
        for topic in before:
            try:
                route = await self._fetch(topic)
            except RouteNotFound:
                continue  # not created yet, or deleted: sending through the old route tells
            except GantryError as exc:
                self._outages.failed("look at the route", topic, exc)
                if isinstance(exc, ConnectError | RequestTimeout):
                    return self.known != before  # no name server answers: the other topics would only wait in vain
                continue
            self._outages.worked("look at the route", topic)
            self._learn(topic, route)
        live = {name: found for route in self.known.values() for name, found in route.addresses.items()}
        self._addresses = live
        return self.known != before

    async def look_again(self, topic: str, *, use_template: bool = False) -> bool:
        """Ask for one topic again; return whether its route has changed. Raises as `to_read`, ConnectError, …

        use_template: when no name server knows the topic any more, its brokers are gone: send where the topic would be
        made now. Where topics are not made by their first message, the old route stays: its brokers may come back."""
        before = self.known.get(topic)
        try:
            route = await self._fetch(topic)
        except RouteNotFound:
            if not use_template:
                raise
            route = await self._fetch_template(topic, None)
        self._learn(topic, route)
        return route != before

    def is_look_due(self, topic: str, now: float) -> bool:
        """Whether a sender that lost a broker should have the topic looked up again; True once each LOOK_AGAIN_S."""
        if now - self._looked_at.get(topic, -LOOK_AGAIN_S) < LOOK_AGAIN_S:
            return False
        self._looked_at[topic] = now
        return True

    def address(self, broker_name: str, broker_id: int = 0) -> str | None:
        """The address of a broker's master (or of the one with that id), None when it is not known."""
        return self.members(broker_name).get(broker_id)

    def members(self, broker_name: str) -> dict[int, str]:
        """Where a broker's master and slaves serve, by broker id."""
        return self._addresses.get(broker_name, {})

    def lacks_master(self, broker_name: str) -> bool:
        """Whether slaves of the broker are known, and no master."""
        return bool(members := self.members(broker_name)) and 0 not in members

    def address_to_read(self, broker_name: str, broker_id: int = 0) -> tuple[str, bool] | None:
        """An address to pull from and whether it is the master's. Without that id: the address of the lowest one."""
        found = self.members(broker_name)
        if not found:
            return None
        if broker_id not in found:
            broker_id = min(found)
        return found[broker_id], broker_id == 0

    def require_address_to_read(self, broker_name: str, broker_id: int = 0) -> tuple[str, bool]:
        """As `address_to_read`; ConnectError when no address is known."""
        found = self.address_to_read(broker_name, broker_id)
        if found is None:
            raise ConnectError(broker_name, "no address of this broker is known")
        return found

    def served_by(self, address: str) -> list[tuple[str, str]]:
        """The brokers whose master serves there, each with a topic of it."""
        names = [name for name, found in self._addresses.items() if found.get(0) == address]
        newest = [*reversed(self.known.items())]  # the oldest ones may be of topics that were deleted
        topics = ((name, (topic for topic, route in newest if name in route.addresses)) for name in names)
        return [(name, topic) for name, found in topics if (topic := next(found, None)) is not None]

    def masters(self) -> list[str]:
        """The addresses of all known masters."""
        return [found[0] for found in self._addresses.values() if 0 in found]

    def brokers(self) -> list[str]:
        """The addresses of all known brokers, slaves included."""
        return [address for found in self._addresses.values() for address in found.values()]

    async def _look_up(self, topic: str, *, use_template: bool, timeout_s: float | None = None) -> TopicRoute:
        """Look a topic up, one at a time: a burst of first sends asks once."""
        async with self._looking_up:
            route = self.known.get(topic)
            if route is not None and (route.writable if use_template else not route.is_template):
                return route
            try:
                route = await self._fetch(topic, timeout_s=timeout_s)
            except RouteNotFound:
                if not use_template:
                    raise
                route = await self._fetch_template(topic, timeout_s)
            self._learn(topic, route)
            return route

    async def _fetch_template(self, topic: str, timeout_s: float | None) -> TopicRoute:
        """As `_fetch`. A name server that has just started knows no broker, and so no topic: NoBrokerYet."""
        try:
            return await self._fetch(topic, template=AUTO_CREATE_TOPIC, timeout_s=timeout_s)
        except RouteNotFound:
            if await self._knows_no_broker(timeout_s):
                raise NoBrokerYet(topic, "no broker has registered at the name server yet") from None
            raise

    async def _knows_no_broker(self, timeout_s: float | None) -> bool:
        try:
            answer = await self._name_servers.invoke(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_s=timeout_s)
            return answer.code == ResponseCode.SUCCESS and not ClusterInfo.from_json(answer.body).broker_addr_table
        except GantryError as exc:  # then the topic's absence is all that is known
            logger.debug("broker list not read: %s", exc, extra={"event": "brokers_not_asked_for", "error": str(exc)})
            return False

    async def _fetch(self, topic: str, *, template: str | None = None, timeout_s: float | None = None) -> TopicRoute:
        asked = template or self._namespace.wrap(topic)
        answer = await self._name_servers.invoke(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": asked}, timeout_s=timeout_s
        )
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise RouteNotFound(topic)
        body = self._name_servers.accepted(answer, RequestCode.GET_ROUTEINFO_BY_TOPIC).body
        route = TopicRouteData.from_json(body)
        return topic_route(topic, route, is_template=template is not None, new_topic_queues=self.new_topic_queues)

    def _learn(self, topic: str, route: TopicRoute) -> None:
        replaced = self.known.pop(topic, None)
        self.known[topic] = route
        back = self._gone & route.addresses.keys()
        self._gone -= back
        if replaced is not None:
            self._gone |= replaced.addresses.keys() - route.addresses.keys()
        masters = {name: found[0] for name, found in route.addresses.items() if 0 in found}
        moved = [
            (name, self._masters.get(name), now)
            for name, now in masters.items()
            if (name in self._addresses or name in self._masters) and now != self.address(name)
        ]
        self._addresses.update(route.addresses)
        self._masters |= masters
        for name, before, now in moved:
            logger.info(
                "master serves elsewhere (broker=%s, before=%s, now=%s)",
                name,
                before,
                now,
                extra={"event": "broker_moved", "broker": name, "before": before, "now": now},
            )
            self.on_moved(name, before, now)
        if back:
            self.on_back()
        for name in route.addresses:
            if self.lacks_master(name):
                self.on_headless(name, topic)
