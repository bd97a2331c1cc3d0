"""The gateway's topics: list, one whole; create, change, delete."""

from __future__ import annotations

import asyncio
import heapq
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dashboard.cluster.calls import (
    CALL_ERRORS,
    CALL_TIMEOUT_S,
    CALLS_AT_ONCE,
    ClusterCalls,
    KeptTables,
    LastAnswers,
    LastAnswersOf,
    own_names,
)
from dashboard.cluster.errors import BrokerUnreachable, NotAllowed, Refused, TopicExists, TopicNotFound, explain
from dashboard.cluster.values import (
    BrokerExtent,
    BrokerRef,
    ClusterView,
    PartialFailure,
    QueueExtent,
    Reading,
    TopicDetail,
    TopicListing,
    TopicMetrics,
    TopicSettings,
    TopicSummary,
    mean_rate,
    rated_since,
    topic_kind,
)
from dashboard.language.sentences import gettext
from dashboard.limits.names import current
from gantrymq.client.admin.client import AdminClient
from gantrymq.message.topic_attributes import RETENTION_MESSAGES, RETENTION_MS, without_effect
from gantrymq.remoting.admin_bodies import TopicConfig, TopicConfigSerializeWrapper, TopicStatsTable
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE
from gantrymq.remoting.codes import RequestCode

METRICS_MAX_AGE_S = 4.0
FIRST_SPAN_S = 0.25  # two looks at once, of two pages, tell no rate
LISTING_SHARED_S = 1.0  # tabs that ask again share a listing that is so young
READ_FOR_A_LIST_MAX = 25  # topics of a page that are read at once, those read longest ago; each is a call a broker

TopicTable = dict[str, TopicSettings]
Tables = tuple[list[tuple[BrokerRef, TopicTable]], list[PartialFailure]]  # of each broker; who did not answer


class TopicCalls:
    """`gateway.topics`: what pages, REST and sockets ask about topics."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._calls = calls
        self._metrics: dict[str, Reading[TopicMetrics]] = {}
        self._listing: tuple[asyncio.AbstractEventLoop, float, asyncio.Task[TopicListing]] | None = None
        self._asked = KeptTables(RequestCode.GET_ALL_TOPIC_CONFIG, _topic_table)
        self._told = LastAnswers(self._asked.ask)
        self._told_extents = LastAnswersOf(lambda admin, broker, name: admin.topics.stats_at(broker.address, name))
        self._rows: dict[str, TopicSummary] = {}  # by name, in order
        self._rows_of: tuple[Sequence[TopicTable], frozenset[str]] = ((), frozenset())  # what they were made of

    # ---- reading

    async def list(self, *, max_age_s: float = 0.0) -> TopicListing:
        """All topics of all brokers, by name; metrics only where they are known already (see `with_metrics`).

        Who takes one of up to `max_age_s` shares it with all others who do, so that many tabs cost what one does.
        """
        if not max_age_s:
            return _visible(await self._list())
        loop, now = asyncio.get_running_loop(), self._calls.clock()
        shared = self._listing
        if shared is None or shared[0] is not loop or now - shared[1] >= max_age_s:
            shared = self._listing = (loop, now, loop.create_task(self._list(), name="topic listing"))
        return _visible(await asyncio.shield(shared[2]))

    async def _list(self) -> TopicListing:
        cluster = await self._calls.cluster()
        tables, failures = await self._topic_tables(cluster)
        if cluster.why:
            failures.append(PartialFailure(gettext("name server"), cluster.why))
        self._make_rows([table for _, table in tables], own_names(cluster))
        return TopicListing(tuple(self._rows.values()), self._calls.clock(), tuple(failures))

    def _make_rows(self, tables: Sequence[TopicTable], clusters_own: frozenset[str]) -> None:
        """The rows of these tables; those that were made of the same tables before stay as they are."""
        made_of, own = self._rows_of
        is_same = len(made_of) == len(tables) and all(map(operator.is_, made_of, tables))
        if is_same and own == clusters_own:
            return
        found: dict[str, list[TopicSettings]] = {}
        for table in tables:
            for name, settings in table.items():
                found.setdefault(name, []).append(settings)
        self._metrics = {name: reading for name, reading in self._metrics.items() if name in found}
        self._rows = {
            name: TopicSummary(name, topic_kind(name, clusters_own), tuple(settings), self._metrics.get(name))
            for name, settings in sorted(found.items())
        }
        self._rows_of = tables, clusters_own

    async def with_metrics(
        self, rows: Sequence[TopicSummary], *, max_age_s: float = METRICS_MAX_AGE_S, reads_max: int | None = None
    ) -> Sequence[TopicSummary]:
        """The same rows with metrics no older than asked; only those that are missing or old are read.

        Of more than `reads_max` those that were read longest ago are read; the others keep what is known of them.
        """
        cluster = await self._calls.cluster()
        gate, now = asyncio.Semaphore(CALLS_AT_ONCE), self._calls.clock()
        due = [row.name for row in rows if self._is_due(row.name, now - max_age_s)]
        if reads_max is not None and len(due) > reads_max:
            due = heapq.nsmallest(reads_max, due, key=self._read_at)
        read_now = frozenset(due)

        async def fill(row: TopicSummary) -> TopicSummary:
            if row.name not in read_now:
                return replace(row, metrics=self._metrics.get(row.name))
            async with gate:
                return replace(row, metrics=await self._read_metrics(row, cluster))

        return list(await asyncio.gather(*(fill(row) for row in rows)))

    def known_rate(self, name: str) -> float | None:
        """Messages per second that producers sent to the topic, as it was read last."""
        known = self._metrics.get(name)
        return known.value.in_rate if known is not None and known.value is not None else None

    def _is_due(self, name: str, read_before: float) -> bool:
        known = self._metrics.get(name)
        return known is None or known.value is None or known.at <= read_before

    def _read_at(self, name: str) -> float:
        known = self._metrics.get(name)
        return 0.0 if known is None or known.value is None else known.at

    async def get(self, name: str) -> TopicDetail:
        """One topic whole; of a silent broker what it told last.

        Raises TopicNotFound when every broker answered and none has it.
        """
        cluster = await self._calls.cluster()
        tables, failures = await self._topic_tables(cluster)
        if failures and not any(name in table for _, table in tables):  # it may be newer than what was told
            tables, failures = await self._topic_tables(cluster, patiently=True)
        holders = [(broker, table[name]) for broker, table in tables if name in table]
        if not holders:
            if failures:
                raise BrokerUnreachable(f"{failures[0].what}: {failures[0].reason}")
            raise TopicNotFound(gettext("There is no topic %(name)s.") % {"name": name})
        stats, more = await self._told_extents.ask(name, self._calls, [broker for broker, _ in holders])
        queues = [row for broker, told in stats for row in _queue_extents(broker.name, told.answer)]
        return TopicDetail(
            name=name,
            kind=topic_kind(name, own_names(cluster)),
            settings=tuple(settings for _, settings in holders),
            queues=tuple(sorted(queues, key=lambda row: (row.broker_name, row.queue_id))),
            addresses={broker.name: broker.address for broker, _ in holders},
            at=self._calls.clock(),
            read_at={broker.name: told.at for broker, told in stats},
            failures=tuple({failure.what: failure for failure in (*failures, *more)}.values()),
        )

    async def queues(self, name: str, *, timeout_s: float = CALL_TIMEOUT_S) -> tuple[QueueExtent, ...]:
        """Only the queues' extents, for the live tail. Raises BrokerUnreachable: half of the queues would be wrong."""
        cluster = await self._calls.cluster(timeout_s=timeout_s, max_age_s=5.0)
        stats, failures = await self._calls.ask_brokers(
            cluster.brokers, lambda admin, broker: admin.topics.stats_at(broker.address, name), timeout_s
        )
        if failures:
            raise BrokerUnreachable(f"{failures[0].what}: {failures[0].reason}")
        return tuple(row for broker, table in stats for row in _queue_extents(broker.name, table))

    # ---- writing

    def forget_listing(self) -> None:
        """A topic was changed, or may have been: the next listing waits for what brokers have now."""
        self._listing = None
        self._told.changed()
        self._told_extents.changed()

    async def create(self, name: str, *, queues: int, read_queues: int | None = None,
                           perm: int = PERM_READ | PERM_WRITE, order: bool = False,
                           retention_ms: int | None = None, retention_messages: int | None = None,
                           broker_names: Iterable[str] = ()) -> None:  # fmt: skip
        """Create on the named brokers, on all when none is named. Raises TopicExists, NotAllowed, Refused."""
        cluster = await self._calls.cluster()
        if topic_kind(name, own_names(cluster)) == "system":
            raise NotAllowed(gettext("%(name)s is a name of the cluster itself.") % {"name": name})
        self.forget_listing()  # or one that was made just now may be missed
        if any(row.name == name for row in (await self.list()).rows):
            raise TopicExists(gettext("The topic %(name)s exists already.") % {"name": name})
        wanted = set(broker_names)
        targets = [broker for broker in cluster.brokers if not wanted or broker.name in wanted]
        if not targets:
            raise Refused(gettext("No broker is registered, so there is nowhere to create a topic."))
        kept = {RETENTION_MS: retention_ms, RETENTION_MESSAGES: retention_messages}
        config = TopicConfig(
            topic_name=name,
            read_queue_nums=queues if read_queues is None else read_queues,
            write_queue_nums=queues,
            perm=perm,
            order=order,
            attributes={key: str(value) for key, value in kept.items() if value} or None,
        )
        try:
            await self._calls.tell_brokers(targets, lambda admin, broker: _take_over(admin, broker, config))
        finally:
            self.forget_listing()

    async def change(self, name: str, *, read_queues: int | None = None, write_queues: int | None = None,
                           perm: int | None = None, order: bool | None = None, retention_ms: int | None = None,
                           retention_messages: int | None = None) -> None:  # fmt: skip
        """Change what is given on every broker that holds the topic; the rest stays as it is there. A retention of 0
        takes the topic's own away."""
        cluster = await self._calls.cluster()
        if topic_kind(name, own_names(cluster)) == "system":
            raise NotAllowed(gettext("%(name)s is a topic of the cluster itself.") % {"name": name})
        detail = await self.get(name)

        def config_for(broker: BrokerRef) -> TopicConfig:
            now = next(item for item in detail.settings if item.broker_name == broker.name)
            return TopicConfig(
                topic_name=name,
                read_queue_nums=now.read_queues if read_queues is None else read_queues,
                write_queue_nums=now.write_queues if write_queues is None else write_queues,
                perm=now.perm if perm is None else perm,
                order=now.order if order is None else order,
                attributes=_retention_changes(now, retention_ms, retention_messages),
            )

        targets = [broker for broker in cluster.brokers if broker.name in detail.addresses]
        try:
            await self._calls.tell_brokers(targets, lambda admin, broker: _take_over(admin, broker, config_for(broker)))
        finally:
            self.forget_listing()

    async def delete(self, name: str) -> None:
        """Delete on every broker, then from the name server. Raises TopicNotFound, NotAllowed."""
        detail = await self.get(name)
        if detail.kind == "system":
            raise NotAllowed(gettext("%(name)s is a topic of the cluster itself.") % {"name": name})
        cluster = await self._calls.cluster()
        targets = [broker for broker in cluster.brokers if broker.name in detail.addresses]
        try:
            await self._calls.tell_brokers(targets, lambda admin, broker: admin.topics.delete_at(broker.address, name))
        finally:
            self.forget_listing()
        self._metrics.pop(name, None)
        try:
            await self._calls.call(lambda admin: admin.name_servers.delete_topic(name))
        except CALL_ERRORS as exc:
            raise Refused(
                gettext("Deleted on the brokers, but not on the name server: %(exc)s") % {"exc": explain(exc)}
            ) from exc

    # ---- helpers

    async def _topic_tables(self, cluster: ClusterView, *, patiently: bool = False) -> Tables:
        """Every broker's topics; of a silent broker those that it told last."""
        told, failures = await self._told.ask(self._calls, cluster.brokers, patiently=patiently)
        self._asked.keep_only(cluster.brokers)
        return [(broker, one.answer) for broker, one in told], failures

    async def _read_metrics(self, row: TopicSummary, cluster: ClusterView) -> Reading[TopicMetrics]:
        brokers = [broker for broker in cluster.brokers if broker.name in row.brokers]
        known = self._metrics.get(row.name)
        is_late = any(self._calls.is_late(broker.address) for broker in brokers)
        if is_late and known is not None and known.value is not None:  # a list asks for each of its rows
            return replace(known, why=gettext("no answer in time"))
        stats, failures = await self._calls.ask_brokers(
            brokers, lambda admin, broker: admin.topics.stats_at(broker.address, row.name)
        )
        now = self._calls.clock()
        before = self._metrics.get(row.name)
        if failures:
            reading = Reading(before.value if before else None, before.at if before else now, str(failures[0].reason))
        else:
            queues = [queue for broker, table in stats for queue in _queue_extents(broker.name, table)]
            reading = Reading(_metrics(queues, now, before), now)
        self._metrics[row.name] = reading
        if row.name in self._rows:
            self._rows[row.name] = replace(self._rows[row.name], metrics=reading)
        return reading


def _visible(listing: TopicListing) -> TopicListing:
    """The same for an account without a limit; for another one its own topics."""
    limit = current()
    if not limit.is_limited:
        return listing
    return replace(listing, rows=tuple(row for row in listing.rows if limit.allows(row.name)))


def _topic_table(broker: BrokerRef, body: bytes) -> TopicTable:
    """A broker's topics by name. Raises BodyError."""
    table = TopicConfigSerializeWrapper.from_json(body).topic_config_table
    return {name: _settings(broker.name, config) for name, config in table.items()}


def _settings(broker_name: str, config: TopicConfig) -> TopicSettings:
    attributes = config.attributes or {}
    return TopicSettings(
        broker_name,
        config.read_queue_nums,
        config.write_queue_nums,
        config.perm,
        bool(config.order),
        _limit(config, RETENTION_MS),
        _limit(config, RETENTION_MESSAGES),
        tuple(f"{name}={attributes[name]}" for name in without_effect(attributes)),
    )


def _limit(config: TopicConfig, name: str) -> int | None:
    text = (config.attributes or {}).get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


async def _take_over(admin: AdminClient, broker: BrokerRef, config: TopicConfig) -> None:
    """Have the broker create or change the topic. Raises Refused where it takes no retention of a topic's own."""
    await admin.topics.create_at(broker.address, config)
    wanted = {name for name in config.attributes or {} if not name.startswith("-")}
    if wanted:
        made = await admin.topics.config_at(broker.address, config.topic_name)
        if made is None or wanted - set(made.attributes or {}):
            raise Refused(
                gettext(
                    "%(name)s keeps all topics for the same time, as brokers of RocketMQ 4.9 do. It "
                    "accepted everything else."
                )
                % {"name": broker.name}
            )


def _retention_changes(now: TopicSettings, retention_ms: int | None, messages: int | None) -> dict[str, str] | None:
    """The attributes to send: a name with "-" before it takes the topic's own away. None: nothing changes."""
    wanted = ((RETENTION_MS, now.retention_ms, retention_ms), (RETENTION_MESSAGES, now.retention_messages, messages))
    changes: dict[str, str] = {}
    for name, known, value in wanted:
        if value:
            changes[name] = str(value)
        elif value == 0 and known is not None:
            changes[f"-{name}"] = ""
    return changes or None


def _queue_extents(broker_name: str, table: TopicStatsTable) -> list[QueueExtent]:
    return [
        QueueExtent(broker_name, queue.queue_id, offset.min_offset, offset.max_offset, offset.last_update_timestamp)
        for queue, offset in table.offset_table.items()
    ]


def _metrics(queues: Sequence[QueueExtent], now: float, before: Reading[TopicMetrics] | None) -> TopicMetrics:
    extents = _extents(queues, now, before)  # of each broker: one that comes back would bring its whole history
    rates = [extent.in_rate for extent in extents if extent.in_rate is not None]
    last_write_ms = max((queue.last_write_ms for queue in queues), default=0)
    stored = sum(queue.stored for queue in queues)
    put_total = sum(extent.put_total for extent in extents)
    return TopicMetrics(stored, put_total, last_write_ms, sum(rates) if rates else None, extents)


def _extents(
    queues: Sequence[QueueExtent], now: float, before: Reading[TopicMetrics] | None
) -> tuple[BrokerExtent, ...]:
    """Each broker's part, with its rate where it was read before."""
    known = before.value.extents if before is not None and before.value is not None else ()
    were = {extent.broker_name: extent for extent in known}
    at = before.at if before is not None else now
    extents = []
    for name in sorted({queue.broker_name for queue in queues}):
        own = [queue for queue in queues if queue.broker_name == name]
        put_total, was = sum(queue.max_offset for queue in own), were.get(name)
        since = at if was is None else rated_since(was.in_rate, was.rated_since, at)
        rate = _rate(put_total, was, now - at, at - since)
        extents.append(BrokerExtent(name, sum(queue.stored for queue in own), put_total, rate, since))
    return tuple(extents)


def _rate(put_total: int, was: BrokerExtent | None, seconds: float, known_s: float) -> float | None:
    if was is None or (was.in_rate is None and seconds < FIRST_SPAN_S):
        return None
    return mean_rate(put_total - was.put_total, seconds, was.in_rate, known_s)
