"""The loop that keeps one process queue filled: pull, hand the messages on, pull again.

The broker holds a pull until a message comes (long polling), so an idle queue costs a request every fifteen seconds.
Pulling pauses while the consumer holds as much as it may.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gantrymq.client.connection.callbacks import tell
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.options import ConsumerOptions, FlowLimits
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.consume.subscription import is_wanted
from gantrymq.client.results import LostMessage, PullResult, PullStatus
from gantrymq.errors import GantryError, ResponseError
from gantrymq.log_limit import LogLimit
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.remoting.bodies import SubscriptionData
from gantrymq.remoting.codes import ResponseCode

logger: logging.Logger = logging.getLogger(__name__)

PULL = "pull"
SUSPEND_S = 15.0  # RocketMQ: brokerSuspendMaxTimeMillis
PULL_TIMEOUT_S = 30.0  # RocketMQ: consumerTimeoutMillisWhenSuspend
UNKNOWN_PAUSE_S = (
    0.1  # after the first refusal of a broker that does not know this consumer: its heartbeat is on its way
)
PAUSE_S = 1.0  # after a failure; RocketMQ waits 3 s, but a broker that restarts is back sooner

NOT_REGISTERED = frozenset(
    {
        ResponseCode.SUBSCRIPTION_NOT_EXIST.value,
        ResponseCode.SUBSCRIPTION_NOT_LATEST.value,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST.value,
        ResponseCode.FILTER_DATA_NOT_EXIST.value,
        ResponseCode.FILTER_DATA_NOT_LATEST.value,
    }
)


@dataclass(slots=True, kw_only=True)
class PullContext:
    """What the pull loops of one consumer share."""

    session: ClientSession
    options: ConsumerOptions
    counters: ConsumeCounters
    subscription: Callable[[str], SubscriptionData | None]  # of a topic, None when it was given up
    held: Callable[[], Mapping[MessageQueue, ProcessQueue]]  # by all loops together
    commit_offset: Callable[[ProcessQueue], int | None]  # to tell the broker with a pull; None: it does not keep it
    received: Callable[[ProcessQueue, list[MessageExt]], None]
    offset_moved: Callable[[ProcessQueue, int], None]  # the broker says that the offset is outside the queue
    not_registered: Callable[[str], None]  # the broker at that address does not know this consumer (yet, or any more)
    rebalance: Callable[[], None]  # a topic's brokers are others than before
    is_paused: Callable[[ProcessQueue], bool] = lambda process_queue: False
    says_subscription: bool = False  # with each pull, so that no heartbeat has to have told it before
    log_limit: LogLimit = field(default_factory=LogLimit)
    limits: FlowLimits = field(init=False)
    _limits_topics: bool = field(init=False)

    def __post_init__(self) -> None:
        self.limits = self.options.limits or FlowLimits()
        self._limits_topics = (self.limits.messages_per_topic, self.limits.bytes_per_topic) != (None, None)

    def may_pull(self, process_queue: ProcessQueue) -> bool:
        """Whether the queue wants more; its `changed` is set when that may be another answer."""
        topic = process_queue.queue.topic
        held = self.held()
        of_topic = sum(queue.topic == topic for queue in held) if self._limits_topics else 1
        return self.limits.allow(process_queue, len(held), of_topic) and not self.is_paused(process_queue)


async def keep_pulling(context: PullContext, process_queue: ProcessQueue) -> None:
    """Pull for this queue until it is dropped or the task is cancelled."""
    queue = process_queue.queue
    place = f"{queue.topic}/{queue.queue_id}"
    try:
        await _keep_pulling(context, process_queue, place)
    finally:
        context.session.outages.given_up(PULL, queue.broker_name, member=place)


async def _keep_pulling(context: PullContext, process_queue: ProcessQueue, place: str) -> None:
    queue = process_queue.queue
    broker_id, unknown_pause_s = 0, UNKNOWN_PAUSE_S
    while not process_queue.was_dropped():
        while not context.may_pull(process_queue):
            process_queue.changed.clear()
            await process_queue.changed.wait()
            if process_queue.was_dropped():
                return
        subscription = context.subscription(process_queue.queue.topic)
        if subscription is None:  # rebalancing will release the queue, unless the topic is subscribed to again by then
            await asyncio.sleep(PAUSE_S)
            continue
        try:
            result = await _pull_once(context, process_queue, subscription, broker_id)
        except GantryError as exc:
            context.session.outages.failed(PULL, queue.broker_name, exc, member=place)
            if isinstance(exc, ResponseError) and exc.code in NOT_REGISTERED:
                context.not_registered(exc.address)
                broker_id = 0
                await asyncio.sleep(unknown_pause_s)
                unknown_pause_s = min(unknown_pause_s * 2, PAUSE_S)
                continue
            moves = context.session.moves
            moves.report(queue.broker_name, queue.topic, exc, changed=context.rebalance)
            if broker_id:  # a slave's failure says nothing of the master
                broker_id = 0
                await asyncio.sleep(PAUSE_S)
            else:
                await moves.wait(queue.broker_name, exc, PAUSE_S)
            continue
        context.session.outages.worked(PULL, queue.broker_name, member=place)
        if process_queue.was_dropped():
            return
        if result.lost is not None:
            await tell(context.options.on_message_lost, result.lost, "on_message_lost")
        if result.status is PullStatus.OFFSET_ILLEGAL:
            if await _wait_for_those_before(result.next_offset, process_queue):
                continue  # the answer is old by now
            context.offset_moved(process_queue, result.next_offset)
            return
        broker_id, unknown_pause_s = result.broker_id, UNKNOWN_PAUSE_S


async def _wait_for_those_before(offset: int, process_queue: ProcessQueue) -> bool:
    """Wait until nothing before the offset is held: there the group is to go on, and must not skip it. Whether
    something was held."""
    has_waited = False
    while process_queue.cached_messages and process_queue.commit_offset < offset and not process_queue.was_dropped():
        has_waited = True
        process_queue.changed.clear()
        await process_queue.changed.wait()
    return has_waited


async def _pull_once(
    context: PullContext, process_queue: ProcessQueue, subscription: SubscriptionData, broker_id: int
) -> PullResult:
    queue = process_queue.queue
    address, is_master = context.session.routes.require_address_to_read(queue.broker_name, broker_id)
    # a condition is compiled once, from the heartbeat, and not for each pull
    says_it = context.says_subscription and subscription.expression_type == SubscriptionData.TAG
    started = time.monotonic()
    result = await context.session.calls.pull(
        address,
        context.options.group,
        queue.topic,
        queue.queue_id,
        process_queue.next_offset,
        broker_name=queue.broker_name,
        max_messages=context.options.pull_batch,
        commit_offset=context.commit_offset(process_queue) if is_master else None,
        suspend_s=SUSPEND_S,
        subscription=subscription.sub_string if says_it else None,
        sub_version=subscription.sub_version,
        expression_type=subscription.expression_type,
        timeout_s=PULL_TIMEOUT_S,
        take=functools.partial(_take, context, process_queue, subscription),
    )
    if result.messages:
        context.counters.pulled(queue.topic, len(result.messages), time.monotonic() - started)
    return result


def _take(
    context: PullContext, process_queue: ProcessQueue, subscription: SubscriptionData, result: PullResult
) -> None:
    """Keep the messages that the subscription selects; the others count as finished."""
    if process_queue.was_dropped() or result.status is PullStatus.OFFSET_ILLEGAL:
        return
    if result.lost is not None:
        _log_lost(context, result.lost)
    messages = [message for message in result.messages if is_wanted(subscription, message)]
    process_queue.add(messages, result.next_offset)
    if messages:
        context.received(process_queue, messages)


def _log_lost(context: PullContext, lost: LostMessage) -> None:
    queue, group = lost.queue, context.options.group
    left_out = context.log_limit.left_out("message_lost", str(queue))
    if left_out is None:
        return
    logger.error(
        "message lost: damaged on the broker's disk (topic=%s, broker=%s, queue_id=%s, queue_offset=%s, "
        "physical_offset=%s, group=%s, lines_left_out=%s): %s",
        queue.topic,
        queue.broker_name,
        queue.queue_id,
        lost.queue_offset,
        lost.physical_offset,
        group,
        left_out,
        lost.reason,
        extra={
            "event": "message_lost",
            "topic": queue.topic,
            "broker": queue.broker_name,
            "queue_id": queue.queue_id,
            "queue_offset": lost.queue_offset,
            "physical_offset": lost.physical_offset,
            "group": group,
            "lines_left_out": left_out,
            "error": lost.reason,
        },
    )
