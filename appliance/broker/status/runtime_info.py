"""What GET_BROKER_RUNTIME_INFO (28) tells: RocketMQ's keys with this broker's values, all as text.

Tools and the dashboard split the rates at spaces and parse every part, so all three windows always have a number; a
window that is not full yet counts as 0.0. Our own keys are EndTransactionQueueHeadWaitTimeMills, the marks of the disk
in force (disk…MarkRatio) and the forecast: diskGrowth…, diskNext…, diskSeconds….
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from appliance.broker.access.access_control import access_metrics
from appliance.broker.status.fast_path import fast_path_figures
from appliance.broker.status.memory import memory_figures
from appliance.broker.status.metrics import service_metrics
from appliance.settings.ignored import explain_ignored
from gantrymq.message.topics import SCHEDULE_TOPIC
from gantrymq.remoting.codes import PROTOCOL_VERSION, PROTOCOL_VERSION_TEXT
from store.upkeep.disk_space import disk_space

if TYPE_CHECKING:  # rooms that need the counters of this one
    from appliance.broker.controller import BrokerController

# lane -> the keys of its size, capacity and head wait; RocketMQ's names for the last one are irregular
_LANE_KEYS = {
    "send": ("sendThreadPoolQueueSize", "sendThreadPoolQueueCapacity", "sendThreadPoolQueueHeadWaitTimeMills"),
    "pull": ("pullThreadPoolQueueSize", "pullThreadPoolQueueCapacity", "pullThreadPoolQueueHeadWaitTimeMills"),
    "query": ("queryThreadPoolQueueSize", "queryThreadPoolQueueCapacity", "queryThreadPoolQueueHeadWaitTimeMills"),
    "transaction": (
        "EndTransactionQueueSize",
        "EndTransactionThreadPoolQueueCapacity",
        "EndTransactionQueueHeadWaitTimeMills",
    ),
}
_BINARY_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
GROUPS_NAMED_MAX = 20
_NO_TRANSIENT_POOL = "2147483647"  # what RocketMQ says while its off-heap pool is off; there is none here


def runtime_info(parts: BrokerController, *, now_s: float | None = None) -> dict[str, str]:
    """The whole table. Looks at disks, so it costs some system calls; not for a hot path."""
    now = time.time() if now_s is None else now_s
    return {
        "brokerVersionDesc": PROTOCOL_VERSION_TEXT,
        "brokerVersion": str(PROTOCOL_VERSION),
        **_uptime(parts, now),
        **_puts_and_gets(parts),
        **_messages_by_day(parts),
        **_extent(parts),
        **_disks(parts),
        **memory_figures(parts),
        **_lanes(parts),
        **_schedule(parts),
        **_timer(parts),
        **_transactions(parts),
        **_consumer_groups(parts),
        **service_metrics(parts),
        **access_metrics(parts.access, parts.accounts),
        # our own, as the log says it at the start; tools expect a text in every row
        "fastPath": str(parts.fast_path_status),  # on, or off with the reason
        **fast_path_figures([server.fast_path for server in (parts.server, parts.vip_server) if server.fast_path]),
        "settingsIgnored": explain_ignored(parts.live_config.ignored) or "none",
        "startAcceptSendRequestTimeStamp": str(parts.config.start_accept_send_timestamp),
    }


def readable_bytes(count: int) -> str:
    """RocketMQ's way: 699 B, 1.5 KiB, 115.0 GiB."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_BINARY_UNITS))
    return f"{count / 1024**power:.1f} {_BINARY_UNITS[power - 1]}"


def _uptime(parts: BrokerController, now_s: float) -> dict[str, str]:
    boot_ms = parts.store.stats.boot_timestamp_ms
    minutes, seconds = divmod(max(int(now_s - boot_ms / 1000), 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return {
        "bootTimestamp": str(boot_ms),
        "runtime": f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]",
    }


def _puts_and_gets(parts: BrokerController) -> dict[str, str]:
    stats = parts.store.stats
    put, found, missed, transferred = (
        [rate or 0.0 for rate in stats.rates(column)] for column in (1, 2, 3, 4)
    )  # the columns of StoreStatsService.rates
    return stats.runtime_info() | {
        "putMessageTimesTotal": str(stats.put_times),
        "putTps": _rates(put),
        "getFoundTps": _rates(found),
        "getMissTps": _rates(missed),
        "getTransferedTps": _rates(transferred),
        "getTransferredTps": _rates(transferred),  # as RocketMQ 5 spells it: its exportMetrics fails without
        "getTotalTps": _rates([hit + miss for hit, miss in zip(found, missed, strict=True)]),
    }


def _rates(rates: list[float]) -> str:
    return " ".join(map(str, rates))


def _messages_by_day(parts: BrokerController) -> dict[str, str]:
    daily, (put_total, get_total) = parts.stats.daily, parts.stats.totals()
    return {
        "msgPutTotalYesterdayMorning": str(daily.put_yesterday_morning),
        "msgPutTotalTodayMorning": str(daily.put_today_morning),
        "msgPutTotalTodayNow": str(put_total),
        "msgGetTotalYesterdayMorning": str(daily.get_yesterday_morning),
        "msgGetTotalTodayMorning": str(daily.get_today_morning),
        "msgGetTotalTodayNow": str(get_total),
    }


def _extent(parts: BrokerController) -> dict[str, str]:
    store = parts.store
    return {
        "commitLogMinOffset": str(store.min_physical_offset),
        "commitLogMaxOffset": str(store.max_physical_offset),
        "dispatchBehindBytes": str(store.dispatch_behind_bytes),
        "earliestMessageTimeStamp": str(store.earliest_store_timestamp()),
        "remainHowManyDataToFlush": readable_bytes(max(store.max_physical_offset - store.flushed_offset, 0)),
        "remainTransientStoreBufferNumbs": _NO_TRANSIENT_POOL,  # this one has no fixed number of them
        "pageCacheLockTimeMills": "0",  # appends and this answer share one thread: none is ever under way here
    }


def _disks(parts: BrokerController) -> dict[str, str]:
    """How full the disks are. A store makes its folders with the first message: until then its root's disk counts."""
    store, config = parts.store, parts.store_config
    usage = shutil.disk_usage(config.root)  # the controller made it, for its tables
    root_ratio = disk_space(config.root).ratio
    log_ratios = {folder: ratio if ratio >= 0 else root_ratio for folder, ratio in store.health.disk_ratios().items()}
    queue_ratio = store.health.consume_queue_disk_ratio()
    return {
        "commitLogDiskRatio": str(min(log_ratios.values())),
        **{f"commitLogDiskRatio_{folder}": str(ratio) for folder, ratio in log_ratios.items()},
        "consumeQueueDiskRatio": str(queue_ratio if queue_ratio >= 0 else root_ratio),
        "diskCleanMarkRatio": str(config.clean_ratio),
        "diskForceMarkRatio": str(config.forcibly_ratio),
        "diskRefuseMarkRatio": str(config.warning_ratio),
        **_disk_forecast(parts),
        **_disk_shares(parts),
        **({"storeTrouble": trouble} if (trouble := parts.store.trouble()) else {}),
        "commitLogDirCapacity": f"Total : {readable_bytes(usage.total)}, Free : {readable_bytes(usage.free)}.",
    }


def _disk_forecast(parts: BrokerController) -> dict[str, str]:
    """Our own keys: how fast the disk fills up, and when it will be full. What is not known is left out."""
    forecast = parts.store.cleaner.forecast()
    values = {
        "diskGrowthBytesPerSecond": forecast.bytes_per_second,
        "diskNextMarkRatio": forecast.next_mark,
        "diskSecondsToNextMark": forecast.seconds_to_next_mark,
        "diskSecondsToFull": forecast.seconds_to_full,
        "diskSecondsToFullEarliest": forecast.earliest_full_s,
        "diskSecondsToFullLatest": forecast.latest_full_s,
    }
    return {key: str(round(value, 2)) for key, value in values.items() if value is not None}


def _disk_shares(parts: BrokerController) -> dict[str, str]:
    """Our own keys: whose bytes the disks hold, and whether others' are why messages are refused (soon)."""
    shares = parts.store.cleaner.shares
    if shares is None:
        return {}
    return {
        "diskStoreBytes": str(shares.store_bytes),
        "diskOthersBytes": str(shares.others_bytes),
        "diskFreeBytes": str(shares.free_bytes),
        "diskReservedBytes": str(shares.reserved_bytes),
        "diskDevice": " ".join(f"{os.major(device)}:{os.minor(device)}" for device in shares.devices),
        "diskFilledByOthers": str(parts.store.cleaner.others_fill).lower(),
    }


def _lanes(parts: BrokerController) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, (size_key, capacity_key, wait_key) in _LANE_KEYS.items():
        lane = parts.lanes.by_name[name]
        values |= {size_key: str(lane.size), capacity_key: str(lane.capacity), wait_key: str(lane.head_wait_ms())}
    return values


def _schedule(parts: BrokerController) -> dict[str, str]:
    """How far each delay level is: delivered up to, end of its queue."""
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{parts.store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level, offset in parts.schedule.offsets.items()
    }


def _transactions(parts: BrokerController) -> dict[str, str]:
    """Our own keys: half messages that wait for their end, and what became of the others since the start."""
    metrics = parts.transactions.metrics
    return {
        "transactionPending": str(parts.transactions.pending),
        "transactionPrepared": str(metrics.prepared),
        "transactionCommitted": str(metrics.committed),
        "transactionRolledBack": str(metrics.rolled_back),
        "transactionLeftOpen": str(metrics.left_open),
        "transactionRepeatedEnds": str(metrics.repeated),
        "transactionChecksSent": str(metrics.checks_sent),
        "transactionChecksWithoutProducer": str(metrics.unanswerable),
        "transactionDiscarded": str(metrics.discarded),
        "transactionCheckRounds": str(metrics.rounds),
        "transactionLastCheckTimestamp": str(metrics.last_round_ms),
        "transactionLastCheckMillis": str(metrics.last_round_took_ms),
    }


def _timer(parts: BrokerController) -> dict[str, str]:
    """Our own keys: topics created on other brokers; what waits for a time of its own, how late the delivery is."""
    timer = parts.timer
    return {
        "topicRetentionExpired": str(parts.topic_retention.expired),
        "topicsShared": str(parts.topic_sharing.shared),
        "topicsNotShared": str(parts.topic_sharing.failed),
        "timerPending": str(timer.pending),
        "timerNextDueMs": str(timer.next_due_ms or 0),
        "timerBehindMs": str(timer.behind_ms),
        "timerDelivered": str(timer.delivered),
        "timerRolled": str(parts.timer_rolling.rolled),
    }


def _consumer_groups(parts: BrokerController) -> dict[str, str]:
    """Our own keys: groups that need attention, and the names of the first GROUPS_NAMED_MAX if there are."""
    disagreeing, suspended = parts.consumers.agreement.disagreeing_groups, parts.groups.suspended
    names = {
        "subscriptionDisagreementGroups": ",".join(disagreeing[:GROUPS_NAMED_MAX]),
        "suspendedGroupNames": ",".join(suspended[:GROUPS_NAMED_MAX]),
    }
    return {key: value for key, value in names.items() if value} | {
        "subscriptionDisagreements": str(len(disagreeing)),
        "suspendedGroups": str(len(suspended)),
        "consumerBehindBytesMax": str(parts.slow_consumers.behind_bytes_max),
        "offsetMovedEventsLeftOut": str(parts.offset_moved.left_out),
    }
