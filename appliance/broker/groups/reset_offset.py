"""Where a consumer group goes on after a reset of its offsets: decided here, carried out by its consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from appliance.errors import BrokerError
from appliance.remoting.header_fields import FieldError, int_field, long_field
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import ResponseCode

if TYPE_CHECKING:
    from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
    from appliance.broker.topics.topic_config import TopicConfigManager
    from store.message_store import MessageStore

TO_THE_END = -1  # in place of a time
ALL_QUEUES = -1
BY_TIME = -1


class ResetOrder(NamedTuple):
    """Fields of 222. queue_id and offset are 5.x's: one queue only, and one exact offset instead of a time."""

    topic: str
    group: str
    timestamp_ms: int
    is_forced: bool
    queue_id: int = ALL_QUEUES
    offset: int = BY_TIME

    @classmethod
    def of(cls, fields: dict[str, str]) -> ResetOrder:
        """Read the ext fields. Raises KeyError or FieldError for what is missing or no number."""
        return cls(
            fields["topic"],
            fields["group"],
            long_field(fields, "timestamp"),
            fields.get("isForce", "").lower() == "true",
            int_field(fields, "queueId", ALL_QUEUES),
            long_field(fields, "offset", BY_TIME),
        )


class OffsetReset:
    """Works out the next offsets of orders."""

    def __init__(
        self, broker_name: str, topics: TopicConfigManager, offsets: ConsumerOffsetManager, store: MessageStore
    ) -> None:
        self._broker_name = broker_name
        self._topics = topics
        self._offsets = offsets
        self._store = store

    def targets(self, order: ResetOrder) -> dict[MessageQueue, int]:
        """The next offset of every queue that the order is about. Raises BrokerError for an order that can't be met."""
        config = self._topics.get(order.topic)
        if config is None:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR,
                f"[reset-offset] reset offset failed, no topic in this broker. topic={order.topic}",
            )
        return {
            MessageQueue(order.topic, self._broker_name, queue_id): self._target(order, queue_id)
            for queue_id in _queue_ids(order, config)
        }

    def _target(self, order: ResetOrder, queue_id: int) -> int:
        """By exact offset, else by time. Without force never forward."""
        consumed = self._offsets.query(order.group, order.topic, queue_id)
        if consumed < 0:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{order.group}> not exist")
        if order.offset != BY_TIME:
            return self._checked_offset(order, queue_id)
        if order.timestamp_ms == TO_THE_END:
            wanted = self._store.shown_max_offset(order.topic, queue_id)
        else:
            wanted = self._store.offset_by_time(order.topic, queue_id, order.timestamp_ms)
        wanted = max(wanted, 0)
        return wanted if order.is_forced or wanted < consumed else consumed

    def _checked_offset(self, order: ResetOrder, queue_id: int) -> int:
        low, high = self._store.min_offset(order.topic, queue_id), self._store.max_offset(order.topic, queue_id)
        if not low <= order.offset <= high:
            raise FieldError(f"offset {order.offset} is outside of queue {queue_id}: {low} to {high}")
        return order.offset


def _queue_ids(order: ResetOrder, config: TopicConfig) -> range:
    if order.queue_id == ALL_QUEUES:
        if order.offset != BY_TIME:
            raise FieldError(f"offset {order.offset} is given without its queueId")
        return range(config.write_queue_nums)
    if not 0 <= order.queue_id < config.write_queue_nums:
        raise FieldError(
            f"queueId[{order.queue_id}] is illegal, topic:[{order.topic}] "
            f"topicConfig.writeQueueNums:[{config.write_queue_nums}]",
        )
    return range(order.queue_id, order.queue_id + 1)
