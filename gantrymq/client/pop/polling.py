"""Getting messages for a POP consumer, from each broker of each topic that it subscribes to.

With one topic at one broker a pop waits there for messages, on a connection of its own: when that is closed, the broker
forgets the pop. With several, each is asked in turn for what it has now; one that has none is asked to say when it has,
which leases nothing, and is left alone until it does: so no message waits at a consumer that is busy with those of
another broker. What comes for a poll that was cancelled is kept for the next one. In order, a pop whose answer was lost
is asked again by the same name, for the broker to repeat what it has blocked for it.
"""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.subscription import ConsumeFrom, is_wanted
from gantrymq.client.pop import pop_calls
from gantrymq.client.pop.leases import AGAIN_S, Leases
from gantrymq.client.pop.options import PopConsumerOptions
from gantrymq.client.pop.pop_calls import FROM_END, FROM_START, Wanted
from gantrymq.errors import ConnectError, GantryError, RequestTimeout, ResponseError, RouteNotFound
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import POP_CK
from gantrymq.remoting.bodies import SubscriptionData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import wait_for_event

WAIT_S = 20.0  # of a request that waits at a broker; RocketMQ's clients let it wait as long
NOT_NOW = frozenset(
    {ResponseCode.POLLING_FULL.value, ResponseCode.SYSTEM_BUSY.value, ResponseCode.TOPIC_NOT_EXIST.value}
)


class Source(NamedTuple):
    """One topic at one broker."""

    topic: str
    broker: str
    address: str


class Polling:
    """That of one consumer. subscriptions: by topic."""

    def __init__(
        self,
        session: ClientSession,
        options: PopConsumerOptions,
        leases: Leases,
        subscriptions: Mapping[str, SubscriptionData],
        background: Background,
    ) -> None:
        self._session = session
        self._options = options
        self._leases = leases
        self._subscriptions = subscriptions
        self._background = background
        self._waiting = RemotingClient(
            credentials=options.credentials, tls=options.tls, serialize_type=options.serialize_type
        )
        session.silence.watched.append(self._waiting)
        self._calls = BrokerCalls(self._waiting)
        self._ready: deque[MessageExt] = deque()
        self._asked_for = 0  # messages that pops on their way may bring
        self._watches: dict[Source, asyncio.Task[None]] = {}
        self._quiet: set[Source] = set()  # a watch has ended without messages
        self._begun: set[Source] = set()  # with TIMESTAMP
        self._lost: dict[Source, list[str]] = defaultdict(list)  # in order: attempts without an answer
        self._left_alone: dict[Source, float] = {}  # until when, monotonic
        self._turn = 0

    async def close(self) -> None:
        """Have brokers forget what waits there."""
        await self._waiting.close()

    def abandon(self) -> None:
        """As a client's."""
        self._waiting.abandon()

    async def poll(self, timeout_s: float, count: int) -> list[MessageExt]:
        """At most so many messages, of one topic; [] when none came in time, or no more may be held."""
        until = time.monotonic() + timeout_s
        while not self._ready:
            left_s = max(until - time.monotonic(), 0.0)
            room = self._options.held_max - len(self._leases) - self._asked_for
            if room <= 0:
                self._leases.has_room.clear()
                await wait_for_event(self._leases.has_room, left_s)
            else:
                await self._look(min(count, room), min(left_s, WAIT_S))
            if not self._session.is_open or time.monotonic() >= until:
                break
        found: list[MessageExt] = []
        while self._ready and len(found) < count and (not found or self._belong(found[0], self._ready[0])):
            found.append(self._ready.popleft())
        self._leases.given(found)
        return found

    def _belong(self, one: MessageExt, other: MessageExt) -> bool:
        """Whether one poll may return both: they are of one topic, in order of one queue."""
        in_one_queue = (one.broker_name, one.queue_id) == (other.broker_name, other.queue_id)
        return one.topic == other.topic and (in_one_queue or not self._options.ordered)

    async def _look(self, count: int, wait_s: float) -> None:
        sources = await self._sources()
        if not sources:
            await asyncio.sleep(min(AGAIN_S, wait_s))
        elif len(sources) == 1:
            await self._pop(sources[0], count, wait_s)
        else:
            self._turn += 1
            at = self._turn % len(sources)
            for source in (*sources[at:], *sources[:at]):
                if source in self._watches or source in self._quiet:
                    continue
                await self._pop(source, count, 0.0)
                if self._ready:
                    return
            await self._watch(sources, wait_s)

    async def _sources(self) -> list[Source]:
        now, found = time.monotonic(), []
        for topic in [*self._subscriptions]:
            try:
                route = await self._session.routes.to_read(topic)
            except (RouteNotFound, ConnectError, RequestTimeout):
                continue  # not there yet, or no name server answers, which the connection tells
            for broker in sorted({queue.broker_name for queue in route.readable}):
                address = self._session.routes.address(broker)
                if address is not None:
                    source = Source(topic, broker, address)
                    await self._begin(source, [each.queue_id for each in route.readable if each.broker_name == broker])
                    found.append(source)
        self._session.meet_brokers()
        self._left_alone = {source: until for source, until in self._left_alone.items() if until > now}
        return [source for source in found if source not in self._left_alone]

    async def _begin(self, source: Source, queue_ids: list[int]) -> None:
        """With TIMESTAMP: have the group begin where the time says, in queues where it stands nowhere yet."""
        since_ms = self._options.consume_from_ms
        if self._options.consume_from is not ConsumeFrom.TIMESTAMP or since_ms is None or source in self._begun:
            return
        calls, group, (topic, _, address) = self._session.calls, self._options.group, source
        try:
            for queue_id in queue_ids:
                if await calls.consumer_offset(address, group, topic, queue_id, or_zero=False) is None:
                    offset = await calls.search_offset(address, topic, queue_id, since_ms)
                    await calls.update_consumer_offset(address, group, topic, queue_id, offset, only_forward=True)
            self._begun.add(source)
        except GantryError as exc:
            if (refusal := self._failed(source, exc)) is not None:
                raise refusal from exc

    # -- one source ---------------------------------------------------------------------------------------------------

    async def _pop(self, source: Source, count: int, wait_s: float) -> None:
        """Have messages of it ready, if there are any. A poll that is cancelled leaves the pop on its way."""
        wanted = self._wanted(source, count, wait_s)
        if wanted is None:
            return
        if wanted.is_ordered:
            lost = self._lost.pop(source, [])
            wanted = wanted._replace(attempt=lost.pop() if lost else uuid.uuid4().hex)
            if lost:
                self._lost[source] = lost
        popping = self._background.start(self._popped(source, wanted), "pop")
        await asyncio.wait({popping})
        if not popping.cancelled() and (refusal := popping.result()) is not None:
            raise refusal

    async def _popped(self, source: Source, wanted: Wanted) -> GantryError | None:
        self._asked_for += wanted.batch
        try:
            delivered = await pop_calls.pop(self._calls, source.address, source.broker, wanted)
        except GantryError as exc:
            if wanted.is_ordered and isinstance(exc, ConnectError | RequestTimeout):
                self._lost[source].append(wanted.attempt)
            return self._failed(source, exc)
        finally:
            self._asked_for -= wanted.batch
        self._session.outages.worked("pop", source.address)
        unwanted, dead = [], []
        subscription, tries_max = self._subscriptions.get(source.topic), self._options.max_reconsume_times
        for message, handle, attempt in delivered:
            message.topic = source.topic  # without its namespace
            message.properties[POP_CK] = str(handle)
            message.reconsume_times = attempt - 1
            if tries_max is not None and message.reconsume_times > tries_max:
                dead.append(message)
            elif subscription is None or is_wanted(subscription, message):
                self._ready.append(message)
                self._leases.hold([message])
            else:
                unwanted.append(message)
        try:
            if unwanted:
                await self._leases.acknowledge(unwanted)
            for message in dead:
                await self._leases.bury(message)
        except GantryError as exc:  # they come again, and are acknowledged then
            self._session.outages.failed("acknowledge", source.address, exc)
        return None

    async def _watch(self, sources: list[Source], wait_s: float) -> None:
        """Return when some source may have messages, or after wait_s. Who asks next waits for the same answers."""
        for source in sources:
            if source not in self._watches and (wanted := self._wanted(source, 1, WAIT_S)) is not None:
                self._quiet.discard(source)
                watch = self._watches[source] = self._background.start(self._watched(source, wanted), "watch")
                watch.add_done_callback(functools.partial(self._watch_ended, source))
        if self._watches:
            await asyncio.wait(set(self._watches.values()), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)

    def _watch_ended(self, source: Source, _: asyncio.Task[None]) -> None:
        self._watches.pop(source, None)

    async def _watched(self, source: Source, wanted: Wanted) -> None:
        try:
            if not await pop_calls.has_messages(self._calls, source.address, wanted):
                self._quiet.add(source)
        except GantryError as exc:
            self._failed(source, exc)  # what is worth raising is raised by the next pop

    def _failed(self, source: Source, failure: GantryError) -> GantryError | None:
        """Leave the source alone for a moment. The failure is returned when waiting can't help."""
        if isinstance(failure, ResponseError) and failure.code not in NOT_NOW:
            return failure
        self._left_alone[source] = time.monotonic() + AGAIN_S
        self._session.outages.failed("pop", source.address, failure)
        self._session.look_again_soon(source.topic)
        return None

    def _wanted(self, source: Source, count: int, wait_s: float) -> Wanted | None:
        subscription = self._subscriptions.get(source.topic)
        if subscription is None:
            return None
        wrap, options = self._session.namespace.wrap, self._options
        return Wanted(
            wrap(options.group),
            wrap(source.topic),
            count,
            max(int(options.invisible_s * 1000), 1),
            wait_s,
            subscription.expression_type,
            subscription.sub_string,
            is_ordered=options.ordered,
            client=self._session.client_id,
            begin=FROM_END if options.consume_from is ConsumeFrom.LAST_OFFSET else FROM_START,
        )
