"""What was not acknowledged in time is stored again for the group; after its last attempt, as a dead letter.

The copy is stored first, and the lease ends once the disk has the copy: who is killed in between, or loses power,
delivers twice, and loses nothing. What can't be stored now (the disk is full, another broker is the master) is tried
again; a message that the log no longer has is done with. In order nothing is stored again: the queue is free for the
next pop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.lease_book import LeaseBook
from appliance.broker.pop.leases import Key, Lease
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import GantryError, RecordError
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.message.record import RecordFields, split_record
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.timeouts import wait_for_event
from store.base.errors import NotReadableNow
from store.base.results import HOPELESS, PutMessageStatus, StoreMessage
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

A_SLICE = 200  # leases that end before others have a turn: a few milliseconds
AGAIN_MS = 1000  # until the next try of what could not be stored
IDLE_S = 60.0
RETRY_QUEUES = 1  # of a new retry topic, as in RocketMQ 5


class PopServiceParts(Protocol):
    """What POP's own work uses of the broker."""

    config: BrokerConfig
    store: MessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    store_host: bytes
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    hold: PullRequestHold
    outer_api: BrokerOuterApi


class Redelivery:
    """One broker's. wake: a group's waiting pops, by topic and group, when a queue in order is free again."""

    def __init__(
        self,
        parts: PopServiceParts,
        book: LeaseBook,
        wake: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._parts = parts
        self._book = book
        self._wake = wake
        self._clock = clock
        self._earlier = asyncio.Event()
        self.dead = 0  # since the start, as the next
        self.gone = 0  # the log no longer had them
        book.on_due = self._earlier.set

    async def run(self) -> None:
        """Serve what is due until cancelled."""
        while True:
            self._earlier.clear()
            count = self.serve_due(int(self._clock() * 1000))
            if count >= A_SLICE:
                await asyncio.sleep(0)
                continue
            due_ms = self._book.next_due_ms()
            wait_s = IDLE_S if due_ms is None else min(max(due_ms / 1000 - self._clock(), 0.001), IDLE_S)
            await wait_for_event(self._earlier, wait_s)

    def serve_due(self, now_ms: int) -> int:
        """One slice of what is due; return how many leases were looked at."""
        count = 0
        for key, offset in self._book.take_due(now_ms, A_SLICE):
            count += 1
            queue = self._book.queue(key)
            if queue is None:
                continue  # the topic was deleted, or the offset reset
            if queue.is_ordered:
                self._wake(key.topic, key.group)
                continue
            lease = queue.leases[offset]
            if lease.is_over:
                continue
            if self.give_back(key, offset, lease.pop_ms):
                self.end_once_safe(key, offset, lease)
            else:
                self._book.move(key, offset, now_ms + AGAIN_MS)
        return count

    def end_once_safe(self, key: Key, offset: int, lease: Lease) -> None:
        """Its message is stored again: the lease is over now, and ends when the disk has all that is stored now."""
        lease.is_over = True
        self._end_when_flushed(key, offset, lease, self._parts.store.max_physical_offset)

    def _end_when_flushed(self, key: Key, offset: int, lease: Lease, end_offset: int) -> None:
        """A disk that is slow is waited for."""

        def note(is_flushed: bool) -> None:
            queue = self._book.queue(key)
            if queue is None or queue.leases.get(offset) is not lease:
                return  # the offset was set, or the topic deleted
            if is_flushed:
                self._book.end(key, [offset])
            else:
                loop = asyncio.get_running_loop()
                loop.call_later(AGAIN_MS / 1000, self._end_when_flushed, key, offset, lease, end_offset)

        self._parts.store.when_flushed(end_offset, note)

    def give_back(self, key: Key, offset: int, pop_ms: int, *, target: str = "", times: int = 1) -> bool:
        """Store a message again for its group. False: not now. target: in that topic; times: counted as so many."""
        try:
            record = self._parts.store.message_at(key.topic, key.queue_id, offset)
        except NotReadableNow:
            return False
        if record is None:
            self.gone += 1
            return True
        try:
            fields = split_record(record)
            target = target or self._target(key, fields)
            properties = self._properties(key, fields, pop_ms, is_dead=names.is_dlq_topic(target))
        except (RecordError, UnicodeDecodeError) as exc:
            return self._give_up(key, str(exc))
        except GantryError:  # no room for one more topic or offset
            return False
        message = StoreMessage.again(target, 0, record, fields, properties)
        message.store_host = self._parts.store_host
        message.reconsume_times = fields.reconsume_times + times
        status = self._parts.store.put_message(message, delay=False).status
        if status in HOPELESS:
            return self._give_up(key, status.name)
        if status != PutMessageStatus.PUT_OK:
            return False
        if names.is_dlq_topic(target):
            self.dead += 1
        else:
            self._book.redelivered[key.group] += times
        return True

    def _give_up(self, key: Key, why: str) -> bool:
        """It can never be stored again: better said than repeated, while the group's offset waits for it."""
        logger.error("not delivered again", extra={"event": "pop_not_redelivered", "why": why, **_facts(key)})
        self.gone += 1
        return True

    def _target(self, key: Key, fields: RecordFields) -> str:
        """The topic it goes to, which then exists. Raises MessageRejected for a name that no topic can have."""
        group = self._parts.groups.configs.get(key.group)
        attempts_max = group.retry_max_times if group is not None else SubscriptionGroupConfig().retry_max_times
        topics = self._parts.topics
        if fields.reconsume_times >= attempts_max:
            return topics.create_dlq_topic(key.group).topic_name
        if names.is_retry_topic(key.topic):
            return key.topic
        return self.retry_topic(key.group, key.topic)

    def retry_topic(self, group: str, topic: str) -> str:
        """The retry topic of the group's pops, which then exists; the group stands at its begin, if nowhere yet."""
        name = self._parts.topics.create_retry_topic(names.pop_retry_topic(group, topic), RETRY_QUEUES).topic_name
        self._book.begin(Key(group, name, 0))
        return name

    def _properties(self, key: Key, fields: RecordFields, pop_ms: int, *, is_dead: bool) -> bytes:
        properties = keys.decode_properties(fields.properties)
        origin = fields.topic.decode()
        prefix = names.pop_retry_topic(key.group, "")
        properties.setdefault(keys.RETRY_TOPIC, origin.removeprefix(prefix))
        properties.setdefault(keys.FIRST_POP_TIME, str(pop_ms))
        if is_dead:
            properties[keys.DLQ_ORIGIN_TOPIC] = properties[keys.RETRY_TOPIC]
            if keys.UNIQ_KEY in properties:
                properties[keys.DLQ_ORIGIN_MESSAGE_ID] = properties[keys.UNIQ_KEY]
        encoded = keys.encode_properties(properties).encode()
        return encoded if len(encoded) <= keys.PROPERTIES_BYTES_MAX else fields.properties


def _facts(key: Key) -> dict[str, object]:
    return {"group": key.group, "topic": key.topic, "queue": key.queue_id}
