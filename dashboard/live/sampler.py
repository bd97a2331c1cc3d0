"""The sampler: asks the cluster each second, keeps the board, tells the sockets, writes a minute's mean to the
database.

One round may take at most ROUND_TIMEOUT_S; a slow broker costs its own facts only. Rates are differences of the
brokers' counters: a counter that went back (a restart) gives no rate rather than a wrong one. The number of stored
messages needs a call for each topic, so topics are read in turn, at most TOPICS_A_SECOND.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from channels.layers import get_channel_layer

from appliance.process.stall_watch import StallWatch
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway, gateway
from dashboard.cluster.values import BrokerRef, TopicSummary
from dashboard.database import state as database
from dashboard.live import frames
from dashboard.live.history import Minute, keep_minute
from dashboard.live.problem_log import ProblemLog
from dashboard.live.tail import TopicTail, topic_tail
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
    Stored,
    board,
)
from dashboard.status.checks import judge
from dashboard.status.services import REFUSALS_REMEMBERED_S, read_services, refusing_lanes

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
ROUND_TIMEOUT_S = 0.8
RATE_STEP_MAX_S = 5.0  # a longer pause between two readings gives a mean, not a rate of now
TOPICS_A_SECOND = 40
LISTING_EACH_S = 5.0


class Sampler:
    """One of these runs in the appliance process: `Sampler().run()`."""

    def __init__(self, source: Gateway | None = None, *, keep: Board = board, tail: TopicTail = topic_tail) -> None:
        self._gateway = source or gateway()
        self._board = keep
        self._tail = tail
        self._states: dict[str, BrokerState] = {}
        self._count = _StoredCount()
        self._minute = Minute()
        self._problem_log = ProblemLog()

    async def run(self) -> None:
        """Sample until cancelled. A failed round is logged and the next one tried: watching must not end."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._each_second(), name="sampler")
                group.create_task(self._count_stored(), name="sampler-topics")
                group.create_task(self._tail.run(self._gateway), name="topic-tail")
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
            problems=tuple(database.problems(time.time())),
        )
        point = self._board.put(snapshot)
        self._problem_log.note(judge(snapshot).problems, snapshot.at)
        await publish(snapshot, point)
        finished = self._minute.add(snapshot, point)
        if finished is not None:
            await keep_minute(finished)
        return snapshot

    async def _brokers(self) -> tuple[tuple[BrokerRef, ...], str | None]:
        try:
            cluster = await self._gateway.brokers.list(timeout_s=ROUND_TIMEOUT_S)
        except GatewayError as exc:
            return (), str(exc)
        listed = {broker.name: broker for broker in cluster.brokers}
        now = time.time()
        for state in self._states.values():  # a broker that just left stays in sight, greyed
            if state.name not in listed and state.facts is not None and now - state.facts.at < FORGET_AFTER_S:
                listed[state.name] = BrokerRef(state.name, state.address, "")
        return tuple(listed[name] for name in sorted(listed)), cluster.why

    async def _ask(self, broker: BrokerRef) -> BrokerState:
        before = self._states.get(broker.name)
        known = before.facts if before is not None and before.address == broker.address else None
        try:
            info = await self._gateway.brokers.runtime_info(broker, timeout_s=ROUND_TIMEOUT_S)
        except GatewayError as exc:
            now = time.time()
            since = before.failing_since if before is not None and before.failing_since else now
            if known is not None and now - known.at > FORGET_AFTER_S:
                known = None
            return BrokerState(broker.name, broker.address, known, str(exc), since)
        return BrokerState(broker.name, broker.address, read_facts(broker, info, time.time(), known))

    async def _count_stored(self) -> None:
        """Go round all topics, at most TOPICS_A_SECOND, so that the sum of stored messages is seconds old."""
        listed_at, rows, position = 0.0, list[TopicSummary](), 0
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                if time.monotonic() - listed_at > LISTING_EACH_S:
                    listing = await self._gateway.topics.list()
                    listed_at = time.monotonic()
                    if listing.failures:  # what is missing must not count as nothing: the old sum grows old instead
                        self._count.why = f"{listing.failures[0].what}: {listing.failures[0].reason}"
                        continue
                    rows = [row for row in listing.rows if row.kind != "system"]
                    self._count.keep_only({row.name for row in rows})
                if not rows:
                    self._count.nothing_there(time.time())
                    continue
                position %= len(rows)
                some = rows[position : position + TOPICS_A_SECOND]
                position += len(some)
                self._count.take(await self._gateway.topics.with_metrics(some, max_age_s=0.5))
            except GatewayError as exc:
                self._count.why = str(exc)
            except Exception:  # a bug here must not stop the counting for good
                logger.exception("counting stored messages failed", extra={"event": "sampling_failed"})


async def publish(snapshot: Snapshot, point: Point) -> None:
    """Send one frame to all sockets that watch the overview."""
    layer = get_channel_layer()
    if layer is not None:
        await layer.group_send(
            frames.OVERVIEW_GROUP, {"type": "live.frame", "frame": frames.overview_frame(snapshot, point)}
        )


def read_facts(broker: BrokerRef, info: Mapping[str, str], now: float, before: BrokerFacts | None) -> BrokerFacts:
    """A broker's table of texts as facts. What is missing or odd becomes None, which pages show as unknown."""
    put_total, get_total = _int(info, "putMessageTimesTotal"), _int(info, "msgGetTotalTodayNow")
    boot_ms = _int(info, "bootTimestamp")
    first, last = _int(info, "commitLogMinOffset"), _int(info, "commitLogMaxOffset")
    facts = BrokerFacts(
        name=broker.name,
        address=broker.address,
        at=now,
        version=info.get("brokerVersionDesc", ""),
        boot_ms=boot_ms,
        put_total=put_total,
        get_total=get_total,
        disk_ratio=_disk_ratio(info),
        disk_marks=_disk_marks(info),
        disk_text=info.get("commitLogDirCapacity", ""),
        disk_growth=_float(info, "diskGrowthBytesPerSecond"),
        disk_full_in_s=_float(info, "diskSecondsToFull"),
        store_trouble=info.get("storeTrouble", ""),
        disk_store_bytes=_int(info, "diskStoreBytes"),
        disk_others_bytes=_int(info, "diskOthersBytes"),
        disk_filled_by_others=info.get("diskFilledByOthers") == "true",
        commit_log_bytes=last - max(first, 0) if first is not None and last is not None else None,
        behind_bytes=_int(info, "dispatchBehindBytes"),
        lanes=tuple(
            Lane(name, _int(info, size), _int(info, capacity), _float(info, wait))
            for number, (name, size, capacity, wait) in enumerate(LANES)
            if number < LANES_OF_ANY_BROKER or size in info
        ),
        services=read_services(info, LANE_COUNTS),
    )
    facts = _with_refusals(facts, before)
    if before is None or before.boot_ms != boot_ms or not 0 < now - before.at <= RATE_STEP_MAX_S:
        return facts
    seconds = now - before.at
    return replace(
        facts,
        in_rate=_step(before.put_total, put_total, seconds),
        out_rate=_step(before.get_total, get_total, seconds),
    )


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


def _step(before: int | None, after: int | None, seconds: float) -> float | None:
    return None if before is None or after is None or after < before else (after - before) / seconds


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


class _StoredCount:
    """Stored messages by topic, as far as read."""

    def __init__(self) -> None:
        self.why: str | None = "counted from the next seconds on"
        self._topics: dict[str, tuple[int, float]] = {}
        self._expected: set[str] = set()
        self._nothing_at: float | None = None

    def keep_only(self, names: set[str]) -> None:
        self._expected = names
        self._nothing_at = None if names else self._nothing_at
        self._topics = {name: item for name, item in self._topics.items() if name in names}

    def nothing_there(self, now: float) -> None:
        self._nothing_at = now
        self.why = None

    def take(self, rows: Sequence[TopicSummary]) -> None:
        for row in rows:
            if row.metrics is not None and row.metrics.value is not None and row.metrics.why is None:
                self._topics[row.name] = (row.metrics.value.stored, row.metrics.at)
                self.why = None

    def total(self) -> Stored | None:
        """The sum, None until every topic was read once."""
        if self._nothing_at is not None:
            return Stored(0, 0, self._nothing_at)
        if not self._topics or self._expected - self._topics.keys():
            return None
        messages = sum(stored for stored, _ in self._topics.values())
        return Stored(messages, len(self._topics), min(at for _, at in self._topics.values()))
