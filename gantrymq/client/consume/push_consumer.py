"""PushConsumer: a member of a consumer group whose listener is called with messages as they come.

Parts: an assignment decides which queues are ours (each 20 s, when the broker says that the group changed, when the
subscription changed); for each queue a pull loop (pulling) fills a process queue, workers (consuming) empty it; offsets
are persisted each 5 s, when a queue is released and at the end. Delivery is at least once.

Failed messages go back to the broker, which delivers them again later through the topic %RETRY%<group>, that every
consumer of a group subscribes to; after 16 times they rest in %DLQ%<group>. In broadcasting, failed messages are
dropped. With `ordered` they are tried again in their place, for as long as it takes unless max_reconsume_times says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from gantrymq.client.connection.background import Background, every
from gantrymq.client.connection.routes import REFRESH_S
from gantrymq.client.connection.session import ClientSession, ConnectionOptions
from gantrymq.client.consume.assignment import REBALANCE_S, SOON_S, Assignment, GroupShare
from gantrymq.client.consume.concurrent_service import Consumes, Consuming
from gantrymq.client.consume.failed_messages import INNER_PRODUCER_GROUP, FailedMessages, restore_topic
from gantrymq.client.consume.listener_calls import Listener, ListenerCalls
from gantrymq.client.consume.ordered_service import SUSPEND_S, OrderedConsuming
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.pull_loop import FlowLimits, PullContext, keep_pulling
from gantrymq.client.consume.queue_locks import RENEW_S, QueueLocks
from gantrymq.client.consume.rebalance import AllocateStrategy, allocate_averagely
from gantrymq.client.consume.request_handlers import ConsumerRequests
from gantrymq.client.consume.running_info import ConsumeCounters, running_info
from gantrymq.client.consume.stacks import stacks_of, workers_of
from gantrymq.client.consume.start_offset import StartAt, offset_store
from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel, parse_subscription
from gantrymq.client.consume.subscription_check import check_conditions
from gantrymq.client.produce.request_reply import reply_to
from gantrymq.client.produce.trace import ConsumeTracer, TraceDispatcher
from gantrymq.client.results import SendResult
from gantrymq.errors import ConfigError, GantryError
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.topics import TRACE_TOPIC, check_group, check_topic, retry_topic
from gantrymq.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)

logger = logging.getLogger(__name__)

PERSIST_S = 5.0  # RocketMQ: persistConsumerOffsetInterval
MAX_RECONSUME_TIMES = 16  # unless ordered: RocketMQ's defaults for either
UNLIMITED = (1 << 31) - 1
REPLY_TIMEOUT_S = 3.0


class PushConsumer:
    """Consumes for a group:

        async def listener(messages): ...
        consumer = PushConsumer("host:port", group="g", listener=listener)
        consumer.subscribe("topic", "TagA || TagB")
        async with consumer: ...

    listener: async, or a plain function (run in threads); gets 1 to `batch_size` messages of one queue; LATER or an
    exception means again later. concurrency: listener calls at once. consume_from: where a new group begins
    (`consume_from_ms` with TIMESTAMP). overdue_s: a listener call that takes longer is given up, and its messages come
    again. offsets_folder: for broadcasting. close_wait_s: for listener calls in progress at the end.

    ordered: the messages of a queue one after the other, by one member of the group at a time (broker locks); a failed
    one is tried again after `suspend_s`. max_reconsume_times: until it is a dead letter; None: 16, ordered: never.
    trace: tell `trace_topic` when messages are consumed.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        listener: Listener,
        model: MessageModel = MessageModel.CLUSTERING,
        consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET,
        consume_from_ms: int | None = None,
        concurrency: int = 20,
        batch_size: int = 1,
        pull_batch: int = 32,
        limits: FlowLimits | None = None,
        strategy: AllocateStrategy = allocate_averagely,
        ordered: bool = False,
        suspend_s: float = SUSPEND_S,
        max_reconsume_times: int | None = None,
        overdue_s: float = 900.0,
        close_wait_s: float = 10.0,
        offsets_folder: Path | None = None,
        trace: bool = False,
        trace_topic: str = TRACE_TOPIC,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        check_group(group)
        start_at = StartAt(consume_from, consume_from_ms)
        if concurrency < 1 or batch_size < 1 or pull_batch < 1:
            raise ConfigError("concurrency, batch_size and pull_batch must be at least 1")
        if model is MessageModel.BROADCASTING and options.get("instance_name") is None:
            options["instance_name"] = "DEFAULT"  # the offset file's name must be the same after a restart
        self.group = group
        self._model = model
        self._consume_from = consume_from
        self._concurrency = concurrency
        self._overdue_s = overdue_s
        self._close_wait_s = close_wait_s
        self._started_at_ms = 0
        self._is_stopping = False
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._background = Background()
        self._heartbeat_wanted = asyncio.Event()
        self._retry_topic = retry_topic(group)
        self._session = ClientSession(name_servers, heartbeat=self._heartbeat, heartbeat_slaves=True, **options)
        limit = max_reconsume_times
        if limit is None:
            limit = UNLIMITED if ordered else MAX_RECONSUME_TIMES
        self._failed = FailedMessages(self._session, group, model=model, max_reconsume_times=limit)
        self._counters = ConsumeCounters()
        self._traces = TraceDispatcher(self._session, group, topic=trace_topic) if trace else None
        self._calls = ListenerCalls(
            listener,
            self._counters,
            concurrency=concurrency,
            tracer=None if self._traces is None else ConsumeTracer(self._traces, group),
        )
        self._locks = QueueLocks(self._session, group) if ordered and model is MessageModel.CLUSTERING else None
        self._is_ordered = ordered
        self._consuming: Consumes
        if ordered:
            self._consuming = OrderedConsuming(
                self._calls,
                self._failed.give_up,
                self._may_consume,
                concurrency=concurrency,
                batch_size=batch_size,
                suspend_s=suspend_s,
                max_reconsume_times=max_reconsume_times,
            )
        else:
            self._consuming = Consuming(
                self._calls, self._failed.send_back, concurrency=concurrency, batch_size=batch_size
            )
        pull_context = self._make_pull_context(limits or FlowLimits(), pull_batch)
        self._assignment = Assignment(
            self._session,
            group,
            share=GroupShare(self._session, group, model, strategy, self._heartbeat_wanted.set),
            start_at=start_at,
            offsets=offset_store(self._session, group, model, offsets_folder),
            background=self._background,
            keep_pulling=lambda process_queue: keep_pulling(pull_context, process_queue),
            locks=self._locks,
        )
        requests = ConsumerRequests(group, self._assignment, self._calls, self._running_info, is_ordered=ordered)
        self._session.answer_requests(requests.handlers())

    def _make_pull_context(self, limits: FlowLimits, batch: int) -> PullContext:
        return PullContext(
            calls=self._session.calls,
            routes=self._session.routes,
            group=self.group,
            limits=limits,
            batch=batch,
            counters=self._counters,
            subscription=self._subscriptions.get,
            queue_count=lambda: len(self._assignment.held),
            commit_offset=self._commit_offset,
            received=self._on_received,
            offset_moved=self._on_offset_moved,
            not_registered=self._heartbeat_wanted.set,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._session.client_id

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return sorted(self._assignment.held)

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """Consume a topic: "*", "TagA || TagB", or sql="price > 5 AND region = 'eu'". Also while running."""
        check_topic(topic)
        self._subscriptions[topic] = parse_subscription(topic, expression, time.time_ns() // 1_000_000, sql=sql)
        self._heartbeat_wanted.set()
        self._assignment.rebalance_wanted.set()

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its queues are released in a moment."""
        self._subscriptions.pop(topic, None)
        self._heartbeat_wanted.set()
        self._assignment.rebalance_wanted.set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Join the group and begin to consume. Raises ResponseError when a broker refuses an SQL condition."""
        if self._session.is_open:
            return
        if not self._subscriptions:
            raise ConfigError("nothing to consume: call subscribe first")
        if self._model is MessageModel.CLUSTERING:
            self._subscriptions[self._retry_topic] = parse_subscription(
                self._retry_topic, "*", time.time_ns() // 1_000_000
            )
        self._started_at_ms = time.time_ns() // 1_000_000
        self._session.open()
        try:
            await check_conditions(self._session, self.group, list(self._subscriptions.values()))
        except BaseException:
            await self._session.close()
            raise
        self._consuming.start()
        self._background.start(every(PERSIST_S, self._persist), "persist offsets")
        self._background.start(self._heartbeat_when_wanted(), "heartbeat on change")
        self._background.start(self._keep_balanced(), "rebalance")
        if self._model is MessageModel.CLUSTERING:
            self._background.start(self._find_all_retry_queues(), "find retry queues")
        if self._traces is not None:
            self._background.start(self._traces.run(), "send traces")
        if self._locks is not None:
            self._background.start(self._keep_locks(self._locks), "renew locks")

    async def close(self) -> None:
        """Stop consuming, wait for the listener, write the offsets, leave the group."""
        if not self._session.is_open or self._is_stopping:
            return
        self._is_stopping = True
        self._assignment.close()
        await self._background.close()  # pull loops too
        await self._consuming.stop(self._close_wait_s)
        await self._assignment.leave()
        if self._traces is not None:
            await self._traces.flush()
        await self._session.close(producer_group=INNER_PRODUCER_GROUP, consumer_group=self.group)

    async def reply(self, request: MessageExt, body: bytes, *, timeout_s: float = REPLY_TIMEOUT_S) -> SendResult:
        """Answer a request (see Producer.request) that the listener was given."""
        return await self._failed.sender.reply(request, reply_to(request, body), timeout_s)

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        consumer = ConsumerData(
            self.group,
            message_model=self._model.value,
            consume_from_where=self._consume_from.value,
            subscription_data_set=list(self._subscriptions.values()),
        )
        return HeartbeatData(client_id, [ProducerData(INNER_PRODUCER_GROUP)], [consumer])

    async def _heartbeat_when_wanted(self) -> None:
        """Brokers that don't know us, or a subscription that changed, must not wait for the next round."""
        while True:
            await self._heartbeat_wanted.wait()
            self._heartbeat_wanted.clear()
            await self._session.send_heartbeats()
            self._assignment.rebalance_wanted.set()
            await asyncio.sleep(SOON_S)

    async def _keep_balanced(self) -> None:
        """Find the brokers, tell them who is here, then rebalance for ever."""
        for topic in [*self._subscriptions]:
            with contextlib.suppress(GantryError):  # rebalancing looks again, and says what is wrong
                await self._session.routes.to_read(topic)
        await self._session.send_heartbeats()
        self._heartbeat_wanted.clear()
        await every(REBALANCE_S, self._rebalance, wake=self._assignment.rebalance_wanted)

    async def _find_all_retry_queues(self) -> None:
        """Each broker makes the retry topic at the first heartbeat, and tells the name server by itself.

        A route that was asked for in between lacks brokers, and failed messages would wait there until the routes are
        refreshed. So it is looked at again, less and less often, until it has all brokers or the usual pace is as good.
        """
        routes, pause_s = self._session.routes, SOON_S
        while pause_s < REFRESH_S:
            await asyncio.sleep(pause_s)
            pause_s *= 2
            known = [routes.known[topic] for topic in self._subscriptions if topic in routes.known]
            brokers = {name for route in known for name in route.addresses}
            retry = routes.known.get(self._retry_topic)
            if retry is not None and brokers <= retry.addresses.keys():
                return
            with contextlib.suppress(GantryError):  # not there yet, or nobody to ask: the next look tells
                if await routes.look_again(self._retry_topic):
                    self._assignment.rebalance_wanted.set()

    async def _rebalance(self) -> None:
        await self._assignment.rebalance([*self._subscriptions])

    async def _keep_locks(self, locks: QueueLocks) -> None:
        await every(RENEW_S, self._renew_locks, wake=locks.renew_wanted)

    async def _renew_locks(self) -> None:
        await self._assignment.renew_locks()
        await asyncio.sleep(SOON_S)  # a missing lock asks for a renewal again and again

    # -- what the pull loops tell -------------------------------------------------------------------------------------

    def _commit_offset(self, process_queue: ProcessQueue) -> int | None:
        return process_queue.commit_offset if self._model is MessageModel.CLUSTERING else None

    def _on_received(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        if process_queue.queue.topic == self._retry_topic:
            for message in messages:
                restore_topic(message, self._retry_topic)
        self._consuming.submit(process_queue, messages)

    def _on_offset_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        queue = process_queue.queue
        logger.warning(
            "offset outside the queue",
            extra={
                "event": "offset_moved",
                "queue": str(queue),
                "asked": process_queue.next_offset,
                "corrected": offset,
            },
        )
        self._background.start(self._assignment.restart({queue: offset}), "correct offset")

    def _may_consume(self, process_queue: ProcessQueue) -> bool:
        return self._locks is None or self._locks.holds(process_queue.queue)

    # -- periodic work ------------------------------------------------------------------------------------------------

    async def _persist(self) -> None:
        self._counters.sample()
        await self._assignment.persist()
        if not self._is_ordered:  # in order, nothing may overtake the one that takes so long
            await self._give_up_overdue()

    async def _give_up_overdue(self) -> None:
        """A listener that never returns must not hold the group's offset for ever."""
        started_before = time.monotonic() - self._overdue_s
        await self._failed.send_back_overdue(self._assignment.held.values(), started_before)

    def _running_info(self, with_stacks: bool) -> bytes:
        return running_info(
            name_servers=self._session.name_servers.addresses,
            concurrency=self._concurrency,
            started_at_ms=self._started_at_ms,
            subscriptions=self._subscriptions,
            queues=self._assignment.held,
            counters=self._counters,
            locks=self._locks,
            workers=workers_of(self._calls.running.values()),
            stacks=stacks_of(self._calls.running.values()) if with_stacks else None,
        )
