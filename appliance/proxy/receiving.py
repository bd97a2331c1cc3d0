"""ReceiveMessage, and what becomes of a delivery: AckMessage, ChangeInvisibleDuration, dead letters.

A message that was leased for a call that is over by then is given back at once: the client never saw it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Iterable
from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpclib.server import Stream

from appliance.acl.account import SUB
from appliance.proxy import leases
from appliance.proxy.brokers import Brokers, BrokerSession
from appliance.proxy.callers import Caller
from appliance.proxy.messages.outgoing import client_message, timestamp
from appliance.proxy.messages.statuses import Refused, ok, status, status_of
from appliance.proxy.protocol.definition_pb2 import Code, FilterExpression, FilterType, MessageQueue
from appliance.proxy.protocol.service_pb2 import (
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
)
from appliance.proxy.renewals import LEASE_S, Renewals
from appliance.proxy.settings_answer import RECEIVE_MAX
from gantrymq.client.pop.pop_calls import Delivery, Wanted
from gantrymq.errors import GantryError
from gantrymq.message.pop_handle import PopHandle

logger = logging.getLogger(__name__)

POLL_S_MIN, POLL_S_MAX = 5.0, 20.0
ANSWER_S = 0.5  # of the call's deadline, for the answer's way
INVISIBLE_S_MIN, INVISIBLE_S_MAX = 10.0, 12 * 3600.0
PARKED_MAX = 10_000  # receives that wait at brokers, of this proxy
ACKS_MAX = 1024  # entries of one request
POLLING_TIME_SINCE = (5, 0, 3)  # clients that know its code
GIVE_BACK_S = 1.0  # until a message of a client that has ended is seen by others


class Receiving:
    """The RPCs."""

    def __init__(self, brokers: Brokers, renewals: Renewals) -> None:
        self._brokers = brokers
        self._renewals = renewals
        self._parked = 0
        self._giving_back: set[asyncio.Task[None]] = set()

    async def receive_message(
        self, caller: Caller, request: ReceiveMessageRequest, stream: Stream[Any, ReceiveMessageResponse]
    ) -> None:
        try:
            topic = caller.topic(request.message_queue.topic, SUB)
            group = caller.group(request.group)
            session = self._brokers.session(caller.account)
            wanted = await self._wanted(caller, request, session, group, topic)
            broker_name = await _broker_of(session, request.message_queue, topic)
            delivered = await self._pop(session, broker_name, wanted)
            try:
                alive = await self._without_dead(session, wanted, delivered)
            except BaseException:
                self.give_back(session, group, topic, [delivery.handle for delivery in delivered])
                raise
        except GantryError as exc:
            await stream.send_message(ReceiveMessageResponse(status=status_of(exc)))
            await stream.send_message(ReceiveMessageResponse(delivery_timestamp=timestamp(int(time.time() * 1000))))
            return
        await self._hand_over(caller, request, stream, session, wanted, alive)

    async def _hand_over(
        self,
        caller: Caller,
        request: ReceiveMessageRequest,
        stream: Stream[Any, ReceiveMessageResponse],
        session: BrokerSession,
        wanted: Wanted,
        delivered: list[Delivery],
    ) -> None:
        """Status first, then the messages; what is not handed over is given back."""
        left = delivered.copy()
        try:
            found = ok() if delivered else status(Code.MESSAGE_NOT_FOUND, "no new message")
            await stream.send_message(ReceiveMessageResponse(status=found))
            for delivery in delivered:
                try:
                    message = client_message(delivery.message, request.message_queue.topic, str(delivery.handle))
                except ValueError as exc:  # it comes again after its invisible time, until it is a dead letter
                    left.remove(delivery)
                    facts = {"event": "message_not_shown", "message_id": delivery.message.msg_id, "why": str(exc)}
                    logger.error("message can't be delivered", extra=facts)
                    continue
                message.system_properties.delivery_attempt = delivery.attempt
                seconds, rest = divmod(wanted.invisible_ms, 1000)
                message.system_properties.invisible_duration.CopyFrom(Duration(seconds=seconds, nanos=rest * 1_000_000))
                await stream.send_message(ReceiveMessageResponse(message=message))
                left.remove(delivery)
                if request.auto_renew:
                    self._renewals.add(session, caller.client_id, wanted.group, wanted.topic, delivery.handle)
            await stream.send_message(ReceiveMessageResponse(delivery_timestamp=timestamp(int(time.time() * 1000))))
        finally:
            if left:
                self.give_back(session, wanted.group, wanted.topic, [delivery.handle for delivery in left])

    async def _pop(self, session: BrokerSession, broker_name: str, wanted: Wanted) -> list[Delivery]:
        """Messages; when the call ends before they come, they are given back."""
        if self._parked >= PARKED_MAX:
            raise Refused(Code.TOO_MANY_REQUESTS, f"{PARKED_MAX} receives wait at this proxy already")
        popping = asyncio.get_running_loop().create_task(leases.pop(session, broker_name, wanted), name="pop")
        self._parked += 1
        popping.add_done_callback(self._popped)
        try:
            return await asyncio.shield(popping)
        except asyncio.CancelledError:
            popping.add_done_callback(lambda done: self._too_late(session, wanted, done))
            raise

    def _popped(self, done: asyncio.Task[list[Delivery]]) -> None:
        self._parked -= 1
        if not done.cancelled():
            done.exception()  # the call's, if it is still there

    def _too_late(self, session: BrokerSession, wanted: Wanted, done: asyncio.Task[list[Delivery]]) -> None:
        if not done.cancelled() and done.exception() is None and done.result():
            self.give_back(session, wanted.group, wanted.topic, [delivery.handle for delivery in done.result()])

    def give_back(
        self, session: BrokerSession, group: str, topic: str, handles: Iterable[PopHandle], in_s: float = 0
    ) -> None:
        """Have others get the messages, in the background."""
        task = asyncio.get_running_loop().create_task(_give_back(session, group, topic, list(handles), in_s))
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    def client_ended(self, client_id: str) -> None:
        """Have others get soon what it has not acknowledged."""
        for renewed in self._renewals.drop_of(client_id):
            self.give_back(renewed.session, renewed.group, renewed.topic, [renewed.handle], GIVE_BACK_S)

    async def _without_dead(self, session: BrokerSession, wanted: Wanted, delivered: list[Delivery]) -> list[Delivery]:
        """In order, brokers deliver a message again and again; after its last attempt it becomes a dead letter here."""
        if not wanted.is_ordered or not delivered:
            return delivered
        attempts_max = (await session.group(wanted.group, wanted.topic)).retry_max_times + 1
        alive = []
        for delivery in delivered:
            if delivery.attempt > attempts_max:
                await leases.bury(session, wanted.group, wanted.topic, delivery.handle, delivery.message.msg_id)
            else:
                alive.append(delivery)
        return alive

    # -- what is asked for --------------------------------------------------------------------------------------------

    async def _wanted(
        self, caller: Caller, request: ReceiveMessageRequest, session: BrokerSession, group: str, topic: str
    ) -> Wanted:
        invisible_s = LEASE_S if request.auto_renew else seconds_of(request.invisible_duration)
        if not request.auto_renew and not INVISIBLE_S_MIN <= invisible_s <= INVISIBLE_S_MAX:
            why = f"invisible time: {INVISIBLE_S_MIN:g} s to {INVISIBLE_S_MAX:g} s"
            raise Refused(Code.ILLEGAL_INVISIBLE_TIME, why)
        return Wanted(
            group,
            topic,
            min(max(request.batch_size, 1), RECEIVE_MAX),
            int(invisible_s * 1000),
            poll_s(caller, request),
            *_filter_of(request.filter_expression),
            await session.is_ordered(group, topic),
            request.attempt_id,
            caller.client_id,
        )

    # -- what becomes of it -------------------------------------------------------------------------------------------

    async def ack_message(self, caller: Caller, request: AckMessageRequest) -> AckMessageResponse:
        topic, group = caller.topic(request.topic, SUB), caller.group(request.group)
        if not 0 < len(request.entries) <= ACKS_MAX:
            raise Refused(Code.BAD_REQUEST, f"{len(request.entries)} entries: 1 to {ACKS_MAX} are wanted")
        session = self._brokers.session(caller.account)
        await session.route(topic)
        entries = []
        for entry in request.entries:
            result = AckMessageResultEntry(
                message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=ok()
            )
            try:
                handle = leases.handle_of(entry.receipt_handle)
                self._renewals.drop(group, topic, handle)
                await leases.acknowledge(session, group, topic, handle)
            except GantryError as exc:
                result.status.CopyFrom(status_of(exc))
            entries.append(result)
        codes = {entry.status.code for entry in entries}
        whole = entries[0].status if len(codes) == 1 else status(Code.MULTIPLE_RESULTS)
        return AckMessageResponse(status=whole, entries=entries)

    async def change_invisible_duration(
        self, caller: Caller, request: ChangeInvisibleDurationRequest
    ) -> ChangeInvisibleDurationResponse:
        topic, group = caller.topic(request.topic, SUB), caller.group(request.group)
        invisible_s = seconds_of(request.invisible_duration)
        if not 0 <= invisible_s <= INVISIBLE_S_MAX:
            raise Refused(Code.ILLEGAL_INVISIBLE_TIME, f"invisible time: 0 to {INVISIBLE_S_MAX:g} s")
        handle = leases.handle_of(request.receipt_handle)
        session = self._brokers.session(caller.account)
        await session.route(topic)
        self._renewals.drop(group, topic, handle)
        changed = await leases.change(session, group, topic, handle, int(invisible_s * 1000))
        return ChangeInvisibleDurationResponse(status=ok(), receipt_handle=str(changed))

    async def forward_to_dead_letters(
        self, caller: Caller, request: ForwardMessageToDeadLetterQueueRequest
    ) -> ForwardMessageToDeadLetterQueueResponse:
        topic, group = caller.topic(request.topic, SUB), caller.group(request.group)
        handle = leases.handle_of(request.receipt_handle)
        session = self._brokers.session(caller.account)
        await session.route(topic)
        self._renewals.drop(group, topic, handle)
        await leases.bury(session, group, topic, handle, request.message_id)
        return ForwardMessageToDeadLetterQueueResponse(status=ok())


def seconds_of(duration: Duration) -> float:
    """Its seconds, also of one that protobuf's own conversion refuses."""
    return float(duration.seconds + duration.nanos / 1e9)


def poll_s(caller: Caller, request: ReceiveMessageRequest) -> float:
    """How long the broker may wait for messages. Refused when the call ends too soon for that."""
    asked_s = seconds_of(request.long_polling_timeout) if request.HasField("long_polling_timeout") else POLL_S_MAX
    wait_s = min(max(asked_s, POLL_S_MIN), POLL_S_MAX)
    if caller.left_s is None or wait_s + ANSWER_S <= caller.left_s:
        return wait_s
    if caller.left_s < POLL_S_MIN:
        version = tuple(int(part) if part.isdecimal() else 0 for part in caller.version.split(".")[:3])
        why = f"the call ends in {caller.left_s:.1f} s: a receive takes {POLL_S_MIN:g} s at least"
        raise Refused(Code.ILLEGAL_POLLING_TIME if version >= POLLING_TIME_SINCE else Code.BAD_REQUEST, why)
    return caller.left_s - ANSWER_S


def _filter_of(expression: FilterExpression) -> tuple[str, str]:
    if expression.type == FilterType.SQL:
        return "SQL92", expression.expression
    return "TAG", expression.expression.strip() or "*"


async def _broker_of(session: BrokerSession, queue: MessageQueue, topic: str) -> str:
    """The broker that the client was given; without one, any of the topic's."""
    route = await session.route(topic)
    if queue.broker.name in route.addresses:
        return queue.broker.name
    if not route.readable:
        raise Refused(Code.FORBIDDEN, f"no queue of topic {topic} can be read")
    return random.choice(route.readable).broker_name


async def _give_back(session: BrokerSession, group: str, topic: str, handles: list[PopHandle], in_s: float) -> None:
    for handle in handles:
        try:
            await leases.change(session, group, topic, handle, int(in_s * 1000))
        except GantryError as exc:  # then it comes back when its invisible time is over
            logger.info("message not given back: %s", exc, extra={"event": "message_not_given_back", "group": group})
