"""A broker's figures: rocketmq_broker_… and rocketmq_brokeruntime_… as rocketmq-exporter calls them, gantry_… beside.

The first two come from the table of request 28, which each RocketMQ broker has. A broker that is silent has no figures
but `gantry_broker_up 0`: a value of a minute ago is no value of now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dashboard.exporter.exposition import Family
from dashboard.status.board import BrokerFacts, BrokerState

# name after "rocketmq_brokeruntime_", key of request 28, which of the numbers in it
_RUNTIME = (
    ("msg_put_total_today_now", "msgPutTotalTodayNow", 0),
    ("msg_gettotal_today_now", "msgGetTotalTodayNow", 0),
    ("msg_puttotal_todaymorning", "msgPutTotalTodayMorning", 0),
    ("msg_gettotal_todaymorning", "msgGetTotalTodayMorning", 0),
    ("dispatch_behind_bytes", "dispatchBehindBytes", 0),
    ("put_message_size_total", "putMessageSizeTotal", 0),
    ("put_message_average_size", "putMessageAverageSize", 0),
    ("putmessage_times_total", "putMessageTimesTotal", 0),
    ("putmessage_entire_time_max", "putMessageEntireTimeMax", 0),
    ("getmessage_entire_time_max", "getMessageEntireTimeMax", 0),
    ("earliest_message_timestamp", "earliestMessageTimeStamp", 0),
    ("commitlog_disk_ratio", "commitLogDiskRatio", 0),
    ("consumequeue_disk_ratio", "consumeQueueDiskRatio", 0),
    ("commitlog_minoffset", "commitLogMinOffset", 0),
    ("commitlog_maxoffset", "commitLogMaxOffset", 0),
    *((f"put_tps{window}", "putTps", place) for place, window in enumerate((10, 60, 600))),
    *((f"gettotal_tps{window}", "getTotalTps", place) for place, window in enumerate((10, 60, 600))),
    *((f"getfound_tps{window}", "getFoundTps", place) for place, window in enumerate((10, 60, 600))),
    *((f"getmiss_tps{window}", "getMissTps", place) for place, window in enumerate((10, 60, 600))),
    *((f"gettransfered_tps{window}", "getTransferedTps", place) for place, window in enumerate((10, 60, 600))),
    ("put_latency_99", "putLatency99", 0),
    ("put_latency_999", "putLatency999", 0),
    ("send_threadpool_queue_size", "sendThreadPoolQueueSize", 0),
    ("send_threadpoolqueue_capacity", "sendThreadPoolQueueCapacity", 0),
    ("send_threadpoolqueue_headwait_timemills", "sendThreadPoolQueueHeadWaitTimeMills", 0),
    ("pull_threadpoolqueue_size", "pullThreadPoolQueueSize", 0),
    ("pull_threadpoolqueue_capacity", "pullThreadPoolQueueCapacity", 0),
    ("pull_threadpoolqueue_headwait_timemills", "pullThreadPoolQueueHeadWaitTimeMills", 0),
    ("query_threadpoolqueue_size", "queryThreadPoolQueueSize", 0),
    ("query_threadpool_queue_capacity", "queryThreadPoolQueueCapacity", 0),
    ("query_threadpoolqueue_headwait_timemills", "queryThreadPoolQueueHeadWaitTimeMills", 0),
)
_CAPACITY = re.compile(r"(Total|Free) : ([\d.]+) ([KMGTP]?)i?B")  # the exporter gives these two in bytes, too
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def broker_families(brokers: Iterable[BrokerState]) -> Iterator[Family]:
    """The families of all brokers, in their order on the page."""
    states = tuple(brokers)
    up = Family("gantry_broker_up", "1: the broker answered at the last look")
    for state in states:
        role = "slave" if state.is_slave else "master"
        up.add(float(state.is_answering), broker=state.broker_name, brokerIP=state.address, role=role)
    yield up
    answering = [state.facts for state in states if state.is_answering and state.facts is not None]
    yield from _rates(answering)
    yield from _runtime(answering)
    yield from _own(answering)


def _rates(brokers: Iterable[BrokerFacts]) -> Iterator[Family]:
    puts = Family("rocketmq_broker_tps", "Messages a second that the broker stores")
    gets = Family("rocketmq_broker_qps", "Messages a second that the broker hands out")
    for facts in brokers:
        labels = {"cluster": facts.cluster, "brokerIP": facts.address, "broker": facts.name}
        puts.add(facts.in_rate, **labels)
        gets.add(facts.out_rate, **labels)
    return iter((puts, gets))


def _runtime(brokers: Iterable[BrokerFacts]) -> Iterator[Family]:
    labelled = [(facts.told, _runtime_labels(facts)) for facts in brokers]
    for name, key, place in _RUNTIME:
        family = Family(f"rocketmq_brokeruntime_{name}", f"{key} of the broker's runtime information")
        for told, labels in labelled:
            family.add(_number(told.get(key, ""), place), **labels)
        yield family
    for name in ("Total", "Free"):
        family = Family(
            f"rocketmq_brokeruntime_commitlogdir_capacity_{name.lower()}", f"{name} bytes of the log's disk"
        )
        for told, labels in labelled:
            family.add(_capacity(told.get("commitLogDirCapacity", ""), name), **labels)
        yield family


def _runtime_labels(facts: BrokerFacts) -> dict[str, str]:
    return {
        "cluster": facts.cluster,
        "brokerIP": facts.address,
        "brokerHost": facts.name,
        "des": facts.version,
        "boottime": facts.told.get("bootTimestamp", ""),
        "broker_version": facts.told.get("brokerVersion", ""),
    }


def _number(text: str, place: int) -> float | None:
    parts = text.split()
    try:
        return float(parts[place])
    except (IndexError, ValueError):  # a broker that does not say it, or says it in words
        return None


def _capacity(text: str, name: str) -> float | None:
    found = {kind: float(number) * 1024 ** _POWERS[unit] for kind, number, unit in _CAPACITY.findall(text)}
    return found.get(name)


def _own(brokers: list[BrokerFacts]) -> Iterator[Family]:
    plain = (
        ("gantry_disk_seconds_to_full", "Until writes are refused, if the disk goes on filling up as now", "gauge",
         lambda facts: facts.disk_full_in_s),
        ("gantry_connections", "Open connections of clients", "gauge", lambda facts: facts.services.connections),
        ("gantry_held_pulls", "Pulls that wait for messages", "gauge", lambda facts: facts.services.held_pulls),
        ("gantry_transactions_pending", "Half messages that wait for their end", "gauge",
         lambda facts: facts.services.transactions_pending),
        ("gantry_timers_pending", "Messages that wait for their time", "gauge",
         lambda facts: facts.services.timers_pending),
        ("gantry_timer_behind_milliseconds", "How late timed messages are", "gauge",
         lambda facts: facts.services.timer_behind_ms),
        ("gantry_subscription_disagreements", "Groups whose members subscribe to different things", "gauge",
         lambda facts: facts.services.disagreements),
        ("gantry_messages_damaged_total", "Messages found damaged on the broker's disk since its start", "counter",
         lambda facts: facts.services.messages_damaged),
        ("gantry_pop_waiting", "Requests of POP consumers that wait for messages", "gauge",
         lambda facts: facts.services.pop_waiting),
        ("gantry_pop_redelivered_total", "Messages delivered again (POP) since the broker's start", "counter",
         lambda facts: facts.services.pop_redelivered_total),
        ("gantry_pop_dead_letters_total", "Messages that used up their retries (POP) since the broker's start",
         "counter", lambda facts: facts.services.pop_dead_letters),
        ("gantry_settings_refused_total", "Requests for settings that no request may change", "counter",
         lambda facts: facts.services.settings_refused),
    )  # fmt: skip
    for name, help_, kind, value in plain:
        family = Family(name, help_, kind)
        for facts in brokers:
            family.add(value(facts), broker=facts.name)
        yield family
    redelivered = Family("gantry_group_redelivered_total", "Messages delivered again (POP), of the groups with most",
                         "counter")  # fmt: skip
    for facts in brokers:
        for group, count in facts.services.pop_redelivered:
            redelivered.add(count, broker=facts.name, group=group)
    yield redelivered
    rejected = Family("gantry_lane_rejected_total", "Requests that a full lane refused", "counter")
    expired = Family("gantry_lane_expired_total", "Requests that waited too long in a lane", "counter")
    for facts in brokers:
        for lane in facts.services.lanes:
            rejected.add(lane.rejected, broker=facts.name, lane=lane.name)
            expired.add(lane.expired, broker=facts.name, lane=lane.name)
    behind = Family("gantry_slave_behind_bytes", "Bytes of the log that a slave still lacks")
    in_sync = Family("gantry_slave_in_sync", "1: the slave has what its master has")
    for facts in brokers:
        for slave in facts.services.slaves:
            behind.add(slave.behind_bytes, broker=facts.name, slave=slave.address)
            in_sync.add(float(slave.in_sync), broker=facts.name, slave=slave.address)
    yield from (rejected, expired, behind, in_sync)
