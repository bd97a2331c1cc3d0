"""The one door to the cluster. Pages, REST and sockets ask here, so they agree; brokers are asked over the wire only.

Every call has a deadline. Brokers are asked side by side, and one that fails becomes a `Trouble` beside the others'
answers: a dead broker never fails a page. A call that had to reach a particular broker raises a `GatewayError`.

The AdminClient lives on one event loop. The process has one loop, so there is one client; a second loop (tests) gets
its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from dashboard import browse, units
from dashboard.failures import (
    BrokerUnreachable,
    ClusterUnreachable,
    NotAllowed,
    Refused,
    TopicExists,
    TopicNotFound,
    explain,
)
from dashboard.rows import (
    BrokerRef,
    ClusterView,
    GroupRow,
    MessagePage,
    QueueRow,
    Reading,
    TopicDetail,
    TopicFigures,
    TopicListing,
    TopicRow,
    TopicSettings,
    Trouble,
    topic_kind,
)
from gantrymq.client.admin import AdminClient
from gantrymq.client.results import SendResult
from gantrymq.errors import ConnectError, GantryError, MessageRejected, RequestTimeout, ResponseError
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import may_clients_send_to
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, TopicConfig, TopicStatsTable
from gantrymq.remoting.codes import ResponseCode

CALL_TIMEOUT_S = 2.0  # a page waits no longer than this for one answer
SILENT_TIMEOUT_S = 0.4  # a broker that did not answer last time gets only this long, until it answers again
CLUSTER_MAX_AGE_S = 1.0  # several parts of one page share one look at the name server
CALLS_AT_ONCE = 8  # to one cluster from one page: a dashboard must never be able to hurt a broker
FIGURES_MAX_AGE_S = 4.0
GROUPS_SHOWN_MAX = 100

Answer = TypeVar("Answer")
Failure = (GantryError, OSError, TimeoutError)


class Gateway:
    """Calls to one cluster. `namesrv` is "host:port;host:port"."""

    def __init__(self, namesrv: str, *, clock: Callable[[], float] = time.time) -> None:
        self.namesrv = namesrv
        self._clock = clock
        self._admin: AdminClient | None = None
        self._admin_loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None
        self._cluster: ClusterView | None = None
        self._figures: dict[str, Reading[TopicFigures]] = {}
        self._tables: dict[str, tuple[float, dict[str, TopicConfig]]] = {}  # last known topics of each broker
        self._silent: set[str] = set()  # addresses that did not answer last time

    # ---- the client

    async def admin(self) -> AdminClient:
        """The started client of the running loop."""
        loop = asyncio.get_running_loop()
        if self._admin_loop is not loop:
            self._admin, self._admin_loop, self._opening = None, loop, asyncio.Lock()
        assert self._opening is not None
        async with self._opening:
            if self._admin is None:
                admin = AdminClient(self.namesrv)
                await admin.__aenter__()
                self._admin = admin
            return self._admin

    async def close(self) -> None:
        """Close the connections; the next call opens them again."""
        admin, self._admin = self._admin, None
        if admin is not None and self._admin_loop is asyncio.get_running_loop():
            await admin.__aexit__(None, None, None)

    async def call(self, ask: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float = CALL_TIMEOUT_S) -> Answer:
        """One call with a deadline. Raises what the client raises, and TimeoutError."""
        admin = await self.admin()
        async with asyncio.timeout(timeout_s):
            return await ask(admin)

    async def call_broker(
        self, broker: BrokerRef, ask: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float = CALL_TIMEOUT_S
    ) -> Answer:
        """As `call`, for one broker: after a silence it gets less time, so that pages stay quick."""
        if broker.address in self._silent:
            timeout_s = min(timeout_s, SILENT_TIMEOUT_S)
        try:
            answer = await self.call(ask, timeout_s)
        except (TimeoutError, RequestTimeout, ConnectError):
            self._silent.add(broker.address)
            raise
        self._silent.discard(broker.address)
        return answer

    # ---- the cluster

    async def cluster(self, *, timeout_s: float = CALL_TIMEOUT_S, max_age_s: float = CLUSTER_MAX_AGE_S) -> ClusterView:
        """The brokers. When the name server is silent: the last known ones, with `why`. Raises ClusterUnreachable."""
        known, now = self._cluster, self._clock()
        if known is not None and known.why is None and now - known.at < max_age_s:
            return known
        try:
            info = await self.call(lambda admin: admin.cluster_info(), timeout_s)
        except Failure as exc:
            why = f"name server {self.namesrv}: {explain(exc)}"
            if known is None or not known.brokers:
                raise ClusterUnreachable(why) from exc
            self._cluster = replace(known, why=why)
            return self._cluster
        brokers = [
            BrokerRef(name, data.broker_addrs[0], data.cluster)
            for name, data in info.broker_addr_table.items()
            if data.broker_addrs.get(0)
        ]
        self._cluster = ClusterView(tuple(sorted(brokers, key=lambda broker: broker.name)), self._clock())
        return self._cluster

    async def runtime_info(self, broker: BrokerRef, *, timeout_s: float = CALL_TIMEOUT_S) -> dict[str, str]:
        """The broker's own table of facts. Raises BrokerUnreachable."""
        try:
            return await self.call_broker(broker, lambda admin: admin.broker_runtime_info(broker.address), timeout_s)
        except Failure as exc:
            raise BrokerUnreachable(explain(exc)) from exc

    # ---- topics: reading

    async def topics(self) -> TopicListing:
        """All topics of all brokers, by name; figures only where they are known already (see `with_figures`)."""
        cluster = await self.cluster()
        tables, troubles = await self._topic_tables(cluster)
        if cluster.why:
            troubles.append(Trouble("name server", cluster.why))
        own_names = _own_names(cluster)
        found: dict[str, list[TopicSettings]] = {}
        for broker, table in tables:
            for name, config in table.items():
                found.setdefault(name, []).append(_settings(broker.name, config))
        rows = [
            TopicRow(name, topic_kind(name, own_names), tuple(settings), self._figures.get(name))
            for name, settings in sorted(found.items())
        ]
        self._forget_figures_but(found)
        return TopicListing(tuple(rows), self._clock(), tuple(troubles))

    async def with_figures(self, rows: Sequence[TopicRow], *, max_age_s: float = FIGURES_MAX_AGE_S) -> list[TopicRow]:
        """The same rows with figures no older than asked; only those that are missing or old are read."""
        cluster = await self.cluster()
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def fill(row: TopicRow) -> TopicRow:
            known = self._figures.get(row.name)
            if known is not None and known.value is not None and self._clock() - known.at < max_age_s:
                return replace(row, figures=known)
            async with gate:
                return replace(row, figures=await self._read_figures(row, cluster))

        return list(await asyncio.gather(*(fill(row) for row in rows)))

    async def topic(self, name: str) -> TopicDetail:
        """One topic whole. Raises TopicNotFound when every broker answered and none has it."""
        cluster = await self.cluster()
        tables, troubles = await self._topic_tables(cluster)
        holders = [(broker, table[name]) for broker, table in tables if name in table]
        if not holders:
            if troubles:
                raise BrokerUnreachable(f"{troubles[0].what}: {troubles[0].reason}")
            raise TopicNotFound(f"There is no topic {name}.")
        stats, more_troubles = await self._ask_brokers(
            [broker for broker, _ in holders], lambda admin, broker: admin.topic_stats(broker.address, name)
        )
        queues = [row for broker, table in stats for row in _queue_rows(broker.name, table)]
        return TopicDetail(
            name=name,
            kind=topic_kind(name, _own_names(cluster)),
            settings=tuple(_settings(broker.name, config) for broker, config in holders),
            queues=tuple(sorted(queues, key=lambda row: (row.broker_name, row.queue_id))),
            addresses={broker.name: broker.address for broker, _ in holders},
            at=self._clock(),
            troubles=tuple(troubles + more_troubles),
        )

    async def topic_queues(self, name: str, *, timeout_s: float = CALL_TIMEOUT_S) -> tuple[QueueRow, ...]:
        """Only the queues' extents, for the live tail. Raises BrokerUnreachable: half of the queues would be wrong."""
        cluster = await self.cluster(timeout_s=timeout_s, max_age_s=5.0)
        stats, troubles = await self._ask_brokers(
            cluster.brokers, lambda admin, broker: admin.topic_stats(broker.address, name), timeout_s
        )
        if troubles:
            raise BrokerUnreachable(f"{troubles[0].what}: {troubles[0].reason}")
        return tuple(row for broker, table in stats for row in _queue_rows(broker.name, table))

    async def topic_groups(self, detail: TopicDetail) -> tuple[list[GroupRow], list[Trouble]]:
        """The consumer groups that have offsets of this topic or read it now, the furthest behind first."""
        brokers = [BrokerRef(name, address, "") for name, address in detail.addresses.items()]
        answers, troubles = await self._ask_brokers(
            brokers, lambda admin, broker: admin.topic_groups(broker.address, detail.name)
        )
        names = sorted({name for _, groups in answers for name in groups})[:GROUPS_SHOWN_MAX]
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def one(name: str) -> GroupRow:
            async with gate:
                return await self._group_row(name, detail.name, brokers)

        rows = await asyncio.gather(*(one(name) for name in names))
        return sorted(rows, key=lambda row: (-(row.lag if row.lag is not None else -1), row.name)), troubles

    # ---- topics: writing

    async def create_topic(self, name: str, *, queues: int, perm: int = PERM_READ | PERM_WRITE, order: bool = False,
                           broker_names: Iterable[str] = ()) -> None:  # fmt: skip
        """Create on the named brokers, on all when none is named. Raises TopicExists, NotAllowed, Refused."""
        cluster = await self.cluster()
        if topic_kind(name, _own_names(cluster)) == "system":
            raise NotAllowed(f"{name} is a name of the cluster itself.")
        if any(row.name == name for row in (await self.topics()).rows):
            raise TopicExists(f"The topic {name} exists already.")
        wanted = set(broker_names)
        targets = [broker for broker in cluster.brokers if not wanted or broker.name in wanted]
        if not targets:
            raise Refused("No broker is registered, so there is nowhere to create a topic.")
        config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, order=order)
        await self._tell_brokers(targets, lambda admin, broker: admin.create_topic(broker.address, config))

    async def update_topic(self, name: str, *, read_queues: int | None = None, write_queues: int | None = None,
                           perm: int | None = None, order: bool | None = None) -> None:  # fmt: skip
        """Change what is given on every broker that holds the topic; the rest stays as it is there."""
        cluster = await self.cluster()
        if topic_kind(name, _own_names(cluster)) == "system":
            raise NotAllowed(f"{name} is a topic of the cluster itself.")
        detail = await self.topic(name)

        def config_for(broker: BrokerRef) -> TopicConfig:
            now = next(item for item in detail.settings if item.broker_name == broker.name)
            return TopicConfig(
                topic_name=name,
                read_queue_nums=now.read_queues if read_queues is None else read_queues,
                write_queue_nums=now.write_queues if write_queues is None else write_queues,
                perm=now.perm if perm is None else perm,
                order=now.order if order is None else order,
            )

        targets = [broker for broker in cluster.brokers if broker.name in detail.addresses]
        await self._tell_brokers(targets, lambda admin, broker: admin.create_topic(broker.address, config_for(broker)))

    async def delete_topic(self, name: str) -> None:
        """Delete on every broker, then from the name server. Raises TopicNotFound, NotAllowed."""
        detail = await self.topic(name)
        if detail.kind == "system":
            raise NotAllowed(f"{name} is a topic of the cluster itself.")
        cluster = await self.cluster()
        targets = [broker for broker in cluster.brokers if broker.name in detail.addresses]
        await self._tell_brokers(targets, lambda admin, broker: admin.delete_topic(broker.address, name))
        self._figures.pop(name, None)
        try:
            await self.call(lambda admin: admin.delete_topic_in_namesrv(name))
        except Failure as exc:
            raise Refused(f"Deleted on the brokers, but not from the name server: {explain(exc)}") from exc

    # ---- messages

    async def send(
        self, message: Message, *, broker_name: str | None = None, queue_id: int | None = None
    ) -> SendResult:
        """Send one message, to a writable queue of our choice unless told. Raises NotAllowed, Refused."""
        if not may_clients_send_to(message.topic):
            raise NotAllowed(f"{message.topic} takes no messages from clients.")
        detail = await self.topic(message.topic)
        writable = [
            item
            for item in detail.settings
            if item.perm & PERM_WRITE and item.write_queues and broker_name in (None, item.broker_name)
        ]
        if not writable:
            raise Refused(f"{message.topic} has no writable queue there.")
        # The emptiest broker first, then a queue in turn: test messages spread as a producer's would.
        turn = detail.put_total
        target = writable[turn % len(writable)]
        queue = queue_id if queue_id is not None else (turn // len(writable)) % target.write_queues
        if queue >= target.write_queues:
            raise Refused(f"{target.broker_name} has queues 0 to {target.write_queues - 1}.")
        address = detail.addresses[target.broker_name]
        try:
            return await self.call(
                lambda admin: admin.send_message(address, message, queue, broker_name=target.broker_name)
            )
        except (ResponseError, MessageRejected) as exc:
            raise Refused(explain(exc)) from exc
        except Failure as exc:
            raise BrokerUnreachable(f"{target.broker_name}: {explain(exc)}") from exc

    async def newest_messages(
        self, detail: TopicDetail, *, limit: int, before: dict[str, int] | None = None, queue: str | None = None
    ) -> MessagePage:
        """The newest messages over all queues, or those older than the cursor `before` (queue key to offset)."""
        started = time.perf_counter()
        spans = browse.spans(detail.queues, limit, before or {}, queue)
        gate = asyncio.Semaphore(CALLS_AT_ONCE)
        troubles: list[Trouble] = []

        async def read(span: browse.Span) -> browse.Read:
            async with gate:
                try:
                    messages = await self._pull_span(detail, span)
                except Failure as exc:
                    troubles.append(Trouble(f"{span.broker_name} queue {span.queue_id}", explain(exc)))
                    messages = []
                return browse.Read(span, messages)

        reads = await asyncio.gather(*(read(span) for span in spans))
        messages, reached = browse.merge(reads, limit)
        older = browse.next_cursor(detail.queues, before or {}, reached) if messages else None
        return MessagePage(
            messages=tuple(messages),
            older=browse.write_cursor(older) if older else None,
            scanned=sum(len(item.messages) for item in reads),
            took_ms=(time.perf_counter() - started) * 1000,
            at=self._clock(),
            troubles=tuple(detail.troubles) + tuple(troubles),
        )

    async def messages_by_key(self, detail: TopicDetail, key: str, *, limit: int) -> MessagePage:
        """The messages with this key (or unique id), newest first, from the brokers' index."""
        started = time.perf_counter()
        end_ms = int(self._clock() * 1000) + 60_000
        brokers = [BrokerRef(name, address, "") for name, address in detail.addresses.items()]
        answers, troubles = await self._ask_brokers(
            brokers, lambda admin, broker: admin.query_message(broker.address, detail.name, key, limit, 0, end_ms)
        )
        found = [_named(message, broker.name) for broker, messages in answers for message in messages]
        found.sort(key=browse.newest_first)
        return MessagePage(
            tuple(found[:limit]), None, len(found), (time.perf_counter() - started) * 1000, self._clock(),
            tuple(detail.troubles) + tuple(troubles),
        )  # fmt: skip

    async def message(self, topic: str, broker_name: str, queue_id: int, queue_offset: int) -> MessageExt:
        """One message by its place. Raises TopicNotFound when it is not (or no longer) there."""
        cluster = await self.cluster()
        broker = cluster.named(broker_name)
        if broker is None:
            raise TopicNotFound(f"There is no broker {broker_name}.")
        try:
            messages, *_ = await self.call(
                lambda admin: admin.pull_messages(broker.address, topic, queue_id, queue_offset, 1)
            )
        except ResponseError as exc:
            raise TopicNotFound(explain(exc)) from exc
        except Failure as exc:
            raise BrokerUnreachable(f"{broker_name}: {explain(exc)}") from exc
        for message in messages:
            if message.queue_offset == queue_offset:
                return _named(message, broker_name)
        raise TopicNotFound(f"Queue {queue_id} of {broker_name} no longer holds offset {queue_offset}.")

    async def pull_new(self, topic: str, queue: QueueRow, since: int, limit: int, timeout_s: float) -> list[MessageExt]:
        """Messages of one queue from offset `since` on; for the live tail. Raises what the client raises."""
        cluster = await self.cluster(max_age_s=5.0)
        broker = cluster.named(queue.broker_name)
        if broker is None:
            return []
        messages, *_ = await self.call(
            lambda admin: admin.pull_messages(broker.address, topic, queue.queue_id, since, limit), timeout_s
        )
        return [_named(message, broker.name) for message in messages]

    # ---- helpers

    async def _topic_tables(
        self, cluster: ClusterView
    ) -> tuple[list[tuple[BrokerRef, dict[str, TopicConfig]]], list[Trouble]]:
        """Every broker's topics; of a silent broker the last known ones, and a trouble that says how old they are."""
        answers, troubles = await self._ask_brokers(
            cluster.brokers, lambda admin, broker: admin.topic_configs(broker.address)
        )
        now = self._clock()
        tables = [(broker, wrapper.topic_config_table) for broker, wrapper in answers]
        for broker, table in tables:
            self._tables[broker.name] = (now, table)
        for index, trouble in enumerate(troubles):
            silent = cluster.named(trouble.what)
            if silent is not None and silent.name in self._tables:
                read_at, table = self._tables[silent.name]
                tables.append((silent, table))
                age = units.ago(read_at, now)
                troubles[index] = replace(trouble, reason=f"{trouble.reason}; its topics as they were {age}")
        return tables, troubles

    async def _ask_brokers(
        self,
        brokers: Sequence[BrokerRef],
        ask: Callable[[AdminClient, BrokerRef], Awaitable[Answer]],
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> tuple[list[tuple[BrokerRef, Answer]], list[Trouble]]:
        """All brokers side by side: who answered what, and who did not. "No such topic" is no answer and no trouble."""
        results = await asyncio.gather(
            *(
                self.call_broker(broker, lambda admin, broker=broker: ask(admin, broker), timeout_s)  # type: ignore[misc]
                for broker in brokers
            ),
            return_exceptions=True,
        )
        answers: list[tuple[BrokerRef, Answer]] = []
        troubles: list[Trouble] = []
        for broker, result in zip(brokers, results, strict=True):
            if isinstance(result, ResponseError) and result.code == ResponseCode.TOPIC_NOT_EXIST:
                continue
            if isinstance(result, Failure):
                troubles.append(Trouble(broker.name, explain(result)))
            elif isinstance(result, BaseException):
                raise result
            else:
                answers.append((broker, result))
        return answers, troubles

    async def _tell_brokers(
        self, brokers: Sequence[BrokerRef], tell: Callable[[AdminClient, BrokerRef], Awaitable[object]]
    ) -> None:
        """A change on every broker; raises when any of them did not take it, naming it."""
        for broker in brokers:
            try:
                await self.call(lambda admin, broker=broker: tell(admin, broker))  # type: ignore[misc]
            except ResponseError as exc:
                raise Refused(f"{broker.name}: {explain(exc)}") from exc
            except Failure as exc:
                raise BrokerUnreachable(f"{broker.name}: {explain(exc)}") from exc

    async def _read_figures(self, row: TopicRow, cluster: ClusterView) -> Reading[TopicFigures]:
        brokers = [broker for broker in cluster.brokers if broker.name in row.brokers]
        stats, troubles = await self._ask_brokers(
            brokers, lambda admin, broker: admin.topic_stats(broker.address, row.name)
        )
        now = self._clock()
        before = self._figures.get(row.name)
        if troubles:
            reading = Reading(before.value if before else None, before.at if before else now, str(troubles[0].reason))
        else:
            queues = [queue for broker, table in stats for queue in _queue_rows(broker.name, table)]
            reading = Reading(_figures(queues, now, before), now)
        self._figures[row.name] = reading
        return reading

    def _forget_figures_but(self, names: Iterable[str]) -> None:
        living = set(names)
        for name in [known for known in self._figures if known not in living]:
            del self._figures[name]

    async def _group_row(self, group: str, topic: str, brokers: Sequence[BrokerRef]) -> GroupRow:
        stats, troubles = await self._ask_brokers(
            brokers, lambda admin, broker: admin.consume_stats(broker.address, group, topic)
        )
        members: int | None = 0
        for broker in brokers:
            with contextlib.suppress(ResponseError):  # "not online": nobody is connected there
                try:
                    connection = await self.call(lambda admin, b=broker: admin.consumer_connections(b.address, group))  # type: ignore[misc]
                    members = None if members is None else members + len(connection.connection_set)
                except ResponseError:
                    raise
                except Failure:
                    members = None
        if troubles:
            return GroupRow(group, None, 0, members, f"{troubles[0].what}: {troubles[0].reason}")
        places = [place for _, table in stats for place in table.offset_table.values()]
        lag = sum(max(0, place.broker_offset - max(place.consumer_offset, 0)) for place in places)
        return GroupRow(group, lag, max((place.last_timestamp for place in places), default=0), members)

    async def _pull_span(self, detail: TopicDetail, span: browse.Span) -> list[MessageExt]:
        """The messages of one span of a queue; a broker hands out a limited number of bytes a time, so in rounds."""
        messages: list[MessageExt] = []
        position = span.start
        for _ in range(browse.ROUNDS_MAX):
            if position >= span.end:
                break
            address = detail.addresses[span.broker_name]
            wanted = span.end - position
            pulled, next_offset, *_ = await self.call(
                lambda admin, a=address, p=position, w=wanted: admin.pull_messages(a, detail.name, span.queue_id, p, w)  # type: ignore[misc]
            )
            messages += [_named(message, span.broker_name) for message in pulled if message.queue_offset < span.end]
            if next_offset <= position:
                break
            position = next_offset
        return messages


def _settings(broker_name: str, config: TopicConfig) -> TopicSettings:
    return TopicSettings(broker_name, config.read_queue_nums, config.write_queue_nums, config.perm, bool(config.order))


def _queue_rows(broker_name: str, table: TopicStatsTable) -> list[QueueRow]:
    return [
        QueueRow(broker_name, queue.queue_id, offset.min_offset, offset.max_offset, offset.last_update_timestamp)
        for queue, offset in table.offset_table.items()
    ]


def _figures(queues: Sequence[QueueRow], now: float, before: Reading[TopicFigures] | None) -> TopicFigures:
    put_total = sum(queue.max_offset for queue in queues)
    in_rate = None
    if before is not None and before.value is not None and now > before.at and put_total >= before.value.put_total:
        in_rate = (put_total - before.value.put_total) / (now - before.at)
    last_write_ms = max((queue.last_write_ms for queue in queues), default=0)
    return TopicFigures(sum(queue.stored for queue in queues), put_total, last_write_ms, in_rate)


def _named(message: MessageExt, broker_name: str) -> MessageExt:
    message.broker_name = broker_name
    return message


def _own_names(cluster: ClusterView) -> frozenset[str]:
    """Clusters and brokers have topics of their own name."""
    return frozenset({broker.name for broker in cluster.brokers} | {broker.cluster for broker in cluster.brokers})


_gateway: Gateway | None = None


def gateway() -> Gateway:
    """The process's gateway, to the appliance's own name server."""
    global _gateway
    if _gateway is None:
        from django.conf import settings

        _gateway = Gateway(settings.APPLIANCE.namesrv_address)
    return _gateway


def use_gateway(instance: Gateway | None) -> None:
    """Replace the process's gateway; tests point it at their own cluster."""
    global _gateway
    _gateway = instance
