"""The JSON bodies that producers and consumers need, to the field (Apache RocketMQ 4.9.4's bean names in camelCase).

Each body is a dataclass that reads and writes itself (json_body.py) and fills what is missing with RocketMQ's defaults.
Timestamps are milliseconds. All other bodies: admin_bodies.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gantrymq.message.model import MessageQueue
from gantrymq.remoting.json_body import (
    Body,
    int_keys,
    json_field,
    list_of,
    long_value,
    longs,
    map_of,
    queue_keys,
    queue_list,
    text_value,
)

PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1


# -- routes ------------------------------------------------------------------------------------------------------------


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
        """The master's address, None when only slaves are known."""
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
class ProxiedClient(Body):
    """A client of RocketMQ 5, as its proxy reports it. version: as the client writes it ("5.1.2").

    group: its consumer group, "" for a producer; wanted: topic to type and expression ("TAG *"); topics: published.
    """

    client_id: str = ""
    address: str = ""
    language: str = ""
    version: str = ""
    group: str = ""
    wanted: dict[str, str] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)


@dataclass
class ProxyReport(Body):
    """What a proxy tells brokers in its heartbeat: where it listens, and its clients of one account."""

    address: str = ""
    clients: list[ProxiedClient] = json_field(read=list_of(ProxiedClient), default=list)


@dataclass
class HeartbeatData(Body):
    """Body of 34: everything one client is. proxy: of GantryMQ's proxies only; RocketMQ's brokers ignore it."""

    client_id: str = json_field(name="clientID", default="")
    producer_data_set: list[ProducerData] = json_field(read=list_of(ProducerData), default=list)
    consumer_data_set: list[ConsumerData] = json_field(read=list_of(ConsumerData), default=list)
    proxy: ProxyReport | None = json_field(read=ProxyReport.from_dict, default=None)


@dataclass
class CheckClientRequestBody(Body):
    """Body of 46."""

    client_id: str = ""
    group: str = ""
    subscription_data: SubscriptionData = json_field(read=SubscriptionData.from_dict, default=SubscriptionData)


@dataclass
class ConsumerIdList(Body):
    """Body of 38 (GetConsumerListByGroupResponseBody)."""

    consumer_id_list: list[str] = field(default_factory=list)


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


@dataclass
class ResetOffsetBody(Body):
    """Answer to 222 and body of the pushed 220: the new offset of each queue."""

    offset_table: dict[MessageQueue, int] = json_field(read=queue_keys(long_value), default=dict)
