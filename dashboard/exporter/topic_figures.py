"""The figures of topics and consumer groups, under rocketmq-exporter's names, as they were counted last.

A producer's or consumer's rate is the growth of the queues' ends, or of the group's places, as a mean of about the last
minute. Many topics are read in turn (`dashboard/live/stored_count.py`): with thousands it is a mean over some minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dashboard.cluster.group_values import GroupPlace
from dashboard.cluster.values import TopicMetrics
from dashboard.exporter.exposition import Family
from dashboard.status.board import WatchedGroup
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX


def topic_families(topics: Mapping[str, TopicMetrics], clusters: Mapping[str, str]) -> Iterator[Family]:
    """clusters: the cluster of each broker that answers; what others hold is left out."""
    tps = Family("rocketmq_producer_tps", "Messages a second that come into the topic")
    offset = Family("rocketmq_producer_offset", "Messages that ever came into the topic")
    retry = Family("rocketmq_topic_retry_offset", "Messages that ever came into the group's retry topic")
    dead = Family("rocketmq_topic_dlq_offset", "Messages that ever became dead letters of the group")
    stored = Family("gantry_topic_messages", "Messages of the topic that can be read now")
    for topic, value in topics.items():
        for extent in value.extents:
            if extent.broker_name not in clusters:
                continue
            labels = {"cluster": clusters[extent.broker_name], "broker": extent.broker_name}
            if topic.startswith(DLQ_PREFIX):
                dead.add(extent.put_total, **labels, group=topic.removeprefix(DLQ_PREFIX))
            elif topic.startswith(RETRY_PREFIX):
                retry.add(extent.put_total, **labels, topic=topic)
            else:
                tps.add(extent.in_rate, **labels, topic=topic)
                offset.add(extent.put_total, **labels, topic=topic)
                stored.add(extent.stored, **labels, topic=topic)
    return iter((tps, offset, retry, dead, stored))


def group_families(
    groups: Iterable[WatchedGroup], dead_letters: Mapping[str, int], clusters: Mapping[str, str]
) -> Iterator[Family]:
    """The groups' families. dead_letters: of the groups that have some."""
    diff = Family("rocketmq_group_diff", "Messages that the group has not consumed yet, by topic")
    retry = Family("rocketmq_group_retrydiff", "Messages that wait to be consumed again")
    dead = Family("rocketmq_group_dlqdiff", "Dead letters of the group")
    count = Family("rocketmq_group_count", "Connected members of the group")
    seconds = Family("gantry_group_lag_seconds", "Age of the oldest message that the group has not consumed")
    oldest = Family(
        "gantry_group_oldest_lease_seconds", "Since the delivery of the message that is longest in flight; 0: none is"
    )
    by_broker = _ByBroker()
    for group in groups:
        members = "" if group.members is None else str(group.members)
        count.add(group.members, group=group.name)
        seconds.add(None if group.lag_ms is None else group.lag_ms / 1000, group=group.name)
        oldest.add(None if group.lag is None else group.oldest_lease_ms / 1000, group=group.name)
        dead.add(dead_letters.get(group.name, 0), group=group.name, topic=DLQ_PREFIX + group.name,
                 countOfOnlineConsumers=members, msgModel="")  # fmt: skip
        lags: dict[str, int] = {}
        for place in group.places:
            if place.broker_name in clusters:
                lags[place.topic] = lags.get(place.topic, 0) + place.lag
                by_broker.add(group.name, place, clusters[place.broker_name])
        for topic, lag in lags.items():
            family = retry if topic.startswith(RETRY_PREFIX) else diff
            family.add(lag, group=group.name, topic=topic, countOfOnlineConsumers=members, msgModel="")
    yield from (diff, retry, dead, count, seconds, oldest, *by_broker.families)


class _ByBroker:
    """The families with the labels cluster, broker, topic and group."""

    def __init__(self) -> None:
        self._tps = Family("rocketmq_consumer_tps", "Messages a second that the group consumes")
        self._offset = Family("rocketmq_consumer_offset", "How far the group is, over all queues")
        self._lag = Family("rocketmq_message_accumulation", "Messages that the group has not consumed yet, by broker")
        self._latency = Family(
            "rocketmq_group_get_latency_by_storetime", "Milliseconds since the oldest such message was stored"
        )
        self._in_flight = Family("gantry_group_in_flight", "Messages that members have and did not acknowledge (POP)")
        self.families = (self._tps, self._offset, self._lag, self._latency, self._in_flight)

    def add(self, group: str, place: GroupPlace, cluster: str) -> None:
        labels = {"cluster": cluster, "broker": place.broker_name, "topic": place.topic, "group": group}
        self._tps.add(place.consume_rate, **labels)
        self._offset.add(place.consumer_offset, **labels)
        self._lag.add(place.lag, **labels)
        self._in_flight.add(place.in_flight, **labels)
        self._latency.add(place.lag_ms, **labels)
