"""PushConsumer: a member of a consumer group whose listener is called with messages as they come.

Parts: an assignment takes and releases queues (each 20 s, when the broker says that the group changed, when the
subscription changed); for each queue a pull loop fills a process queue, and a consume service empties it; offsets are
persisted each 5 s, when a queue is released and at the end. Delivery is at least once.

Failed messages go back to the broker, which delivers them again later through the topic %RETRY%<group>, to which every
consumer of a group subscribes; after 16 times they are dead letters, in %DLQ%<group>. In broadcasting, failed messages
are dropped. With `ordered` they are tried again in their place, for as long as it takes unless max_reconsume_times says
otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Unpack

from gantrymq.client.connection.background import Background, every
from gantrymq.client.connection.option_checks import check_listener
from gantrymq.client.connection.routes import REFRESH_S
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.assignment import REBALANCE_S, SOON_S, Assignment, GroupShare
from gantrymq.client.consume.concurrent_service import ConcurrentConsumeService
from gantrymq.client.consume.failed_messages import INNER_PRODUCER_GROUP, FailedMessages, restore_topic
from gantrymq.client.consume.listener_calls import Listener, ListenerCalls
from gantrymq.client.consume.offset_store import offset_store
from gantrymq.client.consume.options import PushConsumerKeywords, PushConsumerOptions
from gantrymq.client.consume.ordered_service import OrderedConsumeService
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.pull_loop import PullContext, keep_pulling
from gantrymq.client.consume.queue_locks import RENEW_S, QueueLocks
from gantrymq.client.consume.request_handlers import ConsumerRequestHandlers
from gantrymq.client.consume.running_info import ConsumeCounters, running_info
from gantrymq.client.consume.stacks import stacks_of, workers_of
from gantrymq.client.consume.subscribing import Subscribing
from gantrymq.client.consume.subscription import SQL92, MessageModel, parse_subscription
from gantrymq.client.consume.workers import ConsumeService
from gantrymq.client.interceptors import ConsumeCall, ConsumeProceed, around_consume
from gantrymq.client.produce.request_reply import reply_to
from gantrymq.client.produce.trace import ConsumeTracer, dispatcher_of
from gantrymq.client.results import ConsumeResult, RetryLater, SendResult
from gantrymq.errors import ConfigError, ConnectError, GantryError, RequestTimeout, ResponseError, RouteNotFound
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.topics import retry_topic
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData

logger: logging.Logger = logging.getLogger(__name__)

PERSIST_S = 5.0  # RocketMQ: persistConsumerOffsetInterval
REPLY_TIMEOUT_S = 3.0


class PushConsumer(Subscribing):
    """Consumes for a group:

        async def listener(messages): ...
        consumer = PushConsumer("host:port", group="g", listener=listener)
        consumer.subscribe("topic", "TagA || TagB")
        async with consumer: ...

    listener: async, or a plain function (run in threads); gets 1 to `batch_size` messages of one queue; LATER or an
    exception means again later. model: whether the members of the group share the messages. concurrency: listener
    calls at once. pull_batch, limits: how much is pulled at once, and held. consume_from: where a new group begins
    (`consume_from_ms` with TIMESTAMP). strategy: how the members share the queues. overdue_s: a listener call that
    takes longer is given up, and its messages come again. offsets_folder: for broadcasting. close_wait_s: for listener
    calls in progress at the end. on_assigned, on_revoked: told of queues this member begins to read, and gives up.
    on_message_lost: told of each message that was skipped because it is damaged on the broker's disk.

    ordered: the messages of a queue one after the other, by one member of the group at a time (broker locks); a failed
    one is tried again after `suspend_s`. max_reconsume_times: until it is a dead letter; None: 16, ordered: never.
    trace: tell `trace_topic` when messages are
    consumed, `trace_sample` of them. Also instance_name, namespace, credentials, tls and serialize_type.
    PushConsumerOptions has the defaults.

    `start` joins the group. It raises ConfigError without a subscription, ResponseError when a broker refuses the
    subscriptions or an SQL condition. One that is added later and refused is taken back (log event
    `subscription_refused`), so that the others go on. `close` waits for the listener, writes the offsets and leaves the
    group.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        listener: Listener,
        **keywords: Unpack[PushConsumerKeywords],
    ) -> None:
        check_listener(listener)
        options = PushConsumerOptions(name_servers=name_servers, group=group, **keywords)
        super().__init__(ClientSession(options, heartbeat=self._heartbeat, heartbeat_slaves=True))
        self.group = group
        self._options = options
        self._started_at_ms = 0
        self._exit_code = 0
        self._accepted: dict[str, SubscriptionData] = {}  # those of the last heartbeats that no broker refused
        self._background = Background()
        self._heartbeat_wanted = asyncio.Event()
        self._retry_topic = retry_topic(group)
        self._failed = FailedMessages(self._session, options)
        self._counters = ConsumeCounters()
        self._traces = dispatcher_of(self._session, options)
        tracer = None if self._traces is None else ConsumeTracer(self._traces, group)
        self._calls = ListenerCalls(
            listener,
            self._counters,
            concurrency=options.concurrency,
            tracer=tracer,
            around=self._around if options.interceptors else None,
        )
        is_sharing_in_order = options.ordered and options.model is MessageModel.CLUSTERING
        self._locks = QueueLocks(self._session, group) if is_sharing_in_order else None
        self._consuming = self._make_service()
        self._assignment = self._make_assignment()
        handlers = ConsumerRequestHandlers(
            options, self._session.namespace, self._assignment, self._calls, self._running_info
        )
        self._session.answer_requests(handlers.handlers())

    async def _around(self, messages: list[MessageExt], proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        """Call the listener through the interceptors."""
        call = ConsumeCall(list(messages), self.group, self.client_id)
        return await around_consume(self._options.interceptors, call, proceed)

    def _make_service(self) -> ConsumeService:
        if self._options.ordered:
            return OrderedConsumeService(
                self._calls, self._failed.give_up, self._failed.bury, self._may_consume, self._options
            )
        return ConcurrentConsumeService(self._calls, self._failed.send_back, self._failed.bury, self._options)

    def _make_assignment(self) -> Assignment:
        context = PullContext(
            session=self._session,
            options=self._options,
            counters=self._counters,
            subscription=self._subscriptions.get,
            held=lambda: self._assignment.held,
            commit_offset=self._commit_offset,
            received=self._on_received,
            offset_moved=self._on_offset_moved,
            not_registered=self._not_registered,
            rebalance=lambda: self._assignment.rebalance_wanted.set(),
        )
        return Assignment(
            self._session,
            self._options,
            share=GroupShare(self._session, self._options, self._not_registered),
            offsets=offset_store(self._session, self._options),
            background=self._background,
            keep_pulling=lambda process_queue: keep_pulling(context, process_queue),
            locks=self._locks,
        )

    # -- what to consume ----------------------------------------------------------------------------------------------

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return sorted(self._assignment.held)

    def _subscriptions_changed(self) -> None:
        self._heartbeat_wanted.set()
        self._assignment.rebalance_wanted.set()

    # -- life ---------------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        if not self._subscriptions:
            raise ConfigError("nothing to consume: call subscribe first")
        if self._options.model is MessageModel.CLUSTERING:
            self._subscriptions[self._retry_topic] = parse_subscription(
                self._retry_topic, "*", time.time_ns() // 1_000_000
            )
        self._started_at_ms = time.time_ns() // 1_000_000
        self._session.open()
        try:
            await self._check_conditions()
            await self._find_brokers()
            await self._tell_subscriptions()
            if self._session.refusal is not None:
                raise self._session.refusal
        except BaseException:
            await self._session.close()
            raise
        self._consuming.start()
        self._background.start(every(PERSIST_S, self._persist, self._session.outages), "persist offsets")
        self._background.start(self._heartbeat_when_wanted(), "heartbeat on change")
        self._background.start(self._keep_balanced(), "rebalance")
        if self._options.model is MessageModel.CLUSTERING:
            self._background.start(self._find_all_retry_queues(), "find retry queues")
        if self._traces is not None:
            self._background.start(self._traces.run(), "send traces")
        if self._locks is not None:
            self._background.start(self._keep_locks(self._locks), "renew locks")

    async def _check_conditions(self) -> None:
        """Have the brokers compile the SQL conditions: a mistake should show now, not as a pull that fails for ever.

        ResponseError when a broker refuses one. A topic that is not known yet is left out, as in the Java client: no
        broker can be asked, and its first message may be on its way.
        """
        session = self._session
        for subscription in list(self._subscriptions.values()):
            if subscription.expression_type != SQL92:
                continue
            try:
                route = await session.routes.to_read(subscription.topic)
            except RouteNotFound:
                continue
            found = session.routes.address_to_read(route.readable[0].broker_name) if route.readable else None
            if found is not None:
                await session.calls.check_subscription(found[0], session.client_id, self.group, subscription)

    async def _shut_down(self) -> None:
        self._assignment.close()
        await self._background.close()  # pull loops too
        has_ended = await self._consuming.stop(self._options.close_wait_s)
        self._exit_code = 0 if has_ended else 1
        await self._assignment.leave()  # the offsets last: calls in progress may still have moved them
        if self._traces is not None:
            await self._traces.flush()
        await self._session.close(producer_group=INNER_PRODUCER_GROUP, consumer_group=self.group)

    async def run(self) -> int:
        """Consume until SIGTERM or SIGINT, then close; in the main thread: `sys.exit(asyncio.run(consumer.run()))`.

        Listener calls in progress may end (close_wait_s), and what was handled is committed. Returns the exit code: 0,
        or 1 when some call did not end in time; its messages come again. A second signal ends the process at once.
        """
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()

        def stop() -> None:
            self.begin_nothing_more()
            loop.call_soon_threadsafe(stopped.set)

        async with self:
            with StopSignals(stop):
                await stopped.wait()
        return self._exit_code

    def begin_nothing_more(self) -> None:
        """Have no further listener call begun, because `close` follows. From a signal's handler, too: an async listener
        may block the event loop, which then comes to `close` only after the messages it holds."""
        self._consuming.begin_nothing_more()

    @property
    def exit_code(self) -> int:
        """What `run` returns, once the consumer is closed."""
        return self._exit_code

    async def reply(self, request: MessageExt, body: bytes, *, timeout_s: float = REPLY_TIMEOUT_S) -> SendResult:
        """Answer a request (see Producer.request) that the listener was given."""
        return await self._failed.sender.reply(request, reply_to(request, body), timeout_s)

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        consumer = ConsumerData(
            self.group,
            message_model=self._options.model.value,
            consume_from_where=self._options.consume_from.value,
            subscription_data_set=list(self._subscriptions.values()),
        )
        return HeartbeatData(client_id, [ProducerData(INNER_PRODUCER_GROUP)], [consumer])

    async def _heartbeat_when_wanted(self) -> None:
        """Send heartbeats soon when the subscription changed."""
        while True:
            await self._heartbeat_wanted.wait()
            self._heartbeat_wanted.clear()
            await self._tell_subscriptions()
            self._greeted()
            await asyncio.sleep(SOON_S)

    def _not_registered(self, address: str) -> None:
        self._session.greetings.join(address, self._greeted)

    def _greeted(self) -> None:
        if self._session.refusal is not None:
            self._take_back(self._session.refusal)
        self._assignment.rebalance_wanted.set()

    async def _tell_subscriptions(self) -> None:
        told = dict(self._subscriptions)
        await self._session.send_heartbeats()
        if self._session.refusal is None:
            self._accepted = told

    def _take_back(self, refusal: ResponseError) -> None:
        """Return to the subscriptions that were accepted: a broker that refuses a heartbeat refuses all of it, and
        would forget this member in two minutes."""
        refused = [topic for topic, wanted in self._subscriptions.items() if self._accepted.get(topic) != wanted]
        if not self._accepted or not refused:
            return
        for topic in refused:
            del self._subscriptions[topic]
            if topic in self._accepted:
                self._subscriptions[topic] = self._accepted[topic]
        self._heartbeat_wanted.set()
        logger.error(
            "subscription rejected (group=%s, topics=%s): %s",
            self.group,
            refused,
            refusal,
            extra={
                "event": "subscription_refused",
                "group": self.group,
                "topics": refused,
                "error": str(refusal),
            },
        )

    async def _find_brokers(self) -> None:
        """Ask for the topics' routes; rebalancing asks again for what is missing, and says what is wrong."""
        for topic in [*self._subscriptions]:
            try:
                await self._session.routes.to_read(topic)
            except (ConnectError, RequestTimeout):
                return  # no name server answers: the other topics would only wait in vain
            except GantryError as exc:
                logger.debug("no route: %s", exc, extra={"event": "no_route", "topic": topic})

    async def _keep_balanced(self) -> None:
        await every(REBALANCE_S, self._rebalance, self._session.outages, wake=self._assignment.rebalance_wanted)

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
            with contextlib.suppress(GantryError):  # not there yet, or no name server answers: the next look tells
                if await routes.look_again(self._retry_topic):
                    self._assignment.rebalance_wanted.set()

    async def _rebalance(self) -> None:
        await self._assignment.rebalance([*self._subscriptions])

    async def _keep_locks(self, locks: QueueLocks) -> None:
        await every(RENEW_S, self._renew_locks, self._session.outages, wake=locks.renew_wanted)

    async def _renew_locks(self) -> None:
        await self._assignment.renew_locks()
        await asyncio.sleep(SOON_S)  # a missing lock asks for a renewal again and again

    # -- what the pull loops tell -------------------------------------------------------------------------------------

    def _commit_offset(self, process_queue: ProcessQueue) -> int | None:
        is_kept_there = self._options.model is MessageModel.CLUSTERING
        return process_queue.commit_offset if is_kept_there and self._assignment.may_commit(process_queue) else None

    def _on_received(self, process_queue: ProcessQueue, messages: list[MessageExt]) -> None:
        if process_queue.queue.topic == self._retry_topic:
            for message in messages:
                restore_topic(message, self._retry_topic, self._session.namespace)
        self._consuming.submit(process_queue, messages)

    def _on_offset_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        queue = process_queue.queue
        logger.warning(
            "offset outside the queue (queue=%s, asked=%s, corrected=%s)",
            queue,
            process_queue.next_offset,
            offset,
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
        if not self._options.ordered:  # in order, nothing may overtake the one that takes so long
            await self._give_up_overdue()

    async def _give_up_overdue(self) -> None:
        """Send back the messages of calls that take too long: they must not hold the group's offset for ever."""
        started_before = time.monotonic() - self._options.overdue_s
        await self._failed.send_back_overdue(self._assignment.held.values(), started_before)

    def _running_info(self, with_stacks: bool) -> bytes:
        return running_info(
            name_servers=self._session.name_servers.addresses,
            concurrency=self._options.concurrency,
            started_at_ms=self._started_at_ms,
            subscriptions=self._subscriptions,
            queues=self._assignment.held,
            counters=self._counters,
            locks=self._locks,
            namespace=self._session.namespace,
            workers=workers_of(self._calls.running.values()),
            stacks=stacks_of(self._calls.running.values()) if with_stacks else None,
        )
