"""Sender: one message to one of its topic's queues, tried again elsewhere when that may help.

A message goes to the topic's queues in turn. When a broker can't be reached, does not answer or says that it can't
store now, the next try takes another broker if the topic has one; all tries share the call's timeout. Answers such as
"busy" end it at once: a broker that asks for less must not get more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from gantrymq.client.connection.send_codec import RETRYABLE_CODES, Outgoing, pack, send_request, send_result
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.results import SendResult
from gantrymq.errors import ConnectError, GantryError, MessageRejected, RequestTimeout, ResponseError
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.properties import string_hash_code
from gantrymq.message.topics import check_topic, may_clients_send_to
from gantrymq.remoting.codes import RequestCode

QueueSelector = Callable[[Sequence[MessageQueue], Message], MessageQueue]


def queue_by_hash(key: str) -> QueueSelector:
    """Equal keys choose equal queues while a topic keeps its queues, as the Java client's SelectMessageQueueByHash."""
    number = abs(string_hash_code(key))
    return lambda queues, message: queues[number % len(queues)]


class Sender:
    """Sends packed messages for a producer group. retries: further tries after the first."""

    def __init__(self, session: ClientSession, group: str, *, retries: int) -> None:
        self.group = group
        self._session = session
        self._routes = session.routes
        self._remoting = session.remoting
        self._retries = retries
        self._next_queue = random.randrange(1 << 16)  # so that many producers do not all begin with queue 0

    async def queues(self, topic: str) -> Sequence[MessageQueue]:
        """The queues that take messages of the topic; for a topic that does not exist, those it will be made with."""
        route = self._routes.known.get(topic)
        if route is not None and route.writable and self._session.is_open:
            return route.writable
        await self.routes_known(topic)
        return (await self._routes.to_send(topic)).writable

    async def send_anywhere(
        self, outgoing: Outgoing, timeout_s: float, *, tries: int | None = None, avoid: str = ""
    ) -> SendResult:
        """Try queue after queue until a broker stored the message, or tries or time are used up.

        avoid: name of a broker that is asked only when the topic has no other. Raises the failure of the last try.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        queues = await self.queues(outgoing.topic)  # raises before anything was sent
        failure: GantryError | None = None
        for _ in range(1 + self._retries if tries is None else tries):
            left_s = deadline - loop.time()
            if left_s <= 0:
                break  # looking up the route or the tries so far took all of the call's time
            queue = self.pick(queues, avoid=avoid)
            try:
                # On return the broker has answered that it stored the message: the only way out with a result.
                return await self.send_to(queue, outgoing, left_s)
            except GantryError as exc:
                if not may_try_again(exc):
                    raise
                # Either the broker refused, and this try stored nothing. Or its answer is missing: then it may have
                # stored the message, and the next try may store it a second time, with the same unique id. RocketMQ's
                # producers make the same choice: rather twice than not at all.
                failure = exc
                avoid = queue.broker_name
        # No try was answered as stored. Without a failure there was no try: the time was up before the first.
        raise failure or RequestTimeout(outgoing.topic, RequestCode.SEND_MESSAGE_V2, timeout_s)

    async def send_again(
        self, outgoing: Outgoing, queue: MessageQueue, failure: GantryError, timeout_s: float
    ) -> SendResult:
        """Use the tries that are left after a first one, at `queue`, failed with `failure`."""
        if not may_try_again(failure) or self._retries < 1:
            raise failure  # no further try may be made: the first one's failure is the outcome
        return await self.send_anywhere(outgoing, timeout_s, tries=self._retries, avoid=queue.broker_name)

    async def send_to(self, queue: MessageQueue, outgoing: Outgoing, timeout_s: float) -> SendResult:
        """Try once. The result means: stored. ResponseError: not stored. ConnectError without an address or a
        connection: not sent. ConnectError after sending, RequestTimeout, ProtocolError: may be stored."""
        address = self.address_of(queue)
        request = send_request(outgoing, self.group, queue.queue_id)
        answer = await self._remoting.invoke(address, request, timeout_s=timeout_s)
        return send_result(answer, outgoing, queue.broker_name, address)

    async def reply(self, request: MessageExt, answer: Message, timeout_s: float) -> SendResult:
        """Send the answer to a request. Tried once, at the broker that stored the request if its name is known: the
        requester is certain to be connected there."""
        queues = await self.queues(answer.topic)
        there = [queue for queue in queues if queue.broker_name == request.broker_name]
        return await self.send_to(self.pick(there or queues), pack(answer), timeout_s)

    def address_of(self, queue: MessageQueue) -> str:
        """The address of the queue's master. ConnectError when it is not known."""
        address = self._routes.address(queue.broker_name)
        if address is None:
            raise ConnectError(queue.broker_name, "no address of this broker is known")
        return address

    def pick(self, queues: Sequence[MessageQueue], *, avoid: str = "") -> MessageQueue:
        """The next queue in turn, at another broker than `avoid` when there is one."""
        for _ in queues:
            self._next_queue += 1
            queue = queues[self._next_queue % len(queues)]
            if queue.broker_name != avoid:
                return queue
        return queues[self._next_queue % len(queues)]

    async def routes_known(self, topic: str) -> None:
        """Look the topic up when it is new to this producer, and register at brokers that come with it soon.

        ClientClosed, MessageRejected (a name that is not allowed, or a system topic), RouteNotFound.
        """
        self._session.require_open()
        if topic not in self._routes.known:
            check_topic(topic)
            if not may_clients_send_to(topic):
                raise MessageRejected(f"{topic} is a system topic that clients may not send to")
            await self._routes.to_send(topic)
            self._session.meet_brokers()


def may_try_again(failure: GantryError) -> bool:
    """Whether another try may succeed. Not after an answer that another broker would give as well."""
    if isinstance(failure, ResponseError):
        return failure.code in RETRYABLE_CODES
    return isinstance(failure, ConnectError | RequestTimeout)
