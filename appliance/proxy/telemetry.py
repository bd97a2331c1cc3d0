"""Telemetry: the stream on which a client says what it is, and is told things, and Heartbeat and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable

from grpclib.const import Status as GrpcStatus
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from appliance.acl.account import PUB, SUB
from appliance.proxy.brokers import Brokers
from appliance.proxy.callers import Caller
from appliance.proxy.clients import Client, ClientBook, TelemetryStream
from appliance.proxy.messages.statuses import Refused, ok
from appliance.proxy.protocol.definition_pb2 import ClientType, Code, Endpoints, Settings
from appliance.proxy.protocol.service_pb2 import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    TelemetryCommand,
)
from appliance.proxy.reporting import NODE_JS
from appliance.proxy.settings_answer import answer_to
from gantrymq.errors import GantryError
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

TOPICS_MAX = 1024  # of one client's settings
ANSWERS_MAX = 4096  # questions to clients that wait for an answer
STREAMS_MAX = 8  # of one client: it opens a new one before it notices that the old one is gone
SETTINGS_AGAIN_S = (0.1, 1.0, 5.0)
CONSUMERS = frozenset({ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER})


class Telemetry:
    """What clients say of themselves, and questions to them. collector: where they send metrics; None: nowhere."""

    def __init__(self, clients: ClientBook, brokers: Brokers, collector: Endpoints | None = None) -> None:
        self._collector = collector
        self._clients = clients
        self._brokers = brokers
        self.ended: Callable[[str], object] = lambda client_id: None  # called with the id of a client that ends
        self._saying: set[asyncio.Task[bool]] = set()
        self._answers: dict[str, asyncio.Future[TelemetryCommand]] = {}

    async def telemetry(self, caller: Caller, stream: Stream[TelemetryCommand, TelemetryCommand]) -> None:
        """Serve one stream until the client ends it."""
        told = TelemetryStream(stream)
        client: Client | None = None
        try:
            async for command in stream:
                kind = command.WhichOneof("command")
                if kind == "settings":
                    client = await self._settings(caller, command.settings, client, told)
                elif kind in ("thread_stack_trace", "verify_message_result"):
                    self._answered(getattr(command, kind).nonce, command)
        finally:
            if client is not None and told in client.streams:
                client.streams.remove(told)

    async def _settings(
        self, caller: Caller, settings: Settings, known: Client | None, told: TelemetryStream
    ) -> Client:
        kind = settings.WhichOneof("pub_sub")
        if kind is None:
            raise GRPCError(GrpcStatus.INVALID_ARGUMENT, "settings have neither publishing nor subscription")
        topics = settings.publishing.topics if kind == "publishing" else settings.subscription.subscriptions
        if len(topics) > TOPICS_MAX:
            raise GRPCError(GrpcStatus.INVALID_ARGUMENT, f"{len(topics)} topics in settings: {TOPICS_MAX} at most")
        try:
            answer = await self._answer_to(caller, settings)
            client = self._clients.learn(caller, settings)
        except Refused as exc:
            raise GRPCError(GrpcStatus.INVALID_ARGUMENT, f"{exc.code}: {exc}") from exc
        if told not in client.streams:
            client.streams.append(told)
            del client.streams[:-STREAMS_MAX]
        if kind == "publishing":
            await self._register(caller, settings)
        client.answer = answer
        await told.tell(TelemetryCommand(status=ok(), settings=answer))
        return client

    def routed(self, caller: Caller) -> None:
        """Node.js's client has asked for a route: it begins to wait for its settings when it has all routes, and would
        wait for ever when they came before."""
        if caller.language in NODE_JS:
            for after_s in SETTINGS_AGAIN_S:
                asyncio.get_running_loop().call_later(after_s, self._say_again_soon, caller.client_id)

    def _say_again_soon(self, client_id: str) -> None:
        client = self._clients.get(client_id)
        if client is not None and client.answer is not None and client.streams:
            command = TelemetryCommand(status=ok(), settings=client.answer)
            task = asyncio.get_running_loop().create_task(client.streams[-1].tell(command))
            self._saying.add(task)
            task.add_done_callback(self._saying.discard)

    async def _register(self, caller: Caller, settings: Settings) -> None:
        """Have the topics' brokers know who can say how a transaction ended."""
        session = self._brokers.session(caller.account)
        for topic in settings.publishing.topics:
            with contextlib.suppress(GantryError):  # a topic that comes later, or may not be used: sending tells
                await session.route(caller.topic(topic, PUB))
        await session.tell_brokers()

    async def _answer_to(self, caller: Caller, settings: Settings) -> Settings:
        if settings.WhichOneof("pub_sub") == "publishing":
            return answer_to(settings, collector=self._collector)
        group = caller.group(settings.subscription.group)
        for entry in settings.subscription.subscriptions:
            topic = caller.topic(entry.topic, SUB)
            try:
                session = self._brokers.session(caller.account)
                config = await session.group(group, topic)
                is_ordered = await session.is_ordered(group, topic)
                return answer_to(
                    settings,
                    retry_max_times=config.retry_max_times,
                    is_ordered=is_ordered,
                    collector=self._collector,
                )
            except GantryError as exc:  # the topic may come later, or its broker be away
                logger.debug("group not read: %s", exc, extra={"event": "group_not_read", "group": group})
        return answer_to(settings, collector=self._collector)

    async def heartbeat(self, caller: Caller, request: HeartbeatRequest) -> HeartbeatResponse:
        client = self._clients.seen(caller)
        if client is None:
            settings = Settings(client_type=request.client_type)
            if request.client_type in CONSUMERS:
                if not request.HasField("group"):
                    raise Refused(Code.ILLEGAL_CONSUMER_GROUP, "a consumer's heartbeat names its group")
                caller.group(request.group)
                settings.subscription.group.CopyFrom(request.group)
            elif request.client_type == ClientType.PRODUCER:
                settings.publishing.SetInParent()
            else:
                raise Refused(Code.UNRECOGNIZED_CLIENT_TYPE, "the client has sent no settings yet")
            self._clients.learn(caller, settings)
        return HeartbeatResponse(status=ok())

    async def notify_client_termination(
        self, caller: Caller, request: NotifyClientTerminationRequest
    ) -> NotifyClientTerminationResponse:
        if self._clients.seen(caller) is not None:
            self._clients.forget(caller.client_id)
            self.ended(caller.client_id)
        return NotifyClientTerminationResponse(status=ok())

    # -- questions to a client ----------------------------------------------------------------------------------------

    async def ask(self, client: Client, make: Callable[[str], TelemetryCommand], timeout_s: float) -> TelemetryCommand:
        """The client's answer to a command that `make` makes with a nonce. Refused when none comes in time."""
        if len(self._answers) >= ANSWERS_MAX:
            raise Refused(Code.TOO_MANY_REQUESTS, f"{ANSWERS_MAX} questions to clients wait for an answer")
        nonce = uuid.uuid4().hex
        answer: asyncio.Future[TelemetryCommand] = asyncio.get_running_loop().create_future()
        self._answers[nonce] = answer
        try:
            for stream in reversed(client.streams):
                if await stream.tell(make(nonce)):
                    async with timeout(timeout_s):
                        return await answer
            raise Refused(Code.REQUEST_TIMEOUT, f"client {client.client_id} has no open stream")
        except TimeoutError as exc:
            raise Refused(Code.REQUEST_TIMEOUT, f"client {client.client_id} did not answer") from exc
        finally:
            del self._answers[nonce]

    def _answered(self, nonce: str, command: TelemetryCommand) -> None:
        answer = self._answers.get(nonce)
        if answer is not None and not answer.done():
            answer.set_result(command)
