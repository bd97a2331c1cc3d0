"""The JSON bodies that brokers, name servers and tools exchange (those of clients, and how they are made: bodies.py).

They stand apart because making a dataclass takes time, and a program that only sends or receives needs none of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, SubscriptionData
from gantrymq.remoting.json_body import (
    Body,
    json_field,
    key_text,
    list_of,
    long_value,
    map_of,
    queue_keys,
    table_value,
    texts,
)

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
class TopicList(Body):
    """Topic names; broker_addr only in the answer to 304."""

    topic_list: list[str] = field(default_factory=list)
    broker_addr: str | None = None


@dataclass
class KVTable(Body):
    """A table of text: bodies of 28, 103 (answer) and 219."""

    table: dict[str, str] = field(default_factory=dict)


# -- groups and connections --------------------------------------------------------------------------------------------


@dataclass
class SubscriptionGroupConfig(Body):
    """A consumer group's settings on one broker.

    consume_message_orderly: as brokers 5 have it: whether consumers behind a proxy get messages in order. None: it
    was never said, and GantryMQ's proxy goes by the topic's type.
    """

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    consume_message_orderly: bool | None = None


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

    @property
    def is_broadcasting(self) -> bool:
        """Whether members are here and each keeps its own offsets. message_model is of the last heartbeat only."""
        models = {party.message_model for party in self.disagreement or ()} or {self.message_model}
        return bool(self.connection_set) and models == {"BROADCASTING"}


@dataclass
class ProducerConnection(Body):
    """Body of 204."""

    connection_set: list[Connection] = json_field(read=list_of(Connection), default=list)


@dataclass
class GroupList(Body):
    """Body of 300."""

    group_list: list[str] = field(default_factory=list)


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
    does not know it. done_ahead: messages behind consumer_offset that the group is done with, since one that pops
    acknowledges in any order; oldest_lease_ms: how long ago the message that is longest in flight was delivered, 0 if
    none is. Only GantryMQ brokers tell these two.
    """

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    lag_ms: int = 0
    pull_offset: int = 0
    done_ahead: int = 0
    oldest_lease_ms: int = 0

    @property
    def done(self) -> int:
        """How many messages of the queue the group is done with."""
        return max(self.consumer_offset, 0) + self.done_ahead

    @property
    def lag(self) -> int:
        """Messages not consumed yet: ready and in flight."""
        return max(self.broker_offset - self.done, 0)

    @property
    def in_flight(self) -> int:
        """Messages that members have and did not acknowledge; what members that pull hold, brokers don't know."""
        return max(self.pull_offset - self.done, 0)


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
class ConsumerOffsetTable(Body):
    """Body of 43, content of consumerOffset.json: "topic@group" to queue id to the next offset to consume."""

    offset_table: dict[str, dict[int, int]] = json_field(
        read=lambda table: {
            key_text(key): {long_value(queue): long_value(offset) for queue, offset in table_value(queues).items()}
            for key, queues in table_value(table).items()
        },
        default=dict,
    )


def offsets_of_group(body: bytes, group: str) -> dict[str, dict[int, int]]:
    """Of the body of 43 only one group's: topic to queue id to offset. Raises BodyError; others are not looked at."""
    table, end = fastjson.loads(body), f"@{group}"
    offsets = table.get("offsetTable") if isinstance(table, Mapping) else None
    own = {key: queues for key, queues in (offsets or {}).items() if key_text(key).endswith(end)}
    found = ConsumerOffsetTable.from_dict({"offsetTable": own}).offset_table
    return {key.removesuffix(end): queues for key, queues in found.items()}


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
