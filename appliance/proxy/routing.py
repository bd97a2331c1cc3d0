"""QueryRoute and QueryAssignment: which queues a topic has, and that all of them are reached through the proxy.

Clients connect to the endpoints that a route names, so it names those that the client used: what is between them, such
as address translation or a container's port, is the client's to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from appliance.acl.account import ANY, SUB
from appliance.proxy.brokers import Brokers
from appliance.proxy.callers import Caller
from appliance.proxy.messages.send_checks import accepted_types
from appliance.proxy.messages.statuses import Refused, ok
from appliance.proxy.protocol.definition_pb2 import (
    AddressScheme,
    Assignment,
    Broker,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    Resource,
)
from appliance.proxy.protocol.service_pb2 import (
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryRouteRequest,
    QueryRouteResponse,
)
from gantrymq.client.connection.routes import TopicRoute
from gantrymq.message.topic_attributes import MESSAGE_TYPE

ADDRESSES_MAX = 64  # of a request's endpoints, which come back with each queue
ANY_QUEUE = -1


class Routing:
    """Both RPCs."""

    def __init__(self, brokers: Brokers, routed: Callable[[Caller], object]) -> None:
        """routed: called when a client got a route."""
        self._brokers = brokers
        self._routed = routed

    async def query_route(self, caller: Caller, request: QueryRouteRequest) -> QueryRouteResponse:
        _check(request.endpoints)
        topic = caller.topic(request.topic, ANY)
        session = self._brokers.session(caller.account)
        route = await session.route(topic)
        kinds = accepted_types((await session.topic_attributes(topic)).get(MESSAGE_TYPE, ""))
        queues = queues_of(route, request.topic, request.endpoints, kinds)
        self._routed(caller)
        return QueryRouteResponse(status=ok(), message_queues=queues)

    async def query_assignment(self, caller: Caller, request: QueryAssignmentRequest) -> QueryAssignmentResponse:
        """Every member gets all: the broker gives each message to one of those who ask. In order each queue is named,
        as RocketMQ's proxy does it: a push consumer works on so many at once."""
        _check(request.endpoints)
        topic, group = caller.topic(request.topic, SUB), caller.group(request.group)
        session = self._brokers.session(caller.account)
        route = await session.route(topic)
        is_ordered = await session.is_ordered(group, topic)
        queues = [queue for queue in route.readable if 0 in route.addresses[queue.broker_name]]
        places = {(queue.broker_name, queue.queue_id if is_ordered else ANY_QUEUE) for queue in queues}
        if not places:
            raise Refused(Code.FORBIDDEN, f"no queue of topic {topic} can be read now")
        assignments = [
            Assignment(
                message_queue=MessageQueue(
                    topic=request.topic,
                    id=queue_id,
                    permission=Permission.READ_WRITE,
                    broker=_broker(name, request.endpoints),
                )
            )
            for name, queue_id in sorted(places)
        ]
        return QueryAssignmentResponse(status=ok(), assignments=assignments)


def queues_of(
    route: TopicRoute, topic: Resource, endpoints: Endpoints, kinds: Iterable[MessageType]
) -> list[MessageQueue]:
    """The topic's queues as clients see them; of brokers that have a master."""
    writable, readable = set(route.writable), set(route.readable)
    kinds = list(kinds)
    queues = []
    for queue in sorted(writable | readable):
        if 0 not in route.addresses.get(queue.broker_name, {}):
            continue
        if queue in writable and queue in readable:
            permission = Permission.READ_WRITE
        else:
            permission = Permission.WRITE if queue in writable else Permission.READ
        queues.append(
            MessageQueue(
                topic=topic,
                id=queue.queue_id,
                permission=permission,
                broker=_broker(queue.broker_name, endpoints),
                accept_message_types=kinds,
            )
        )
    return queues


def _broker(name: str, endpoints: Endpoints) -> Broker:
    return Broker(name=name, id=0, endpoints=endpoints)  # clients use none but id 0


def _check(endpoints: Endpoints) -> None:
    addresses = endpoints.addresses
    if not addresses or len(addresses) > ADDRESSES_MAX or endpoints.scheme not in AddressScheme.values():
        raise Refused(Code.ILLEGAL_ACCESS_POINT, f"endpoints have 1 to {ADDRESSES_MAX} addresses")
    if endpoints.scheme == AddressScheme.ADDRESS_SCHEME_UNSPECIFIED or any(not item.host for item in addresses):
        raise Refused(Code.ILLEGAL_ACCESS_POINT, "endpoints say what their addresses are: IPv4, IPv6 or a name")
    if endpoints.scheme == AddressScheme.DOMAIN_NAME and len(addresses) > 1:
        raise Refused(Code.ILLEGAL_ACCESS_POINT, "endpoints have one name at most")
