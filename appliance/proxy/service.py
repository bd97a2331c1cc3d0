"""`apache.rocketmq.v2.MessagingService`: from the RPC's name to what answers it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from grpclib.const import Cardinality, Handler
from grpclib.const import Status as GrpcStatus
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from appliance.proxy.callers import Caller, Gate
from appliance.proxy.http2 import MESSAGE_SECONDS_MAX
from appliance.proxy.messages.statuses import Refused, status, status_of
from appliance.proxy.protocol import service_pb2
from appliance.proxy.protocol.definition_pb2 import Code
from gantrymq.errors import GantryError
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

SERVICE = "/apache.rocketmq.v2.MessagingService/"

Unary = Callable[[Caller, Any], Awaitable[Any]]
Served = Callable[[Caller, Any, Stream[Any, Any]], Awaitable[None]]  # a request, and the stream of its answers
Talk = Callable[[Caller, Stream[Any, Any]], Awaitable[None]]


class Service:
    """The table of RPCs for grpclib. Each call is admitted by the gate first."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.mapping: dict[str, Handler] = {}

    def unary(self, name: str, answer: Unary) -> None:
        """One request, one answer, whose field `status` says how it went."""
        request_type, answer_type = _types(name)

        async def serve(stream: Stream[Any, Any]) -> None:
            request = await _one_request(stream)
            try:
                response = await answer(self._admit(stream), request)
            except GantryError as exc:
                response = answer_type(status=status_of(exc))
            except GRPCError:
                raise
            except Exception:
                logger.exception("call failed", extra={"event": "proxy_call_failed", "call": name})
                response = answer_type(status=status(Code.INTERNAL_SERVER_ERROR))
            await stream.send_message(response)

        self.mapping[SERVICE + name] = Handler(serve, Cardinality.UNARY_UNARY, request_type, answer_type)

    def answers(self, name: str, serve_request: Served) -> None:
        """One request, many answers; a Refused becomes the only one."""
        request_type, answer_type = _types(name)

        async def serve(stream: Stream[Any, Any]) -> None:
            request = await _one_request(stream)
            try:
                await serve_request(self._admit(stream), request, stream)
            except GantryError as exc:
                await stream.send_message(answer_type(status=status_of(exc)))

        self.mapping[SERVICE + name] = Handler(serve, Cardinality.UNARY_STREAM, request_type, answer_type)

    def talk(self, name: str, talk: Talk) -> None:
        """Both send when they like. What is wrong is gRPC's own status here."""
        request_type, answer_type = _types(name)

        async def serve(stream: Stream[Any, Any]) -> None:
            try:
                caller = self._admit(stream)
            except Refused as exc:
                raise GRPCError(GrpcStatus.INVALID_ARGUMENT, f"{exc.code}: {exc}") from exc
            await talk(caller, stream)

        self.mapping[SERVICE + name] = Handler(serve, Cardinality.STREAM_STREAM, request_type, answer_type)

    def refuse_the_rest(self) -> None:
        """Have calls that are not built answered so, as gRPC says it."""
        for name in service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods_by_name:
            if SERVICE + name not in self.mapping:
                self.mapping[SERVICE + name] = Handler(_unbuilt, Cardinality.STREAM_STREAM, *_types(name))

    def _admit(self, stream: Stream[Any, Any]) -> Caller:
        peer = stream.peer.addr()
        left_s = stream.deadline.time_remaining() if stream.deadline is not None else None
        return self._gate.admit(cast(Any, stream.metadata), peer[0] if peer else "", left_s)


async def _unbuilt(stream: Stream[Any, Any]) -> None:
    raise GRPCError(GrpcStatus.UNIMPLEMENTED, "this proxy does not serve the call")


async def _one_request(stream: Stream[Any, Any]) -> Any:
    try:
        async with timeout(MESSAGE_SECONDS_MAX):
            request = await stream.recv_message()
    except TimeoutError as exc:
        raise GRPCError(GrpcStatus.DEADLINE_EXCEEDED, f"no request in {MESSAGE_SECONDS_MAX:g} s") from exc
    if request is None:
        raise GRPCError(GrpcStatus.INVALID_ARGUMENT, "the call has no request")
    return request


def _types(name: str) -> tuple[Any, Any]:
    method = service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods_by_name[name]
    return getattr(service_pb2, method.input_type.name), getattr(service_pb2, method.output_type.name)
