"""The gateway's look at what became of one message, and doing it again: as a new message, or by one client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dashboard.cluster import browse
from dashboard.cluster.calls import CALL_TIMEOUT_S, CALLS_AT_ONCE, Answer, ClusterCalls, refusals_of
from dashboard.cluster.errors import BrokerUnreachable, NotAllowed
from dashboard.cluster.message_requests import MessageCalls
from dashboard.cluster.trace_steps import Lane, Step, lanes_of, seen_by, steps_of
from dashboard.cluster.values import TopicDetail
from dashboard.language.sentences import gettext
from dashboard.limits.names import current, unlimited
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.results import Delivery, DirectResult
from gantrymq.client.results import SendResult
from gantrymq.errors import ConfigError, MessageRejected, RouteNotFound
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import is_dlq_topic, is_retry_topic, may_clients_send_to

GROUPS_MAX = 100  # whose members are asked for
KEYS_MAX = 4
RELATED_MAX = 64
HANDLER_LIMIT_S = 12.0  # the broker waits ten seconds for the client's handler


@dataclass(frozen=True, slots=True)
class Fate:
    """For each group of the topic whether it is past the message, and the clients that could handle it again."""

    deliveries: tuple[Delivery, ...]
    clients: tuple[tuple[str, str], ...]  # group, client id


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps; without what clients told, `why` says why there is only what the broker knows."""

    steps: tuple[Step, ...]
    why: str = ""

    @property
    def lanes(self) -> list[Lane]:
        return lanes_of(self.steps)


class MessageFate:
    """`gateway.fate`."""

    def __init__(self, calls: ClusterCalls, messages: MessageCalls) -> None:
        self._calls = calls
        self._messages = messages

    async def deliveries(self, message: MessageExt) -> Fate:
        """By the groups' offsets. Raises BrokerUnreachable, Refused."""
        with unlimited(), refusals_of():
            deliveries = await self._calls.call(lambda admin: admin.messages.deliveries(message))
        deliveries = [item for item in deliveries if current().allows(item.group)]
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def clients(group: str) -> list[tuple[str, str]]:
            async with gate:
                members = await self._calls.call(lambda admin: admin.groups.members(group))
                return [(group, client) for client in members.client_ids]

        online = [item.group for item in deliveries if item.is_online][:GROUPS_MAX]
        with refusals_of():
            found = await asyncio.gather(*(clients(group) for group in online))
        return Fate(tuple(deliveries), tuple(pair for pairs in found for pair in pairs))

    async def trace(self, message: MessageExt) -> Trace:
        """What clients told the trace topic about it, with what the broker knows. Raises BrokerUnreachable, Refused."""
        with refusals_of():
            try:
                told = await self._calls.call(lambda admin: admin.messages.trace(message.msg_id))
            except RouteNotFound:
                return Trace(
                    steps_of(message, []), gettext("This cluster has no trace topic: tracing is off at its brokers.")
                )
        if told.records:
            return Trace(steps_of(message, seen_by(current(), told.records)))
        return Trace(
            steps_of(message, []),
            gettext("No client reported it: tracing is off in its producer and consumers, or the traces have expired."),
        )

    async def related(self, detail: TopicDetail, message: MessageExt) -> list[MessageExt]:
        """The topic's other messages with one of its keys, newest first."""
        pages = await asyncio.gather(
            *(self._messages.find(detail, key, limit=RELATED_MAX) for key in message.keys[:KEYS_MAX])
        )
        found = {(item.broker_name, item.physical_offset): item for page in pages for item in page.messages}
        found.pop((message.broker_name, message.physical_offset), None)
        return sorted(found.values(), key=browse.newest_first)[:RELATED_MAX]

    async def resend(self, message: MessageExt) -> SendResult:
        """Send a copy as a new message; a dead letter or a retry goes to its original topic. Raises NotAllowed."""
        is_again = is_retry_topic(message.topic) or is_dlq_topic(message.topic)
        if not may_clients_send_to(message.topic) and not is_again:
            raise NotAllowed(gettext("%(topic)s does not accept messages from clients.") % {"topic": message.topic})
        return await self._have(lambda admin: admin.messages.resend(message))

    async def put_back(self, message: MessageExt, group: str) -> SendResult:
        """Send a dead letter to the group that gave it up, and to no other. Raises NotAllowed, Refused."""
        return await self._have(lambda admin: admin.messages.put_back(message, group))

    async def deliver(self, message: MessageExt, group: str, client_id: str) -> DirectResult:
        """Have one client handle it now; the group's offset stays. Raises Refused when the client is not there."""
        broker = (await self._calls.cluster()).named(message.broker_name)
        if broker is None:
            raise BrokerUnreachable(
                gettext("%(broker_name)s is not registered.") % {"broker_name": message.broker_name}
            )
        return await self._have(
            lambda admin: admin.messages.consume_directly_at(broker.address, group, client_id, message),
            HANDLER_LIMIT_S,
        )

    async def _have(
        self, handle: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float = CALL_TIMEOUT_S
    ) -> Answer:
        with refusals_of():
            try:
                return await self._calls.call(handle, timeout_s)
            except (ConfigError, MessageRejected) as exc:
                raise NotAllowed(str(exc)) from exc
