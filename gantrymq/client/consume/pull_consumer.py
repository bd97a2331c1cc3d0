"""PullConsumer: a consumer that asks for messages when it wants some (RocketMQ: the lite pull consumer).

    async with PullConsumer("host:port", group="g") as consumer:
        consumer.subscribe("topic")                a member of the group: brokers share the queues out
        while messages := await consumer.poll(): ...

or `await consumer.assign(queues)`, to read queues of one's own choice. Messages are pulled ahead, within limits. Asking
for the next messages says that those before are finished, and so does leaving the `async with` block without an error;
an exception and `close` do not. With `auto_commit` the offsets of what is finished are written each 5 s and at the end,
without when `commit` is called.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Unpack
from weakref import WeakKeyDictionary

from gantrymq.client.connection.background import Background, every
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.assignment import REBALANCE_S, Assignment, GroupShare
from gantrymq.client.consume.offset_store import offset_store
from gantrymq.client.consume.options import PullConsumerKeywords, PullConsumerOptions
from gantrymq.client.consume.polled_messages import PolledBatch, PolledMessages
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.pull_loop import PullContext, keep_pulling
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.consume.subscribing import Subscribing
from gantrymq.client.consume.subscription import parse_subscription
from gantrymq.client.produce.trace import ConsumeTracer, dispatcher_of
from gantrymq.errors import ConfigError, GantryError
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

COMMIT_S = 5.0  # RocketMQ: autoCommitIntervalMillis
POLL_S = 5.0  # RocketMQ: pollTimeoutMillis


class PullConsumer(Subscribing):
    """Polls messages for a group. batch_size: at most so many a poll, all of one queue. auto_commit: see above. model:
    whether the members of the group share the messages. `consume_from` (with `consume_from_ms` for TIMESTAMP): where
    the group begins in queues it never consumed. pull_batch, limits: how much is pulled at once, and held. strategy:
    how the members share the queues. on_assigned, on_revoked: told of queues this member begins to read (before their
    first message: `seek` where you want), and gives up (`commit` while they are yours). offsets_folder: where a
    BROADCASTING consumer keeps its offsets. on_message_lost: told of each message that was skipped because it is
    damaged on the broker's disk: `poll` returns those around it. trace: tell `trace_topic` when messages are polled and
    when they are finished, `trace_sample` of them. Also instance_name, namespace, credentials, tls and serialize_type.
    PullConsumerOptions has the defaults.

    Subscribe before or after `start`, assign after it. `close` writes the offsets (with auto_commit: of what is
    finished) and leaves the group.
    """

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str, **keywords: Unpack[PullConsumerKeywords]
    ) -> None:
        options = PullConsumerOptions(name_servers=name_servers, group=group, **keywords)
        super().__init__(ClientSession(options, heartbeat=self._heartbeat, heartbeat_slaves=True))
        self.group = group
        self._options = options
        self._chosen: dict[str, list[MessageQueue]] | None = None  # by topic, after `assign`
        self._traces = dispatcher_of(self._session, options)
        tracer = None if self._traces is None else ConsumeTracer(self._traces, group)
        self._polled = PolledMessages(options.batch_size, tracer)
        # What `commit` said, when it is up to the application, of the queues as they are held now: of one that comes
        # back another member may have committed more.
        self._committed: WeakKeyDictionary[ProcessQueue, int] = WeakKeyDictionary()
        self._background = Background()
        self._group_share = GroupShare(self._session, options, self._not_registered)
        self._offsets = offset_store(self._session, options)
        self._assignment = self._make_assignment()
        self._session.answer_requests({RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed})

    def _make_assignment(self) -> Assignment:
        context = PullContext(
            session=self._session,
            options=self._options,
            counters=ConsumeCounters(),
            subscription=self._subscriptions.get,
            held=lambda: self._assignment.held,
            commit_offset=lambda process_queue: None,  # the application has not seen them yet
            received=self._polled.add,
            offset_moved=self._offset_moved,
            not_registered=self._not_registered,
            rebalance=lambda: self._assignment.rebalance_wanted.set(),
            is_paused=lambda process_queue: process_queue.queue in self._polled.paused,
            says_subscription=True,
        )
        return Assignment(
            self._session,
            self._options,
            share=self._share,
            offsets=self._offsets,
            background=self._background,
            keep_pulling=lambda process_queue: keep_pulling(context, process_queue),
            commit_offset=self._to_commit,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return sorted(self._assignment.held)

    async def _open(self) -> None:
        self._session.open()
        self._background.start(self._keep_balanced(), "rebalance")
        if self._options.auto_commit:
            self._background.start(every(COMMIT_S, self._assignment.persist, self._session.outages), "commit offsets")
        if self._traces is not None:
            self._background.start(self._traces.run(), "send traces")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # an exception leaves open whether the last messages were handled: they come again
            self._polled.finish()
        await super().__aexit__(kind, error, trace)

    async def _shut_down(self) -> None:
        self._assignment.close()
        await self._background.close()
        await self._assignment.leave()
        self._polled.leave()
        if self._traces is not None:
            await self._traces.flush()
        await self._session.close(consumer_group=self.group)

    # -- which queues -------------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """Share the topic with the other members of the group: "*", "TagA || TagB", or with `sql` a condition. Before
        `start` or after it; the group has its new member in a moment."""
        if self._chosen is not None:
            raise ConfigError("queues were assigned by hand: a consumer does either, assign or subscribe")
        super().subscribe(topic, expression, sql=sql)

    def _subscriptions_changed(self) -> None:
        if self._session.is_open:
            self._background.start(self._join(), "join the group")

    async def assign(self, queues: Iterable[MessageQueue], expression: str = "*") -> None:
        """Read these queues, without regard to other readers; replaces what was assigned before. Returns when they are
        read."""
        self._session.require_open()
        if self._subscriptions and self._chosen is None:
            raise ConfigError("topics were subscribed to: a consumer does either, assign or subscribe")
        chosen: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            chosen.setdefault(queue.topic, []).append(queue)
        self._chosen = chosen
        version = time.time_ns() // 1_000_000
        self._subscriptions.clear()
        self._subscriptions.update({topic: parse_subscription(topic, expression, version) for topic in chosen})
        self._polled.finish()
        for topic in chosen:
            await self._session.routes.to_read(topic)
        await self._greet()
        await self._rebalance()

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Every queue of the topic that can be read. RouteNotFound when there is no such topic."""
        self._session.require_open()
        return list((await self._session.routes.to_read(topic)).readable)

    async def _share(self, topic: str) -> list[MessageQueue] | None:
        return await self._group_share(topic) if self._chosen is None else self._chosen.get(topic, [])

    async def _rebalance(self) -> None:
        await self._assignment.rebalance([*self._subscriptions])

    async def _greet(self) -> None:
        """Tell the brokers what is consumed; a topic that is not there yet is looked for again by rebalancing."""
        for topic in [*self._subscriptions]:
            with contextlib.suppress(GantryError):
                await self._session.routes.to_read(topic)
        await self._session.send_heartbeats()

    async def _keep_balanced(self) -> None:
        if self._subscriptions:
            await self._greet()
        await every(REBALANCE_S, self._rebalance, self._session.outages, wake=self._assignment.rebalance_wanted)

    async def _join(self) -> None:
        await self._greet()
        self._assignment.rebalance_wanted.set()

    def _not_registered(self, address: str) -> None:
        self._session.greetings.join(address, self._assignment.rebalance_wanted.set)

    async def _ids_changed(self, address: str, request: RemotingCommand) -> None:
        if request.ext_fields.get("consumerGroup") == self._session.namespace.wrap(self.group):
            self._assignment.rebalance_wanted.set()

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        consumer = ConsumerData(
            self.group,
            consume_type="CONSUME_ACTIVELY",
            message_model=self._options.model.value,
            consume_from_where=self._options.consume_from.value,
            subscription_data_set=list(self._subscriptions.values()) if self._chosen is None else [],
        )
        return HeartbeatData(client_id, [], [consumer])

    # -- messages -----------------------------------------------------------------------------------------------------

    async def poll(self, timeout_s: float = POLL_S) -> list[MessageExt]:
        """The next messages of some queue, an empty list when none come in time. The last poll's are finished."""
        batch = await self._next_batch(timeout_s)
        return list(batch.messages) if batch is not None else []  # its own: it may take them out

    async def poll_one_by_one(self, timeout_s: float = POLL_S) -> PolledBatch | None:
        """As `poll`, for an iterator: each message is finished when the next one is asked for."""
        return await self._next_batch(timeout_s, one_by_one=True)

    async def _next_batch(self, timeout_s: float, *, one_by_one: bool = False) -> PolledBatch | None:
        self._session.require_open()
        if self._chosen is None and not self._subscriptions:
            raise ConfigError("nothing to poll: call subscribe or assign first")
        self._polled.finish()
        batch = await self._polled.next(timeout_s, one_by_one=one_by_one)
        self._session.require_open()
        if batch is None and self._session.refusal is not None:
            raise self._session.refusal
        return batch

    def __aiter__(self) -> AsyncIterator[MessageExt]:
        """Message by message, for ever. A message is finished when the next one is asked for: after an exception in the
        loop it comes again, with those behind it."""
        return self._messages()

    async def _messages(self) -> AsyncIterator[MessageExt]:
        while True:
            batch = await self.poll_one_by_one()
            for message in batch.one_by_one() if batch is not None else ():
                yield message

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Neither poll nor pull these queues until `resume`."""
        paused = list(queues)
        self._session.do_at_home(lambda: self._polled.paused.update(paused))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Undo `pause`."""
        resumed = list(queues)
        self._session.do_at_home(lambda: self._resume(resumed))

    def _resume(self, queues: list[MessageQueue]) -> None:
        self._polled.resume(queues)
        for queue in queues:
            if (held := self._assignment.held.get(queue)) is not None:
                held.changed.set()

    # -- offsets ------------------------------------------------------------------------------------------------------

    def _to_commit(self, process_queue: ProcessQueue) -> int | None:
        if not self._options.auto_commit:
            return self._committed.get(process_queue)
        self._polled.settle()
        return process_queue.commit_offset

    async def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Write that every message given so far is finished, the last one too; or write these offsets: of each queue
        the next one that the group will consume, so that of the last finished message plus one.

        ConfigError when a queue is not assigned to this consumer or an offset is outside of what it was given.
        """
        self._session.require_open()
        if offsets is None:
            self._polled.finish_given()
            self._committed.update({held: held.commit_offset for held in self._assignment.held.values()})
            await self._assignment.persist()
            return
        for queue, offset in offsets.items():
            self._require_held(queue)
            most = self._assignment.held[queue].next_offset
            if not 0 <= offset <= most:
                raise ConfigError(f"offset {offset} of queue {queue.queue_id} is not one of 0 to {most}, read so far")
        self._committed.update({self._assignment.held[queue]: offset for queue, offset in offsets.items()})
        await self._assignment.persist_offsets(offsets)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's next offset in the queue as it is written, None when it has none."""
        self._session.require_open()
        await self._session.routes.to_read(queue.topic)
        return await self._offsets.read(queue)

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at this offset in a queue this consumer reads. ConfigError when it does not, or the offset is outside
        the queue."""
        self._require_held(queue)
        address = self._address(queue)
        least = await self._session.calls.min_offset(address, queue.topic, queue.queue_id)
        most = await self._session.calls.max_offset(address, queue.topic, queue.queue_id)
        if not least <= offset <= most:
            raise ConfigError(f"offset {offset} is outside of queue {queue.queue_id}: {least} to {most}")
        await self._go_on(queue, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on at the oldest message of the queue."""
        self._require_held(queue)
        await self._go_on(
            queue, await self._session.calls.min_offset(self._address(queue), queue.topic, queue.queue_id)
        )

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on with what comes from now on."""
        self._require_held(queue)
        await self._go_on(
            queue, await self._session.calls.max_offset(self._address(queue), queue.topic, queue.queue_id)
        )

    async def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        self._session.require_open()
        await self._session.routes.to_read(queue.topic)
        return await self._session.calls.search_offset(self._address(queue), queue.topic, queue.queue_id, timestamp_ms)

    async def _go_on(self, queue: MessageQueue, offset: int) -> None:
        self._polled.forget(queue)
        await self._assignment.restart({queue: offset}, persist=self._options.auto_commit)

    def _offset_moved(self, process_queue: ProcessQueue, offset: int) -> None:
        corrected = self._assignment.restart({process_queue.queue: offset}, persist=self._options.auto_commit)
        self._background.start(corrected, "correct offset")

    def _require_held(self, queue: MessageQueue) -> None:
        self._session.require_open()
        if queue not in self._assignment.held:
            raise ConfigError(f"queue {queue.queue_id} of {queue.topic} is not assigned to this consumer")

    def _address(self, queue: MessageQueue) -> str:
        return self._session.routes.require_address_to_read(queue.broker_name)[0]
