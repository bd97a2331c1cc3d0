"""BrokerStatsManager: what the broker counts by topic and by group, and how much of it is recent.

Counters are plain integers that only grow; the hot path adds to them and nothing else. A timer takes snapshots, and a
window (minute, hour, day) is the difference between its newest and its oldest snapshot. Names, keys and periods are
those of RocketMQ 4.9 (common.stats.StatsItem), so request 315 means the same here: an item exists from its first
increment, and a window is empty until the timer came by.
"""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from gantrymq.message.topics import SCHEDULE_TOPIC

logger = logging.getLogger(__name__)

_Value = TypeVar("_Value")

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
GROUP_GET_NUMS = "GROUP_GET_NUMS"
GROUP_GET_SIZE = "GROUP_GET_SIZE"
GROUP_GET_LATENCY = "GROUP_GET_LATENCY"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
BROKER_GET_NUMS = "BROKER_GET_NUMS"
QUEUE_PUT_NUMS = "QUEUE_PUT_NUMS"
QUEUE_PUT_SIZE = "QUEUE_PUT_SIZE"
QUEUE_GET_NUMS = "QUEUE_GET_NUMS"
QUEUE_GET_SIZE = "QUEUE_GET_SIZE"
SCHEDULE_CONSUMER = "SCHEDULE_CONSUMER"  # RocketMQ's name for the service that delivers delayed messages
_QUEUE_NAMES = {QUEUE_PUT_NUMS, QUEUE_PUT_SIZE, QUEUE_GET_NUMS, QUEUE_GET_SIZE}

SAMPLE_PERIOD_S = 10
_HOUR_TICKS = 60  # a sample of the hour window every 60 samples of the minute window: 10 minutes
_DAY_TICKS = 360  # and of the day window every hour
_MINUTE_KEPT, _HOUR_KEPT, _DAY_KEPT = 7, 7, 25  # snapshots
ITEMS_A_SLICE = 256  # sampled before others have a turn: less than a millisecond


class Snapshot(NamedTuple):
    """What an item had counted at a moment."""

    time_ms: int
    value: int
    times: int


@dataclass(frozen=True, slots=True)
class StatsWindow:
    """What fell into one window. value_per_call is RocketMQ's avgpt: 0 for items that do not count calls."""

    sum: int = 0
    per_second: float = 0.0
    value_per_call: float = 0.0


Snapshots = array  # of 64-bit numbers, three a snapshot: nothing for the garbage collector, with thousands of items


def _no_snapshots() -> Snapshots[int]:
    return array("q")


def window_of(numbers: Snapshots[int]) -> StatsWindow:
    """The difference between the newest and the oldest snapshot; nothing counted when there are none."""
    if not numbers:
        return StatsWindow()
    first, last = Snapshot(*numbers[:3]), Snapshot(*numbers[-3:])
    total, times, elapsed_ms = last.value - first.value, last.times - first.times, last.time_ms - first.time_ms
    return StatsWindow(
        sum=total,
        per_second=total * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0,
        value_per_call=total / times if times > 0 else 0.0,
    )


@dataclass(slots=True)
class StatsItem:
    """Two counters that only grow, and the snapshots of the three windows."""

    value: int = 0
    times: int = 0
    minute: Snapshots[int] = field(default_factory=_no_snapshots)
    hour: Snapshots[int] = field(default_factory=_no_snapshots)
    day: Snapshots[int] = field(default_factory=_no_snapshots)

    def sample(self, snapshots: Snapshots[int], kept: int, now_ms: int, period_s: int) -> None:
        """Append what is counted now. An item that is new gets a zero dated one period earlier first."""
        if not snapshots:
            snapshots.extend((now_ms - period_s * 1000, 0, 0))
        snapshots.extend((now_ms, self.value, self.times))
        if len(snapshots) > 3 * kept:
            del snapshots[: -3 * kept]


class TopicPuts:
    """What was put into a topic since it was last folded into the items: `times` requests with `count` messages."""

    __slots__ = ("count", "size", "times", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.count = 0
        self.times = 0
        self.size = 0  # bytes as stored


@dataclass(slots=True)
class DailyTotals:
    """Messages stored and handed out, as they stood at the last two local midnights. Memory only, as in RocketMQ."""

    put_yesterday_morning: int = 0
    put_today_morning: int = 0
    get_yesterday_morning: int = 0
    get_today_morning: int = 0

    def midnight(self, put_total: int, get_total: int) -> None:
        self.put_yesterday_morning, self.put_today_morning = self.put_today_morning, put_total
        self.get_yesterday_morning, self.get_today_morning = self.get_today_morning, get_total


class BrokerStatsManager:
    """All items of one broker, by name and key. Loop thread only.

    totals: () -> (messages stored, messages handed out) since the start, for the daily record; by default what this
    manager itself counted. clock: seconds since the epoch.
    """

    def __init__(
        self,
        cluster_name: str,
        *,
        totals: Callable[[], tuple[int, int]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.daily = DailyTotals()
        self._clock = clock
        self._items: dict[str, dict[str, StatsItem]] = {}
        self._puts: dict[str, TopicPuts] = {}
        self.group_gets: dict[tuple[str, str], tuple[StatsItem, StatsItem]] = {}  # (topic, group): messages, bytes
        self._broker_put = self._item(BROKER_PUT_NUMS, cluster_name)
        self.broker_get = self._item(BROKER_GET_NUMS, cluster_name)
        self._totals = totals or self._own_totals
        self._ticks = 0
        self._day = time.localtime(clock()).tm_yday

    # -- counting -----------------------------------------------------------------------------------------------------

    def watch(self, puts: TopicPuts) -> None:
        """Fold in, from now on, what a hot path counts here itself. One for a topic: the latest."""
        before = self._puts.get(puts.topic)
        if before is not None:
            self._fold(before)
        self._puts[puts.topic] = puts

    def inc_topic_put(self, topic: str, count: int, size: int) -> None:
        """`count` messages of `size` stored bytes were accepted in one request; counts for the broker too."""
        puts = self._puts.get(topic)
        if puts is None:
            puts = self._puts[topic] = TopicPuts(topic)
        puts.count += count
        puts.times += 1
        puts.size += size

    def inc_delayed_put(self, topic: str, level: int, size: int) -> None:
        """A send was accepted that waits in `topic`, at a delay level; it counts for its own topic when delivered."""
        self.inc_topic_put(topic, 1, size)
        self._inc_schedule_queue(topic, level, size)

    def inc_waiting_retry(self, topic: str, level: int, size: int) -> None:
        """The same for a message that was sent back: RocketMQ counts it for the topic, not for the broker."""
        self.add(TOPIC_PUT_NUMS, topic, 1)
        self.add(TOPIC_PUT_SIZE, topic, size)
        self._inc_schedule_queue(topic, level, size)

    def _inc_schedule_queue(self, topic: str, level: int, size: int) -> None:
        if topic == SCHEDULE_TOPIC:
            self.add(QUEUE_PUT_NUMS, f"{topic}@{level - 1}", 1)
            self.add(QUEUE_PUT_SIZE, f"{topic}@{level - 1}", size)

    def inc_scheduled(self, queue_id: int, topic: str, size: int) -> None:
        """A delayed message left its queue of the schedule topic and was stored, with `size` bytes, in its own."""
        self.inc_topic_put(topic, 1, size)
        for nums, sizes, place in (
            (GROUP_GET_NUMS, GROUP_GET_SIZE, SCHEDULE_TOPIC),
            (QUEUE_GET_NUMS, QUEUE_GET_SIZE, f"{SCHEDULE_TOPIC}@{queue_id}"),
        ):
            self.add(nums, f"{place}@{SCHEDULE_CONSUMER}", 1)
            self.add(sizes, f"{place}@{SCHEDULE_CONSUMER}", size)

    def inc_group_get(self, group: str, topic: str, count: int, size: int) -> None:
        """`count` messages of `size` bytes went to a consumer in one answer; counts for the broker too. Hot."""
        self.broker_get.value += count
        pair = self.group_gets.get((topic, group))
        if pair is None:
            key = f"{topic}@{group}"
            pair = (self._item(GROUP_GET_NUMS, key), self._item(GROUP_GET_SIZE, key))
            self.group_gets[topic, group] = pair
        nums, sizes = pair
        nums.value += count
        nums.times += 1
        sizes.value += size
        sizes.times += 1

    def inc_send_back(self, group: str, topic: str) -> None:
        """A consumer of `group` sent a message back; `topic` is the message's original one."""
        self.add(SNDBCK_PUT_NUMS, f"{topic}@{group}", 1)

    def add(self, name: str, key: str, value: int) -> None:
        """Count `value` in one call under any other name (the table of names stands at the top)."""
        item = self._item(name, key)
        item.value += value
        item.times += 1

    def topic_deleted(self, topic: str) -> None:
        """Forget what was counted for a topic, so that names don't pile up."""
        if (puts := self._puts.pop(topic, None)) is not None:
            self._fold(puts)
        for pair in [pair for pair in self.group_gets if pair[0] == topic]:
            del self.group_gets[pair]
        self._drop({TOPIC_PUT_NUMS, TOPIC_PUT_SIZE}, lambda key: key == topic)
        names = _QUEUE_NAMES | {GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS}
        self._drop(names, lambda key: key.startswith(f"{topic}@"))
        self._drop({GROUP_GET_LATENCY}, lambda key: f"@{topic}@" in key)

    def group_deleted(self, group: str) -> None:
        """Forget what was counted for a consumer group."""
        for pair in [pair for pair in self.group_gets if pair[1] == group]:
            del self.group_gets[pair]
        names = {GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS, QUEUE_GET_NUMS, QUEUE_GET_SIZE, GROUP_GET_LATENCY}
        self._drop(names, lambda key: key.endswith(f"@{group}"))

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, name: str, key: str) -> StatsItem | None:
        """The item, or None when nothing was ever counted under that name and key."""
        if name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE):
            if (puts := self._puts.get(key)) is not None:
                self._fold(puts)
        elif name == BROKER_PUT_NUMS:
            self._fold_all()
        return self._items.get(name, {}).get(key)

    def consume_per_second(self, group: str, topic: str) -> float:
        """Messages a second that the group took from the topic, over the last minute."""
        item = self.get(GROUP_GET_NUMS, f"{topic}@{group}")
        return window_of(item.minute).per_second if item else 0.0

    def totals(self) -> tuple[int, int]:
        """Messages stored and messages handed out since the start."""
        return self._totals()

    # -- sampling -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Sample every ten seconds, until cancelled."""
        while True:
            for _ in self.sampling(self._clock()):
                await asyncio.sleep(0)
            await asyncio.sleep(SAMPLE_PERIOD_S)

    def sample(self, now_s: float) -> None:
        """Take one round of snapshots; the caller comes by every SAMPLE_PERIOD_S."""
        for _ in self.sampling(now_s):
            pass

    def sampling(self, now_s: float) -> Iterator[None]:
        """Take one round of snapshots, ITEMS_A_SLICE at a time: with many topics a whole round takes 50 ms."""
        now_ms = int(now_s * 1000)
        hour_due, day_due = self._ticks % _HOUR_TICKS == 0, self._ticks % _DAY_TICKS == 0
        for some_puts in _slices(self._puts.values()):
            for puts in some_puts:
                self._fold(puts)
            yield
        for some in _slices([item for items in self._items.values() for item in items.values()]):
            for item in some:
                item.sample(item.minute, _MINUTE_KEPT, now_ms, SAMPLE_PERIOD_S)
                if hour_due:
                    item.sample(item.hour, _HOUR_KEPT, now_ms, SAMPLE_PERIOD_S * _HOUR_TICKS)
                if day_due:
                    item.sample(item.day, _DAY_KEPT, now_ms, SAMPLE_PERIOD_S * _DAY_TICKS)
            yield
        self._ticks += 1
        self._note_midnight(now_s)

    def _note_midnight(self, now_s: float) -> None:
        day = time.localtime(now_s).tm_yday
        if day == self._day:
            return
        self._day = day
        put_total, get_total = self._totals()
        self.daily.midnight(put_total, get_total)
        logger.info(
            "yesterday's messages",
            extra={
                "event": "daily_totals",
                "put": put_total - self.daily.put_yesterday_morning,
                "get": get_total - self.daily.get_yesterday_morning,
            },
        )

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _fold_all(self) -> None:
        for puts in self._puts.values():
            if puts.times:
                self._fold(puts)

    def _fold(self, puts: TopicPuts) -> None:
        """Add what was counted to the items, and count from zero again."""
        if not puts.times:
            return
        self._broker_put.value += puts.count  # RocketMQ never counts the calls of this one
        for name, value in ((TOPIC_PUT_NUMS, puts.count), (TOPIC_PUT_SIZE, puts.size)):
            item = self._item(name, puts.topic)
            item.value += value
            item.times += puts.times
        puts.count = puts.times = puts.size = 0

    def _item(self, name: str, key: str) -> StatsItem:
        items = self._items.setdefault(name, {})
        item = items.get(key)
        if item is None:
            item = items[key] = StatsItem()
        return item

    def _drop(self, names: set[str], matches: Callable[[str], bool]) -> None:
        for name in names:
            items = self._items.get(name, {})
            for key in [key for key in items if matches(key)]:
                del items[key]

    def _own_totals(self) -> tuple[int, int]:
        unfolded = sum([puts.count for puts in self._puts.values()])  # folding all would be ten times the work
        return self._broker_put.value + unfolded, self.broker_get.value


def _slices(values: Iterable[_Value]) -> Iterator[list[_Value]]:
    """The values as they are now, ITEMS_A_SLICE at a time."""
    kept = list(values)
    for start in range(0, len(kept), ITEMS_A_SLICE):
        yield kept[start : start + ITEMS_A_SLICE]
