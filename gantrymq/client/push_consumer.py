"""PushConsumer: a member of a consumer group whose listener is called with messages as they come.

Parts: a rebalance loop decides which queues are ours (each 20 s, when the broker says that the group changed, when the
subscription changed); for each queue a pull loop (pulling) fills a process queue, workers (consuming) empty it; offsets
are persisted each 5 s, when a queue is released and at the end. Delivery is at least once.

Failed messages go back to the broker, which delivers them again later through the topic %RETRY%<group>, that every
consumer of a group subscribes to; after 16 times they rest in %DLQ%<group>. In broadcasting, failed messages are
dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from gantrymq.client.background import Background, every
from gantrymq.client.consuming import Consuming, Listener, restore_topic
from gantrymq.client.incoming import read_messages
from gantrymq.client.offset_store import BrokerOffsets, FileOffsets, OffsetStore
from gantrymq.client.process_queue import ProcessQueue
from gantrymq.client.pulling import FlowLimits, PullContext, keep_pulling
from gantrymq.client.rebalance import AllocateStrategy, allocate_averagely, share_of
from gantrymq.client.results import ConsumeResult
from gantrymq.client.running_info import ConsumeCounters, running_info
from gantrymq.client.sender import Sender
from gantrymq.client.sending import pack
from gantrymq.client.session import ClientSession, ConnectionOptions
from gantrymq.client.subscription import SQL92, ConsumeFrom, MessageModel, parse_subscription
from gantrymq.errors import ConfigError, ConnectError, GantryError, ResponseError, RouteNotFound
from gantrymq.message import properties as names
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.topics import check_group, check_topic, is_retry_topic, retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    ProducerData,
    ResetOffsetBody,
    SubscriptionData,
)
from gantrymq.remoting.client import RequestHandler
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

REBALANCE_S = 20.0  # RocketMQ: rocketmq.client.rebalance.waitInterval
PERSIST_S = 5.0  # RocketMQ: persistConsumerOffsetInterval
SOON_S = 1.0  # until the next try when a round of rebalancing could not finish; doubles each time
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"  # sends the failed messages that the broker can't take back
OVERDUE_DELAY_LEVEL = 3  # of messages a listener never finished


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
        max_reconsume_times: int = 16,
        overdue_s: float = 900.0,
        close_wait_s: float = 10.0,
        offsets_folder: Path | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        check_group(group)
        if consume_from is ConsumeFrom.TIMESTAMP and consume_from_ms is None:
            raise ConfigError("consume_from TIMESTAMP needs consume_from_ms")
        if concurrency < 1 or batch_size < 1 or pull_batch < 1:
            raise ConfigError("concurrency, batch_size and pull_batch must be at least 1")
        if model is MessageModel.BROADCASTING and options.get("instance_name") is None:
            options["instance_name"] = "DEFAULT"  # the offset file's name must be the same after a restart
        self.group = group
        self._model = model
        self._consume_from = consume_from
        self._consume_from_ms = consume_from_ms
        self._concurrency = concurrency
        self._strategy = strategy
        self._max_reconsume_times = max_reconsume_times
        self._overdue_s = overdue_s
        self._close_wait_s = close_wait_s
        self._started_at_ms = 0
        self._is_stopping = False
        self._again_s = SOON_S
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._held: dict[MessageQueue, ProcessQueue] = {}
        self._pulls: dict[MessageQueue, asyncio.Task[None]] = {}
        self._background = Background()
        self._rebalance_wanted = asyncio.Event()
        self._heartbeat_wanted = asyncio.Event()
        self._changing = asyncio.Lock()  # one at a time takes, releases or resets queues
        self._retry_topic = retry_topic(group)
        self._session = ClientSession(
            name_servers,
            heartbeat=self._heartbeat,
            heartbeat_slaves=True,
            request_handlers=self._request_handlers(),
            **options,
        )
        self._sender = Sender(self._session, INNER_PRODUCER_GROUP, retries=2)
        self._offsets = self._offset_store(offsets_folder)
        self._counters = ConsumeCounters()
        self._consuming = Consuming(
            listener, self._on_failed, self._counters, concurrency=concurrency, batch_size=batch_size
        )
        self._pull_context = self._make_pull_context(limits or FlowLimits(), pull_batch)

    def _request_handlers(self) -> dict[int, RequestHandler]:
        """What brokers may ask of this consumer."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._on_ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._on_reset_offset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._on_consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._on_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._on_consume_directly,
        }

    def _make_pull_context(self, limits: FlowLimits, batch: int) -> PullContext:
        return PullContext(
            calls=self._session.calls,
            routes=self._session.routes,
            group=self.group,
            limits=limits,
            batch=batch,
            counters=self._counters,
            subscription=self._subscriptions.get,
            queue_count=lambda: len(self._held),
            commit_offset=self._commit_offset,
            received=self._on_received,
            offset_moved=self._on_offset_moved,
            not_registered=self._heartbeat_wanted.set,
        )

    def _offset_store(self, folder: Path | None) -> OffsetStore:
        if self._model is MessageModel.CLUSTERING:
            return BrokerOffsets(self._session.calls, self._session.routes, self.group)
        folder = folder or Path.home() / ".rocketmq_offsets"
        return FileOffsets(folder / self._session.client_id / self.group / "offsets.json")

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The name under which brokers list this client."""
        return self._session.client_id

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return sorted(self._held)

    def subscribe(self, topic: str, expression: str = "*", *, sql: bool = False) -> None:
        """Consume a topic: "*", "TagA || TagB", or with `sql` an SQL92 condition. Also while running."""
        check_topic(topic)
        self._subscriptions[topic] = parse_subscription(topic, expression, time.time_ns() // 1_000_000, sql=sql)
        self._heartbeat_wanted.set()
        self._rebalance_wanted.set()

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its queues are released in a moment."""
        self._subscriptions.pop(topic, None)
        self._heartbeat_wanted.set()
        self._rebalance_wanted.set()

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
            await self._check_conditions()
        except BaseException:
            await self._session.close()
            raise
        self._consuming.start()
        self._background.start(every(PERSIST_S, self._persist), "persist offsets")
        self._background.start(self._heartbeat_when_wanted(), "heartbeat on change")
        self._background.start(self._keep_balanced(), "rebalance")

    async def close(self) -> None:
        """Stop consuming, wait for the listener, write the offsets, leave the group."""
        if not self._session.is_open or self._is_stopping:
            return
        self._is_stopping = True
        await self._background.close()
        self._pulls.clear()
        await self._consuming.stop(self._close_wait_s)
        await self._persist()
        await self._session.close(producer_group=INNER_PRODUCER_GROUP, consumer_group=self.group)

    async def _check_conditions(self) -> None:
        """Ask a broker to compile the SQL conditions: a mistake should show now, not as a pull that fails for ever."""
        for subscription in list(self._subscriptions.values()):
            if subscription.expression_type != SQL92:
                continue
            route = await self._session.routes.to_read(subscription.topic)
            found = self._session.routes.address_to_read(route.readable[0].broker_name) if route.readable else None
            if found is not None:
                body = CheckClientRequestBody(self.client_id, self.group, subscription).to_json()
                await self._session.calls.call(found[0], RequestCode.CHECK_CLIENT_CONFIG, None, body)

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
            self._rebalance_wanted.set()
            await asyncio.sleep(SOON_S)

    async def _keep_balanced(self) -> None:
        """Find the brokers, tell them who is here, then rebalance for ever."""
        for topic in [*self._subscriptions]:
            with contextlib.suppress(GantryError):  # rebalancing looks again, and says what is wrong
                await self._session.routes.to_read(topic)
        await self._session.send_heartbeats()
        self._heartbeat_wanted.clear()
        await every(REBALANCE_S, self._rebalance, wake=self._rebalance_wanted)

    # -- rebalance ----------------------------------------------------------------------------------------------------

    async def _rebalance(self) -> None:
        """Take and release queues until those held are our share of every topic."""
        is_complete = True
        for topic in [*self._subscriptions]:
            try:
                share = await self._share(topic)
                if share is not None:
                    is_complete &= await self._hold(topic, share)
            except RouteNotFound:
                is_complete = False  # nobody has sent to it yet
            except GantryError as exc:
                is_complete = False
                logger.warning(
                    "rebalance failed", extra={"event": "rebalance_failed", "topic": topic, "error": str(exc)}
                )
        gone = {queue.topic for queue in self._held} - self._subscriptions.keys()
        for topic in gone:
            await self._hold(topic, [])
        if is_complete:
            self._again_s = SOON_S
        elif self._again_s < REBALANCE_S:
            asyncio.get_running_loop().call_later(self._again_s, self._rebalance_wanted.set)
            self._again_s *= 2  # what is missing for long is looked for at the usual pace

    async def _share(self, topic: str) -> list[MessageQueue] | None:
        """Our queues of the topic, None when that can't be said now."""
        route = await self._session.routes.to_read(topic)
        self._session.meet_brokers()
        if self._model is MessageModel.BROADCASTING:
            return list(route.readable)
        addresses = [found for name in route.addresses if (found := self._session.routes.address_to_read(name))]
        if not addresses:
            raise ConnectError(topic, "no broker of this topic has an address")
        try:
            members = await self._session.calls.consumer_ids(random.choice(addresses)[0], self.group)
        except ResponseError:
            members = []  # the group is unknown to this broker: so are we
        if self.client_id not in members:
            self._heartbeat_wanted.set()  # which asks for another round
            return None
        return share_of(self.client_id, route.readable, members, self._strategy)

    async def _hold(self, topic: str, share: Iterable[MessageQueue]) -> bool:
        """Release what is not in the share, take what is new; say if all could be taken."""
        wanted = set(share)
        async with self._changing:
            released = [queue for queue in self._held if queue.topic == topic and queue not in wanted]
            taken = sorted(wanted - self._held.keys())
            if released:
                await self._release(released)
            outcomes = await asyncio.gather(*map(self._take, taken), return_exceptions=True)
        for queue, outcome in zip(taken, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                logger.warning(
                    "queue not taken",
                    extra={"event": "queue_not_taken", "queue": str(queue), "error": str(outcome)},
                )
            elif isinstance(outcome, BaseException):
                raise outcome
        if released or taken:
            logger.info(
                "queues changed",
                extra={
                    "event": "queues_changed",
                    "group": self.group,
                    "topic": topic,
                    "taken": len(taken),
                    "released": len(released),
                    "held": len(wanted),
                },
            )
        return all(outcome is None for outcome in outcomes)

    async def _take(self, queue: MessageQueue) -> None:
        offset = await self._start_offset(queue)
        self._pull_from(queue, offset)

    def _pull_from(self, queue: MessageQueue, offset: int) -> None:
        process_queue = self._held[queue] = ProcessQueue(queue, offset)
        self._pulls[queue] = self._background.start(
            keep_pulling(self._pull_context, process_queue), f"pull {queue.topic}/{queue.broker_name}/{queue.queue_id}"
        )

    async def _release(self, queues: Iterable[MessageQueue]) -> None:
        """Give queues up: nothing of them counts from now on, what was done is written."""
        released = list(queues)
        for queue in released:
            process_queue = self._held.pop(queue)
            self._offsets.update(queue, process_queue.commit_offset)
            process_queue.drop()
            self._pulls.pop(queue).cancel()
        await self._offsets.persist(released)
        for queue in released:
            self._offsets.forget(queue)

    async def _start_offset(self, queue: MessageQueue) -> int:
        """Where to go on in a queue that was just taken."""
        offset = await self._offsets.read(queue)
        if offset is not None:
            return offset
        found = self._session.routes.address_to_read(queue.broker_name)
        if found is None:
            raise ConnectError(queue.broker_name, "no address of this broker is known")
        calls, address = self._session.calls, found[0]
        if self._consume_from is ConsumeFrom.FIRST_OFFSET or is_retry_topic(queue.topic):
            return await calls.min_offset(address, queue.topic, queue.queue_id)  # failed messages are never skipped
        if self._consume_from is ConsumeFrom.TIMESTAMP:
            assert self._consume_from_ms is not None
            return await calls.search_offset(address, queue.topic, queue.queue_id, self._consume_from_ms)
        return await calls.max_offset(address, queue.topic, queue.queue_id)

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
        self._background.start(self._restart_queues({queue: offset}), "correct offset")

    async def _restart_queues(self, offsets: dict[MessageQueue, int]) -> None:
        """Forget what is held of these queues and go on at the given offsets."""
        async with self._changing:
            mine = [queue for queue in offsets if queue in self._held]
            for queue in mine:
                self._held.pop(queue).drop()
                self._pulls.pop(queue).cancel()
                self._offsets.update(queue, offsets[queue])
            await self._offsets.persist(mine)
            for queue in mine:
                self._pull_from(queue, offsets[queue])

    # -- offsets and failures -----------------------------------------------------------------------------------------

    async def _persist(self) -> None:
        self._counters.sample()
        for queue, process_queue in self._held.items():
            self._offsets.update(queue, process_queue.commit_offset)
        await self._offsets.persist(list(self._held))
        await self._give_up_overdue()

    async def _give_up_overdue(self) -> None:
        """A listener that never returns must not hold the group's offset for ever."""
        started_before = time.monotonic() - self._overdue_s
        for process_queue in list(self._held.values()):
            overdue = process_queue.overdue(started_before)
            if overdue:
                logger.warning(
                    "listener overdue",
                    extra={"event": "listener_overdue", "queue": str(process_queue.queue), "count": len(overdue)},
                )
                left = await self._send_back(overdue, delay_level=OVERDUE_DELAY_LEVEL)
                process_queue.remove([message for message in overdue if message not in left])

    async def _on_failed(self, messages: list[MessageExt]) -> list[MessageExt]:
        """Failed messages: what can't be sent back is returned, and tried again here."""
        if self._model is MessageModel.BROADCASTING:
            for message in messages:
                logger.warning(
                    "failed message dropped", extra={"event": "failed_message_dropped", "msg_id": message.msg_id}
                )
            return []
        return await self._send_back(messages)

    async def _send_back(self, messages: list[MessageExt], *, delay_level: int = 0) -> list[MessageExt]:
        left: list[MessageExt] = []
        for message in messages:
            try:
                await self._send_back_one(message, delay_level)
            except GantryError as exc:
                left.append(message)
                logger.warning(
                    "message not sent back",
                    extra={"event": "send_back_failed", "msg_id": message.msg_id, "error": str(exc)},
                )
        return left

    async def _send_back_one(self, message: MessageExt, delay_level: int) -> None:
        """Through the broker that stored it, else as a message of our own to the retry topic of any broker."""
        address = self._session.routes.address(message.broker_name)
        if address is not None:
            try:
                await self._session.calls.send_back(
                    address,
                    self.group,
                    message,
                    topic=message.topic,
                    delay_level=delay_level,
                    max_reconsume_times=self._max_reconsume_times,
                )
                return
            except GantryError as exc:
                logger.info(
                    "send-back refused", extra={"event": "send_back_refused", "address": address, "error": str(exc)}
                )
        outgoing = pack(retry_message(message, self._retry_topic, self._max_reconsume_times))
        outgoing.reconsume_times = message.reconsume_times + 1
        outgoing.max_reconsume_times = self._max_reconsume_times
        await self._sender.send_anywhere(outgoing, 5.0)

    # -- requests from brokers ----------------------------------------------------------------------------------------

    async def _on_ids_changed(self, address: str, request: RemotingCommand) -> None:
        if request.ext_fields.get("consumerGroup") == self.group:
            self._rebalance_wanted.set()

    async def _on_reset_offset(self, address: str, request: RemotingCommand) -> None:
        if request.ext_fields.get("group") == self.group and not self._is_stopping:
            offsets = ResetOffsetBody.from_json(request.body).offset_table
            logger.info("offsets reset", extra={"event": "offsets_reset", "group": self.group, "queues": len(offsets)})
            await self._restart_queues(offsets)

    async def _on_consumer_status(self, address: str, request: RemotingCommand) -> RemotingCommand:
        topic = request.ext_fields.get("topic")
        offsets = {queue: held.commit_offset for queue, held in self._held.items() if queue.topic == topic}
        return request.reply(body=fastjson.dumps({"messageQueueTable": offsets}))

    async def _on_running_info(self, address: str, request: RemotingCommand) -> RemotingCommand:
        if request.ext_fields.get("consumerGroup") != self.group:
            return request.reply(ResponseCode.SYSTEM_ERROR, "the consumer group does not exist in this client")
        body = running_info(
            name_servers=self._session.name_servers.addresses,
            concurrency=self._concurrency,
            started_at_ms=self._started_at_ms,
            subscriptions=self._subscriptions,
            queues=self._held,
            counters=self._counters,
        )
        return request.reply(body=body)

    async def _on_consume_directly(self, address: str, request: RemotingCommand) -> RemotingCommand:
        """A tool gives one message to the listener, outside of any queue."""
        if request.ext_fields.get("consumerGroup") != self.group:
            return request.reply(ResponseCode.SYSTEM_ERROR, "the consumer group does not exist in this client")
        messages = read_messages(request.body, request.ext_fields.get("brokerName", ""))
        for message in messages:
            restore_topic(message, self._retry_topic)
        started = time.monotonic()
        remark = None
        try:
            result = await self._consuming.call(messages)
            outcome = "CR_SUCCESS" if result is ConsumeResult.SUCCESS else "CR_LATER"
        except Exception as exc:  # the listener's own; the tool wants to see it
            outcome, remark = "CR_THROW_EXCEPTION", repr(exc)
        answer = {
            "autoCommit": True,
            "consumeResult": outcome,
            "order": False,
            "spentTimeMills": int((time.monotonic() - started) * 1000),
        }
        return request.reply(body=fastjson.dumps(answer | ({"remark": remark} if remark else {})))


def retry_message(message: MessageExt, topic: str, max_reconsume_times: int) -> Message:
    """A failed message as a new one for the group's retry topic, as the broker would have made it."""
    times = message.reconsume_times + 1
    properties = dict(message.properties)
    properties.setdefault(names.RETRY_TOPIC, message.topic)
    properties.setdefault(names.ORIGIN_MESSAGE_ID, message.offset_msg_id)
    properties[names.RECONSUME_TIME] = str(times)
    properties[names.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    properties[names.DELAY] = str(3 + times)
    return Message(topic, message.body, properties=properties, flag=message.flag)
