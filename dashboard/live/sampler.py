"""The sampler: asks the cluster each second, keeps the board, tells the sockets, writes a minute's mean to the
database.

One round may take at most ROUND_TIMEOUT_S; a slow broker costs its own facts only. Rates are differences of the
brokers' counters: a counter that went back (a restart) gives no rate rather than a wrong one. What needs a call for
each topic or group is read in turn: stored_count.py, book_watch.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.utils import translation

from appliance.process.stall_watch import StallWatch
from dashboard.audit.broker_trails import TrailReader
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway, gateway
from dashboard.cluster.values import RATE_S, BrokerRef, mean_rate, rated_since
from dashboard.database import state as database
from dashboard.groups.group_cache import group_book
from dashboard.history.keeper import HistoryKeeper
from dashboard.latency.follower import LatencyFollower
from dashboard.live import failover_watch, frames
from dashboard.live.book_watch import GROUPS_EACH_S, TOPICS_EACH_S, keep_looking
from dashboard.live.check_log import CheckLog
from dashboard.live.group_minutes import GroupMinutes
from dashboard.live.history import Minute, keep_minute
from dashboard.live.layer import probe, send_frame
from dashboard.live.layer import state as layer
from dashboard.live.minute_rows import keep_rows
from dashboard.live.minutes import BrokerMinutes, SlaveMinutes
from dashboard.live.parts import part_watch
from dashboard.live.report_pause import pause_reports
from dashboard.live.stored_count import StoredCount
from dashboard.live.tail import TopicTail, topic_tail
from dashboard.reports import checks as report_checks
from dashboard.status import processes
from dashboard.status.board import (
    DISK_MARKS,
    DISK_RATIOS,
    FORGET_AFTER_S,
    LANE_COUNTS,
    LANES,
    LANES_OF_ANY_BROKER,
    Board,
    BrokerFacts,
    BrokerState,
    DiskMarks,
    Lane,
    Point,
    Snapshot,
    board,
)
from dashboard.status.services import REFUSALS_REMEMBERED_S, read_services, refusing_lanes
from dashboard.status.verdict import checked
from dashboard.status.waiting import waiting
from dashboard.topics.topic_cache import topic_book

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
WAITING_EACH_S = 5.0  # a page closes a socket that brings nothing for 12 s
ROUND_TIMEOUT_S = 0.8
NOW_STEP_MAX_S = 5.0  # a longer pause between two readings gives a mean, not a rate of now
FORECAST_AFTER_S = 600.0  # since a broker's start: what a minute brought is no forecast for hours


class Sampler:
    """One of these runs in the appliance process: `Sampler().run()`."""

    def __init__(self, source: Gateway | None = None, *, keep: Board = board, tail: TopicTail = topic_tail) -> None:
        self._gateway = source or gateway()
        self._board = keep
        self._tail = tail
        self._states: dict[str, BrokerState] = {}
        self._ever_seen: set[str] = set()
        self._count = StoredCount(self._gateway, self._expected)
        self._failovers = failover_watch.FailoverWatch(self._gateway, lambda: self._states.values())
        self._minute = Minute()
        self._waiting: tuple[float, dict[str, int]] = (0.0, {})  # when the menu's counts were sent, and what
        self._rows = (SlaveMinutes(), GroupMinutes(), BrokerMinutes())
        self._check_log = CheckLog()
        self._history = HistoryKeeper()

    async def run(self) -> None:
        """Sample until cancelled. A failed round is logged and the next one tried: watching must not end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._each_second(), name="sampler")
                group.create_task(self._count.run(), name="sampler-topics")
                group.create_task(
                    keep_looking(group_book.look_round, self._gateway, GROUPS_EACH_S), name="sampler-groups"
                )
                group.create_task(
                    keep_looking(topic_book.look, self._gateway, TOPICS_EACH_S), name="sampler-topic-figures"
                )
                group.create_task(self._failovers.run(), name="sampler-failover")
                group.create_task(self._history.run(), name="history")
                group.create_task(LatencyFollower(self._gateway).run(), name="latency")
                group.create_task(TrailReader().run(), name="audit trails")
                group.create_task(self._tail.run(self._gateway), name="topic-tail")
                group.create_task(part_watch.run(), name="parts of pages")
                group.create_task(StallWatch().run(), name="standstill")
        finally:
            with contextlib.suppress(Exception):
                await self._gateway.close()

    async def _each_second(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                await self.sample()
            except Exception:  # a bug in one reading must not blind the page for good
                logger.exception("sampling failed", extra={"event": "sampling_failed"})
            due = max(due + PERIOD_S, loop.time())
            await asyncio.sleep(due - loop.time())

    async def sample(self) -> Snapshot:
        """One round: ask, put on the board, publish, add to the minute."""
        brokers, namesrv_why = await self._brokers()
        states = await asyncio.gather(*(self._ask(broker) for broker in brokers))
        self._states = {state.name: state for state in states}
        snapshot = Snapshot(
            at=time.time(),
            namesrv=self._gateway.namesrv,
            namesrv_why=namesrv_why,
            brokers=tuple(states),
            processes=tuple(processes.sample()),
            stored=self._count.total(),
            stored_why=self._count.why,
            groups=group_book.seen,
            topics=self._count.topics(),
            topic_sizes=topic_book.sizes,
            failovers=dict(self._failovers.seen),
            open_of_rules=self._board.open_of_rules,
            alerts_of_rules=self._board.alerts_of_rules,
            muted=self._board.muted,
            acknowledged=frozenset(subject for rule, subject in self._board.acknowledged if rule is None),
            problems=(
                *database.problems(time.time()),
                *layer.problems(),
                *report_checks.problems(),
                *failover_watch.problems(),
            ),
        )
        point = self._board.put(snapshot)
        self._check_log.note(checked(snapshot), snapshot.at)
        self._history.note(snapshot)
        await publish(snapshot, point)
        await self._publish_waiting(snapshot.at)
        finished = self._minute.add(snapshot, point)
        if finished is not None:
            await keep_minute(finished)
        await self._keep_rows(snapshot)
        await pause_reports(snapshot)
        return snapshot

    async def _publish_waiting(self, now: float) -> None:
        """The counts of the menu, to every page: when they change, and often enough to show that the socket lives."""
        counts = waiting(self._board)
        if counts == self._waiting[1] and now - self._waiting[0] < WAITING_EACH_S:
            return
        self._waiting = now, counts
        for language in frames.languages_of(frames.WAITING):
            group = frames.group_of(frames.WAITING, language)
            await send_frame(frames.WAITING, group, frames.waiting_frame(counts, now))

    async def _keep_rows(self, snapshot: Snapshot) -> None:
        slaves, groups, brokers = self._rows
        if of_slaves := slaves.add(snapshot):
            await keep_rows(slaves.kind, of_slaves)
        if of_groups := groups.add(snapshot):
            await keep_rows(groups.kind, of_groups)
        if of_brokers := brokers.add(snapshot):
            await keep_rows(brokers.kind, of_brokers)

    async def _brokers(self) -> tuple[tuple[BrokerRef, ...], str | None]:
        try:
            cluster = await self._gateway.brokers.list(timeout_s=ROUND_TIMEOUT_S)
        except GatewayError as exc:
            return (), str(exc)
        listed = {broker.key: broker for broker in (*cluster.brokers, *cluster.slaves)}
        addresses = {broker.address for broker in listed.values()}
        now = time.time()
        for key, state in self._states.items():  # a broker that just left stays in sight, greyed
            left = key not in listed and state.address not in addresses  # and has not come back in another role
            if left and state.facts is not None and now - state.facts.at < FORGET_AFTER_S:
                listed[key] = BrokerRef(state.broker_name, state.address, "", state.broker_id)
        return tuple(sorted(listed.values(), key=lambda broker: (broker.name, broker.broker_id))), cluster.why

    async def _ask(self, broker: BrokerRef) -> BrokerState:
        before = self._states.get(broker.key)
        known = before.facts if before is not None and before.address == broker.address else None
        try:
            info = await self._gateway.brokers.runtime_info(broker, timeout_s=ROUND_TIMEOUT_S)
        except GatewayError as exc:
            now = time.time()
            since = before.failing_since if before is not None and before.failing_since else now
            if known is not None and now - known.at > FORGET_AFTER_S:
                known = None
            return BrokerState(broker.key, broker.address, known, str(exc), since, broker.broker_id)
        facts = read_facts(broker, info, time.time(), known)
        return BrokerState(broker.key, broker.address, facts, broker_id=broker.broker_id)

    def _expected(self) -> frozenset[str]:
        """The masters whose messages belong to a whole sum: who is listed, who just left, who is to run here."""
        masters = masters_of(self._states.values())
        self._ever_seen |= masters
        return frozenset(masters | (processes.names_of("broker") & self._ever_seen))


def masters_of(states: Iterable[BrokerState]) -> frozenset[str]:
    return frozenset(state.name for state in states if not state.is_slave)


async def publish(snapshot: Snapshot, point: Point) -> None:
    """Send one frame for each language to all sockets that watch the overview in it."""
    await probe()
    for language in frames.languages_of(frames.OVERVIEW):
        with translation.override(language):
            frame = frames.overview_frame(snapshot, point)
        await send_frame(frames.OVERVIEW, frames.group_of(frames.OVERVIEW, language), frame)


def read_facts(broker: BrokerRef, info: Mapping[str, str], now: float, before: BrokerFacts | None) -> BrokerFacts:
    """A broker's table of texts as facts. What is missing or odd becomes None, which pages show as unknown."""
    put_total, get_total = _int(info, "putMessageTimesTotal"), _int(info, "msgGetTotalTodayNow")
    boot_ms = _int(info, "bootTimestamp")
    has_forecast = boot_ms is not None and now - boot_ms / 1000 >= FORECAST_AFTER_S
    first, last = _int(info, "commitLogMinOffset"), _int(info, "commitLogMaxOffset")
    facts = BrokerFacts(
        name=broker.key,
        address=broker.address,
        at=now,
        cluster=broker.cluster,
        told=info,
        version=info.get("brokerVersionDesc", ""),
        boot_ms=boot_ms,
        put_total=put_total,
        get_total=get_total,
        disk_ratio=_disk_ratio(info),
        disk_marks=_disk_marks(info),
        disk_text=info.get("commitLogDirCapacity", ""),
        disk_growth=_float(info, "diskGrowthBytesPerSecond") if has_forecast else None,
        disk_full_in_s=_float(info, "diskSecondsToFull") if has_forecast else None,
        disk_full_earliest_s=_float(info, "diskSecondsToFullEarliest"),
        disk_full_latest_s=_float(info, "diskSecondsToFullLatest"),
        was_disk_full_soon=before is not None and before.is_disk_full_soon,
        store_trouble=info.get("storeTrouble", ""),
        disk_store_bytes=_int(info, "diskStoreBytes"),
        disk_others_bytes=_int(info, "diskOthersBytes"),
        disk_free_bytes=_int(info, "diskFreeBytes"),
        disk_reserved_bytes=_int(info, "diskReservedBytes"),
        disk_device=info.get("diskDevice", ""),
        disk_filled_by_others=info.get("diskFilledByOthers") == "true",
        memory_bytes=_int(info, "memoryBytes"),
        memory_mapped_bytes=_int(info, "memoryMappedBytes"),
        memory_swapped_bytes=_int(info, "memorySwappedBytes"),
        memory_request_bytes=_int(info, "memoryRequestBytes"),
        memory_subscription_bytes=_int(info, "memorySubscriptionBytes"),
        memory_timer_bytes=_int(info, "memoryTimerBytes"),
        memory_pool_bytes=_int(info, "memoryPoolBytes"),
        memory_free_bytes=_int(info, "memoryFreeBytes"),
        memory_other_bytes=_int(info, "memoryOtherBytes"),
        commit_log_bytes=last - max(first, 0) if first is not None and last is not None else None,
        behind_bytes=_int(info, "dispatchBehindBytes"),
        lanes=_lanes(info),
        services=read_services(info, LANE_COUNTS),
    )
    facts = _with_refusals(facts, before)
    return facts if before is None or before.boot_ms != boot_ms else _with_rates(facts, before)


def _with_rates(facts: BrokerFacts, before: BrokerFacts) -> BrokerFacts:
    seconds = facts.at - before.at
    put, got = _step(before.put_total, facts.put_total), _step(before.get_total, facts.get_total)
    is_now = seconds <= NOW_STEP_MAX_S
    known_s = before.at - before.rated_since
    return replace(
        facts,
        in_rate=mean_rate(put, seconds, before.in_rate, known_s),
        out_rate=mean_rate(got, seconds, before.out_rate, known_s),
        rated_since=_rated_since(before, facts.at),
        in_now=mean_rate(put, seconds, None) if is_now else None,
        out_now=mean_rate(got, seconds, None) if is_now else None,
    )


def _rated_since(before: BrokerFacts, now: float) -> float:
    if now - before.at > RATE_S:  # a clock that was set: the rate over that time says nothing of the next ones
        return now
    return rated_since(before.in_rate, before.rated_since, before.at)


def _disk_ratio(info: Mapping[str, str]) -> float | None:
    """How full the disk is that a broker judges by: its log's or its queues', whichever is fuller."""
    ratios = [_float(info, key) for key in DISK_RATIOS]
    return max((ratio for ratio in ratios if ratio is not None and 0 <= ratio <= 1), default=None)


def _disk_marks(info: Mapping[str, str]) -> DiskMarks:
    """The marks in force at a GantryMQ broker; a mark that is missing or out of range is RocketMQ's default."""
    told = {field: _float(info, key) for field, key in DISK_MARKS.items()}
    return DiskMarks(**{field: ratio for field, ratio in told.items() if ratio is not None and 0 < ratio <= 1})


def _with_refusals(facts: BrokerFacts, before: BrokerFacts | None) -> BrokerFacts:
    """What lanes refused since the last reading; what they refused within the last minute stays in sight."""
    if before is None or before.boot_ms != facts.boot_ms:
        return facts
    refusing = refusing_lanes(before.services, facts.services)
    if refusing:
        return replace(facts, refusing=refusing, refused_at=facts.at)
    if facts.at - before.refused_at < REFUSALS_REMEMBERED_S:
        return replace(facts, refusing=before.refusing, refused_at=before.refused_at)
    return facts


def _lanes(info: Mapping[str, str]) -> tuple[Lane, ...]:
    return tuple(
        Lane(name, _int(info, size), _int(info, capacity), _float(info, wait))
        for number, (name, size, capacity, wait) in enumerate(LANES)
        if number < LANES_OF_ANY_BROKER or size in info
    )


def _step(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _int(info: Mapping[str, str], key: str) -> int | None:
    try:
        return int(info[key])
    except (KeyError, ValueError):
        return None


def _float(info: Mapping[str, str], key: str) -> float | None:
    try:
        return float(info[key])
    except (KeyError, ValueError):
        return None
