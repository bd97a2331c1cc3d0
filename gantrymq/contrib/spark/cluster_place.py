"""A cluster as a place: its name servers say where topics are, its brokers where queues begin and end.

Nothing is registered: no group appears, no offset is kept at the broker. Requests that fail because a broker or name
server is away or busy are repeated until `requestTimeoutMs` is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from gantrymq.client.admin.client import AdminClient
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.client.connection.routes import readable_queues
from gantrymq.contrib.spark.cluster_read import ClusterReading, Pulls, patiently
from gantrymq.contrib.spark.options import ReadOptions
from gantrymq.contrib.spark.places import Found, chosen, is_internal
from gantrymq.contrib.spark.ranges import Bounds, Partition, Queue, QueueRange, cut
from gantrymq.errors import RouteNotFound
from gantrymq.forks import notice_fork
from gantrymq.remoting.bodies import TopicRouteData

AT_ONCE = 64  # questions to brokers on their way

T = TypeVar("T")


class ClusterPlace:
    """A cluster of RocketMQ 4.9 brokers."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.connection is not None
        notice_fork()  # Spark's workers are forks
        self._options = options
        connection = options.connection
        self._admin = AdminClient(
            connection.name_servers, credentials=connection.credentials(), tls=connection.tls, timeout_s=15.0
        )
        self._timeout_s = options.request_timeout_ms / 1000
        self._addresses: dict[str, str] = {}
        shared_loop.acquire(self._admin)

    def queues(self, *, must_exist: bool) -> list[Queue]:
        return self._run(self._queues(must_exist))

    def bounds(self, queues: Iterable[Queue]) -> dict[Queue, Bounds]:
        return self._run(self._bounds(list(queues)))

    def at_time(self, times_ms: Mapping[Queue, int]) -> dict[Queue, int]:
        return self._run(self._at_time(times_ms))

    def partitions(self, ranges: Sequence[QueueRange], partitions_min: int) -> list[Partition]:
        """A queue, or a part of one, for each task."""
        return [Partition([item]) for item in cut(ranges, partitions_min)]

    def read(self, partition: Partition, *, checks_bodies: bool) -> Iterator[Found]:
        for item in partition.ranges:
            reading = ClusterReading(self._pulls(item.queue), item, checks_bodies=checks_bodies)
            try:
                while (part := self._run(reading.next())) is not None:
                    for lost in part.lost:
                        yield Found(None, lost, item.queue.broker_name)
                    if part.block is not None:
                        yield Found(part.block, None, item.queue.broker_name)
            finally:
                self._run(reading.close())

    def close(self) -> None:
        try:
            self._run(self._admin.close())
        finally:
            shared_loop.release(self._admin)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return shared_loop.run(work)

    # -- topics -------------------------------------------------------------------------------------------------------

    async def _queues(self, must_exist: bool) -> list[Queue]:
        selection = self._options.selection
        topics = list(selection.named) or await self._fitting_topics()
        found: list[Queue] = []
        for topic in topics:
            try:
                route = await self._route(topic)
            except RouteNotFound:
                if selection.named and must_exist:
                    raise
                continue  # a stream waits for its topic; a listed one has just been deleted
            found += [Queue(topic, queue.broker_name, queue.queue_id) for queue in readable_queues(topic, route)]
        return chosen(found, selection)

    async def _fitting_topics(self) -> list[str]:
        names = await patiently(self._admin.topics.names, self._timeout_s)
        info = await patiently(self._admin.cluster.info, self._timeout_s)
        own_names = {*info.cluster_addr_table, *info.broker_addr_table}
        wants = self._options.selection.wants_topic
        return sorted(topic for topic in names if wants(topic, is_internal=is_internal(topic, own_names)))

    async def _route(self, topic: str) -> TopicRouteData:
        return await patiently(lambda: self._learn_route(topic), self._timeout_s)

    async def _learn_route(self, topic: str) -> TopicRouteData:
        route = await self._admin.topics.route(topic)
        for broker in route.broker_datas:
            if broker.broker_addrs:  # the master, else the slave with the lowest number
                self._addresses[broker.broker_name] = broker.broker_addrs[min(broker.broker_addrs)]
        return route

    async def _address(self, queue: Queue) -> str:
        """The address of the queue's broker as the name servers know it now. RouteNotFound: they know none."""
        self._addresses.pop(queue.broker_name, None)
        await self._learn_route(queue.topic)
        address = self._addresses.get(queue.broker_name)
        if address is None:
            raise RouteNotFound(queue.topic, f"no name server knows an address of its broker {queue.broker_name} now")
        return address

    # -- offsets ------------------------------------------------------------------------------------------------------

    async def _of_each(self, queues: Iterable[Queue], ask: Callable[[Queue], Awaitable[T]]) -> dict[Queue, T]:
        """Ask about each queue, AT_ONCE at a time. What fails for one fails for all: none is taken for deleted."""
        room = asyncio.Semaphore(AT_ONCE)
        found: dict[Queue, T] = {}

        async def one(queue: Queue) -> None:
            async with room:
                found[queue] = await ask(queue)

        asked = [asyncio.ensure_future(one(queue)) for queue in queues]
        try:
            await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
        return found

    def _pulls(self, queue: Queue) -> Pulls:
        return Pulls(self._admin.calls, self._options.group, lambda: self._address(queue), self._timeout_s)

    async def _known_address(self, queue: Queue) -> str:
        return self._addresses.get(queue.broker_name) or await self._address(queue)

    async def _bounds(self, queues: list[Queue]) -> dict[Queue, Bounds]:
        calls = self._admin.calls

        async def ask(queue: Queue) -> Bounds:
            async def once() -> Bounds:
                address = await self._known_address(queue)
                least = await calls.min_offset(address, queue.topic, queue.queue_id)
                return Bounds(least, max(least, await calls.max_offset(address, queue.topic, queue.queue_id)))

            return await patiently(once, self._timeout_s, after_failure=lambda: self._forget(queue), is_known=True)

        return await self._of_each(queues, ask)

    def _forget(self, queue: Queue) -> None:
        self._addresses.pop(queue.broker_name, None)

    async def _at_time(self, times_ms: Mapping[Queue, int]) -> dict[Queue, int]:
        bounds = await self._bounds(list(times_ms))
        calls = self._admin.calls

        async def ask(queue: Queue) -> int:
            found, wanted = bounds[queue], times_ms[queue]

            async def once() -> int:
                # The broker answers with one of several of that time, or with the nearest, which may be before it.
                address = await self._known_address(queue)
                return await calls.search_offset(address, queue.topic, queue.queue_id, max(0, wanted - 1))

            near = await patiently(once, self._timeout_s, after_failure=lambda: self._forget(queue), is_known=True)
            begin = min(max(near - 1, found.begin), found.end)
            reading = ClusterReading(self._pulls(queue), QueueRange(queue, begin, found.end))
            try:
                return await reading.first_since(wanted)
            finally:
                await reading.close()

        return await self._of_each(bounds, ask)
