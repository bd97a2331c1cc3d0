"""Where a topic lives, all brokers of it, as the name servers say: an assignment is about the whole topic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from appliance.broker.access.access_control import own_credentials
from appliance.settings.roles import BrokerConfig
from gantrymq.client.connection.routes import readable_queues
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import TopicRouteData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

FRESH_S = 30.0  # as long as RocketMQ's clients believe a route
ROUTES_MAX = 10_000
TIMEOUT_S = 3.0


class TopicRoutes:
    """One broker's. addresses: of the name servers, as they are now."""

    def __init__(self, config: BrokerConfig, addresses: Callable[[], Sequence[str]]) -> None:
        self._addresses = addresses
        self._client = RemotingClient(
            tls=config.outgoing_tls,
            credentials=own_credentials(config),
            connect_timeout_s=config.connect_timeout_ms / 1000,
        )
        self._known: dict[str, tuple[float, tuple[MessageQueue, ...]]] = {}

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All queues that consumers read, sorted; those known last while no name server answers. GantryError."""
        known = self._known.get(topic)
        if known is not None and time.monotonic() - known[0] < FRESH_S:
            return known[1]
        error: GantryError | None = None
        for address in self._addresses():
            request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            try:
                answer = await self._client.invoke(address, request, timeout_s=TIMEOUT_S)
                if answer.code != ResponseCode.SUCCESS:
                    return ()
                queues = tuple(sorted(readable_queues(topic, TopicRouteData.from_json(answer.body))))
            except GantryError as exc:
                error = exc
                continue
            if len(self._known) >= ROUTES_MAX:
                self._known.clear()
            self._known[topic] = time.monotonic(), queues
            return queues
        if known is not None:
            return known[1]
        if error is not None:
            raise error
        return ()

    async def run(self) -> None:
        """Close the connections at the end."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._client.close()
