"""Whether a proxy serves: as a client of RocketMQ 5 asks it, for the route of a topic that need not be there."""

from __future__ import annotations

import ssl

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, StreamTerminatedError

from appliance.proxy.protocol.definition_pb2 import Address, AddressScheme, Code, Endpoints, Resource
from appliance.proxy.protocol.service_pb2 import QueryRouteRequest, QueryRouteResponse
from gantrymq.timeouts import timeout

QUERY_ROUTE = "/apache.rocketmq.v2.MessagingService/QueryRoute"
TOPIC = "is-the-proxy-ready"
CALLER = {"x-mq-client-id": "gantry-ready", "x-mq-language": "PYTHON"}
FAILURES = Code.INTERNAL_ERROR  # from here on a code is the proxy's failure, or that of what is behind it


async def why_not(host: str, port: int, context: ssl.SSLContext | None, timeout_s: float, *, live: bool) -> str:
    """Empty: it serves. An unknown topic is an answer of its name servers; so is a refusal of its accounts."""
    endpoints = Endpoints(scheme=AddressScheme.DOMAIN_NAME, addresses=[Address(host=host, port=port)])
    request = QueryRouteRequest(topic=Resource(name=TOPIC), endpoints=endpoints)
    channel = Channel(host, port, ssl=context)
    try:
        async with timeout(timeout_s):
            answer = await _answer(channel, request)
    except GRPCError as exc:  # of the protocol alone: something lives there
        return "" if live else f"answers with {exc.status.name}"
    except (OSError, StreamTerminatedError, TimeoutError) as exc:
        return f"no answer ({str(exc) or f'within {timeout_s:g} s'})"
    finally:
        channel.close()
    is_served = live or answer.status.code < FAILURES
    return "" if is_served else f"answers with {Code.Name(answer.status.code)}: {answer.status.message}"


async def _answer(channel: Channel, request: QueryRouteRequest) -> QueryRouteResponse:
    method = UnaryUnaryMethod[QueryRouteRequest, QueryRouteResponse](
        channel, QUERY_ROUTE, QueryRouteRequest, QueryRouteResponse
    )
    return await method(request, metadata=CALLER)
