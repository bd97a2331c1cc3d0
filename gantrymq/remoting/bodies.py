"""The JSON bodies of the protocol, to the field (Apache RocketMQ 4.9.4's bean names in camelCase).

Each body is a dataclass that reads and writes itself (json_body.py) and fills what is missing with RocketMQ's defaults.
Timestamps are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.json_body import (
    Body,
    int_keys,
    json_field,
    key_text,
    list_of,
    long_value,
    longs,
    map_of,
    queue_keys,
    queue_list,
    table_value,
    text_value,
    texts,
)

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1

SINGLE_TAG, MULTI_TAG = "SINGLE_TAG", "MULTI_TAG"  # of a topic's messages


# -- topics and routes ------------------------------------------------------------------------------------------------


@dataclass
class DataVersion(Body):
    """Which state of a table this is. Equal means same timestamp and counter."""

    timestamp: int = 0
    counter: int = 0

    def bump(self, now_ms: int) -> None:
        self.timestamp = now_ms
        self.counter += 1


@dataclass
class TopicConfig(Body):
    """A topic on one broker. perm: bits PERM_READ, PERM_WRITE, PERM_INHERIT. attributes: see
    gantrymq/message/topic_attributes.py; in a request "+name" sets one and "-name" removes it.
    """

    topic_name: str = ""
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] | None = json_field(read=texts, default=None)


@dataclass
class TopicConfigSerializeWrapper(Body):
    """All topics of a broker: body of 21, part of 103, content of topics.json."""

    topic_config_table: dict[str, TopicConfig] = json_field(read=map_of(TopicConfig), default=dict)
    data_version: DataVersion = json_field(read=DataVersion.from_dict, default=DataVersion)


@dataclass
class RegisterBrokerBody(Body):
    """Body of 103, uncompressed form."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper = json_field(
        read=TopicConfigSerializeWrapper.from_dict, default=TopicConfigSerializeWrapper
    )
    filter_server_list: list[str] = field(default_factory=list)


@dataclass
class QueueData(Body):
    """How many queues a topic has on one broker."""

    broker_name: str = ""
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


@dataclass
class BrokerData(Body):
    """The addresses of one broker name: id 0 is the master."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[int, str] = json_field(read=int_keys, default=dict)

    @property
    def master_address(self) -> str | None:
        return self.broker_addrs.get(0)

    def any_address(self) -> str | None:
        """The master's address, else that of the lowest slave id, else None."""
        return self.broker_addrs[min(self.broker_addrs)] if self.broker_addrs else None


@dataclass
class TopicRouteData(Body):
    """Body of 105: where a topic lives."""

    broker_datas: list[BrokerData] = json_field(read=list_of(BrokerData), default=list)
    queue_datas: list[QueueData] = json_field(read=list_of(QueueData), default=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None


@dataclass
class ClusterInfo(Body):
    """Body of 106. Both tables are present even when empty."""

    broker_addr_table: dict[str, BrokerData] = json_field(read=map_of(BrokerData), default=dict)
    cluster_addr_table: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class TopicList(Body):
    """Topic names; broker_addr only in the answer to 304."""

    topic_list: list[str] = field(default_factory=list)
    broker_addr: str | None = None


@dataclass
class KVTable(Body):
    """A table of text: bodies of 28, 103 (answer) and 219."""

    table: dict[str, str] = field(default_factory=dict)


# -- clients ----------------------------------------------------------------------------------------------------------


@dataclass
class SubscriptionData(Body):
    """What a consumer group wants of one topic. code_set holds the Java hash codes of tags_set."""

    TAG: ClassVar[str] = "TAG"
    SUB_ALL: ClassVar[str] = "*"

    topic: str = json_field(read=text_value, default="")
    sub_string: str = json_field(read=text_value, default=SUB_ALL)
    tags_set: list[str] = field(default_factory=list)
    code_set: list[int] = json_field(read=longs, default=list)
    sub_version: int = json_field(read=long_value, default=0)
    expression_type: str = json_field(read=text_value, default=TAG)
    class_filter_mode: bool = False


@dataclass
class ConsumerData(Body):
    """One consumer group of a client."""

    group_name: str = ""
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[SubscriptionData] = json_field(read=list_of(SubscriptionData), default=list)
    unit_mode: bool = False


@dataclass
class ProducerData(Body):
    """One producer group of a client."""

    group_name: str = ""


@dataclass
class HeartbeatData(Body):
    """Body of 34: everything one client is."""

    client_id: str = json_field(name="clientID", default="")
    producer_data_set: list[ProducerData] = json_field(read=list_of(ProducerData), default=list)
    consumer_data_set: list[ConsumerData] = json_field(read=list_of(ConsumerData), default=list)


@dataclass
class CheckClientRequestBody(Body):
    """Body of 46."""

    client_id: str = ""
    group: str = ""
    subscription_data: SubscriptionData = json_field(read=SubscriptionData.from_dict, default=SubscriptionData)


@dataclass
class SubscriptionGroupConfig(Body):
    """A consumer group's settings on one broker."""

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True


@dataclass
class SubscriptionGroupWrapper(Body):
    """Body of 201, content of subscriptionGroup.json."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = json_field(
        read=map_of(SubscriptionGroupConfig), default=dict
    )
    data_version: DataVersion = json_field(read=DataVersion.from_dict, default=DataVersion)


@dataclass
class Connection(Body):
    """A client's connection as the tools show it. client_addr: "ip:port"."""

    client_id: str = ""
    client_addr: str = ""
    language: str = "JAVA"
    version: int = 0


@dataclass
class SubscriptionParty(Body):
    """Members of a consumer group with the same subscription: topics to expressions."""

    client_ids: list[str] = field(default_factory=list)
    message_model: str = "CLUSTERING"
    subscriptions: dict[str, str] = field(default_factory=dict)


@dataclass
class ConsumerConnection(Body):
    """Body of 203. disagreement: the subscriptions of members that subscribe differently (GantryMQ brokers only)."""

    connection_set: list[Connection] = json_field(read=list_of(Connection), default=list)
    subscription_table: dict[str, SubscriptionData] = json_field(read=map_of(SubscriptionData), default=dict)
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    disagreement: list[SubscriptionParty] | None = json_field(read=list_of(SubscriptionParty), default=None)


@dataclass
class ProducerConnection(Body):
    """Body of 204."""

    connection_set: list[Connection] = json_field(read=list_of(Connection), default=list)


@dataclass
class ConsumerIdList(Body):
    """Body of 38 (GetConsumerListByGroupResponseBody)."""

    consumer_id_list: list[str] = field(default_factory=list)


@dataclass
class GroupList(Body):
    """Body of 300."""

    group_list: list[str] = field(default_factory=list)


# -- ordered consumption ----------------------------------------------------------------------------------------------


@dataclass
class LockBatchRequest(Body):
    """Body of 41 and 42."""

    consumer_group: str = ""
    client_id: str = ""
    mq_set: list[MessageQueue] = json_field(read=queue_list, default=list)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"mqSet": [_queue_members(queue) for queue in self.mq_set]}


@dataclass
class LockBatchResponse(Body):
    """Answer to 41: the queues now held."""

    lock_ok_mq_set: list[MessageQueue] = json_field(name="lockOKMQSet", read=queue_list, default=list)

    def to_dict(self) -> dict[str, Any]:
        return {"lockOKMQSet": [_queue_members(queue) for queue in self.lock_ok_mq_set]}


def _queue_members(queue: MessageQueue) -> dict[str, Any]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


# -- offsets and statistics -------------------------------------------------------------------------------------------


@dataclass
class TopicOffset(Body):
    """One queue's extent; last_update_timestamp is 0 when it is empty."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@dataclass
class TopicStatsTable(Body):
    """Body of 202, one entry per write queue."""

    offset_table: dict[MessageQueue, TopicOffset] = json_field(read=queue_keys(TopicOffset.from_dict), default=dict)


@dataclass
class OffsetWrapper(Body):
    """A group's place in one queue; last_timestamp: store time of the last consumed message, 0 if none.

    lag_ms: age of the oldest message not consumed yet, 0 if none; only GantryMQ brokers tell it, and Java ignores it.
    pull_offset: how far the group has pulled, which RocketMQ 5 tells and its tools count as "in flight"; RocketMQ 4.9
    does not know it.
    """

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    lag_ms: int = 0
    pull_offset: int = 0


@dataclass
class ConsumeStats(Body):
    """Body of 208, one entry per read queue."""

    offset_table: dict[MessageQueue, OffsetWrapper] = json_field(read=queue_keys(OffsetWrapper.from_dict), default=dict)
    consume_tps: float = 0.0

    @property
    def lag_ms(self) -> int:
        """How far the group is behind in time: the greatest lag of any queue."""
        return max((place.lag_ms for place in self.offset_table.values()), default=0)


@dataclass
class ResetOffsetBody(Body):
    """Answer to 222 and body of the pushed 220: the new offset of each queue."""

    offset_table: dict[MessageQueue, int] = json_field(read=queue_keys(long_value), default=dict)


@dataclass
class ConsumerOffsetTable(Body):
    """Body of 43, content of consumerOffset.json: "topic@group" to queue id to the next offset to consume."""

    offset_table: dict[str, dict[int, int]] = json_field(
        read=lambda table: {
            key_text(key): {long_value(queue): long_value(offset) for queue, offset in table_value(queues).items()}
            for key, queues in table_value(table).items()
        },
        default=dict,
    )


@dataclass
class DelayOffsetTable(Body):
    """Body of 45, content of delayOffset.json: delay level to the next index in its queue."""

    offset_table: dict[int, int] = json_field(
        read=lambda table: {long_value(level): long_value(offset) for level, offset in table_value(table).items()},
        default=dict,
    )


@dataclass
class SlaveDifference(Body):
    """How far one connected slave is. in_sync: sends of a SYNC_MASTER wait for it. bytes_per_second: what it is fed.

    behind_messages: about; -1 when the broker does not know.
    """

    address: str = ""
    behind_bytes: int = 0
    behind_seconds: float = 0.0
    in_sync: bool = False
    bytes_per_second: int = 0
    behind_messages: int = -1


@dataclass
class SlaveDifferences(Body):
    """All slaves of a master: GantryMQ's own, a text in the table of 28."""

    slaves: list[SlaveDifference] = json_field(read=list_of(SlaveDifference), default=list)

    @classmethod
    def of_runtime_info(cls, info: Mapping[str, str]) -> list[SlaveDifference]:
        """Return the slaves that a broker's table tells of; none if it is not a GantryMQ broker's, or can't be read."""
        try:
            return cls.from_json(info.get("slaveDifferences", "{}").encode()).slaves
        except BodyError:
            return []


@dataclass
class StatsItem(Body):
    """A counter over one window. tps per second; avgpt: mean value per call."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@dataclass
class BrokerStatsData(Body):
    """Body of 315."""

    stats_minute: StatsItem = json_field(read=StatsItem.from_dict, default=StatsItem)
    stats_hour: StatsItem = json_field(read=StatsItem.from_dict, default=StatsItem)
    stats_day: StatsItem = json_field(read=StatsItem.from_dict, default=StatsItem)
