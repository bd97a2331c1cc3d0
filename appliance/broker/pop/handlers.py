"""POP's requests: pop (200050), acknowledge (200051, 200151), change the invisible time (200053), notify (200054)."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Protocol

from appliance.acl.access import Access
from appliance.broker.access.access_control import may_still_pull
from appliance.broker.access.cost_limits import CreationLimit
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.filters.consumer_filter import compiled
from appliance.broker.filters.filter import SqlFilter, is_by_tag, parse_tags
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.handles import ORDER_QUEUE, REVIVE_QUEUE, Handle, counts_info, offsets_info, start_info
from appliance.broker.pop.hold import WaitingPop
from appliance.broker.pop.leases import Key, Lease
from appliance.broker.pop.requests import LeaseFields, PopFields, invisible_ms
from appliance.broker.pop.service import PopService
from appliance.broker.pop.taking import Popped
from appliance.broker.sql_filter import SqlError
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.error_response import error_response
from appliance.remoting.header_fields import INT_MAX
from appliance.remoting.request_body import read_body
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message.topics import TOPIC_CHARS_MAX, is_retry_topic, pop_retry_topic
from gantrymq.remoting.bodies import PERM_READ
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import BatchAckRequest
from store.message_store import MessageStore
from store.queues.filter import Filter

ENDED = "the lease has ended: the message was acknowledged, or its invisible time is over and it is delivered again"


class PopParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    stats: BrokerStatsManager
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    consumers: ConsumerManager
    creations: CreationLimit
    access: Access | None
    hold: PullRequestHold
    pop: PopService


# -- pop and notify ---------------------------------------------------------------------------------------------------


def pop(
    parts: PopParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | Awaitable[RemotingCommand | None] | None:
    """200050: messages, now or when some come; 210: none came within pollTime, 209: too many wait already.

    While the group's offset may be an old one there is no answer: what is acknowledged would be delivered again.
    """
    return (_when_new if parts.offsets.has_to_wait else _pop)(parts, connection, request)


async def _when_new(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand | None:
    return _pop(parts, connection, request) if await parts.offsets.until_new() else None


def _pop(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand | None:
    asked = PopFields.of(request.ext_fields)
    wanted = _checked(parts, connection, asked)
    if request.is_oneway:
        return None  # no client would get what is leased
    if parts.pop.taking.is_full:
        raise BrokerError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]too many messages are leased already")
    parts.pop.note_pop(asked.topic, asked.group)
    asked = asked if asked.client else asked._replace(client=parts.consumers.name_of(connection))
    popped = parts.pop.taking.take(asked, wanted)
    if popped.batches:
        _answer(parts, connection, request, asked, popped)
        return None
    answer = _wait(parts, connection, request, asked)
    _look_on(parts, asked, popped)
    return answer


def notify(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand | None:
    """200054: whether there is something to pop, now or within pollTime."""
    asked = PopFields.of_notification(request.ext_fields)
    _checked(parts, connection, asked)
    if parts.pop.taking.has_any(asked):
        return _told(request, has_any=True)
    return _wait(parts, connection, request, asked)


def answer_waiting(parts: PopParts, waiting: WaitingPop) -> bool:
    """Answer a request that waits, if there is an answer by now."""
    connection, request, asked = waiting.connection, waiting.request, waiting.asked
    try:
        if not may_still_pull(parts.access, connection, request):
            raise BrokerError(ResponseCode.NO_PERMISSION, "the account is no longer allowed to read this topic")
        wanted = _checked(parts, connection, asked)
        if request.code == RequestCode.POP_MESSAGE:
            parts.pop.note_pop(asked.topic, asked.group)  # the group may pull by now
    except BrokerError as exc:
        connection.reply(request, request.reply(exc.code, str(exc)))
        return True
    if request.code == RequestCode.NOTIFICATION:
        if not parts.pop.taking.has_any(asked):
            return False
        connection.reply(request, _told(request, has_any=True))
        return True
    try:
        popped = parts.pop.taking.take(asked, wanted)
    except MessageRejected as exc:  # the group's offset has no room
        connection.reply(request, error_response(request, exc))
        return True
    if popped.batches:
        _answer(parts, connection, request, asked, popped)
    else:
        _look_on(parts, asked, popped)
    return bool(popped.batches)


def _look_on(parts: PopParts, asked: PopFields, popped: Popped) -> None:
    """Have a pop that found nothing look behind what it passed over: one look passes over so many, and no more."""
    if popped.has_passed:
        parts.pop.hold.wake(asked.topic, asked.group)


def say_time_up(waiting: WaitingPop) -> None:
    """Nothing came."""
    waiting.connection.reply(waiting.request, _nothing(waiting.request, waiting.asked, ResponseCode.POLLING_TIMEOUT))


def _wait(
    parts: PopParts, connection: ServerConnection, request: RemotingCommand, asked: PopFields
) -> RemotingCommand | None:
    if not asked.poll_ms or request.is_oneway:
        return _nothing(request, asked, ResponseCode.POLLING_TIMEOUT)
    parts.hold.check_open()
    deadline = time.monotonic() + asked.poll_ms / 1000
    if parts.pop.hold.park(WaitingPop(connection, request, asked, deadline)):
        return None
    return _nothing(request, asked, ResponseCode.POLLING_FULL)


def _nothing(request: RemotingCommand, asked: PopFields, code: ResponseCode) -> RemotingCommand:
    if request.code == RequestCode.NOTIFICATION:
        return _told(request, has_any=False, is_full=code == ResponseCode.POLLING_FULL)
    remark = "too many pops of the group wait already" if code == ResponseCode.POLLING_FULL else "NO_MESSAGE_IN_QUEUE"
    return request.reply(code, remark, _head_fields(asked, int(time.time() * 1000), 0))


def _told(request: RemotingCommand, *, has_any: bool, is_full: bool = False) -> RemotingCommand:
    return request.reply(
        ext_fields={"hasMsg": "true" if has_any else "false", "pollingFull": "true" if is_full else "false"}
    )


def _head_fields(asked: PopFields, pop_ms: int, rest: int) -> dict[str, str]:
    return {
        "popTime": str(pop_ms),
        "invisibleTime": str(asked.invisible_ms),
        "reviveQid": str(ORDER_QUEUE if asked.is_ordered else REVIVE_QUEUE),
        "restNum": str(min(rest, INT_MAX)),
    }


def _answer(
    parts: PopParts, connection: ServerConnection, request: RemotingCommand, asked: PopFields, popped: Popped
) -> None:
    batches = popped.batches
    fields = _head_fields(asked, popped.pop_ms, popped.rest)
    fields["startOffsetInfo"] = ";".join(
        start_info(batch.kind, batch.queue_id, batch.start_offset) for batch in batches
    )
    fields["msgOffsetInfo"] = ";".join(offsets_info(batch.kind, batch.queue_id, batch.offsets) for batch in batches)
    if asked.is_ordered:
        counts = [part for batch in batches for part in counts_info(batch.kind, batch.queue_id, batch.counts)]
        fields["orderCountInfo"] = ";".join(counts)
    buffers = [buffer for batch in batches for buffer in batch.buffers]
    size = sum(map(len, buffers))
    connection.write_parts([request.reply(0, "FOUND", fields).encode_head(size), *buffers])
    parts.stats.inc_group_get(asked.group, asked.topic, popped.message_count, size)
    if popped.rest:  # more of them may be answered
        parts.pop.hold.wake(asked.topic, asked.group)


def _checked(parts: PopParts, connection: ServerConnection, asked: PopFields) -> Filter | None:
    """What a pop that is allowed wants. Raises BrokerError with RocketMQ's code when it is not."""
    group, topic = asked.group, asked.topic
    if not parts.config.permission & PERM_READ:
        raise BrokerError(ResponseCode.NO_PERMISSION, "the broker pop message is forbidden")
    config = parts.topics.configs.get(topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
    if not config.perm & PERM_READ:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{topic}] pop message is forbidden")
    if asked.queue_id >= config.read_queue_nums or is_retry_topic(topic):
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{asked.queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:"
            f"[{config.read_queue_nums}] consumer:[/{connection.remote_text}]",
        )
    group_config = parts.creations.group(parts.groups, connection, group)
    if group_config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
    if not group_config.consume_enable:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
    if len(pop_retry_topic(group, topic)) > TOPIC_CHARS_MAX:
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"the names of group and topic are too long for POP: {pop_retry_topic(group, topic)} would have more than "
            f"{TOPIC_CHARS_MAX} characters",
        )
    return _filter(parts, asked)


def _filter(parts: PopParts, asked: PopFields) -> Filter | None:
    if is_by_tag(asked.expression_type):
        return parse_tags(asked.expression)
    if not parts.config.enable_property_filter:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {asked.expression_type}: "
            "set enablePropertyFilter=true",
        )
    try:
        return SqlFilter(compiled(asked.expression_type, asked.expression))
    except SqlError as exc:
        raise BrokerError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"parse the consumer's subscription failed: {exc}"
        ) from exc


# -- acknowledge and change -------------------------------------------------------------------------------------------


def acknowledge(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """200051: one message is done with; 208 when its lease has ended."""
    parts.offsets.check_may_move()
    fields = LeaseFields.of(request.ext_fields)
    key, _lease = _leased(parts, fields)
    _end(parts, key, [fields.offset])
    return request.reply()


def acknowledge_batch(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """200151: several; 208 when no lease of them was left."""
    parts.offsets.check_may_move()
    count = 0
    for ack in read_body(BatchAckRequest, request.body).acks:
        key = Key(ack.consumer_group, ack.real_topic, ack.queue_id)
        leased = [offset for offset in ack.offsets if parts.pop.book.find(key, offset, ack.pop_time) is not None]
        if leased:
            _end(parts, key, leased)
        count += len(leased)
    if not count:
        raise BrokerError(ResponseCode.NO_MESSAGE, ENDED)
    return request.reply()


def change_invisible_time(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """200053: the message comes back at another time, counted from now; 0: at once. The handle stays good."""
    parts.offsets.check_may_move()
    fields = LeaseFields.of(request.ext_fields)
    wanted_ms = invisible_ms(request.ext_fields)
    key, lease = _leased(parts, fields)
    due_ms = parts.pop.taking.now_ms() + wanted_ms
    parts.pop.book.move(key, fields.offset, due_ms)
    return request.reply(
        ext_fields={
            "popTime": str(lease.pop_ms),
            "invisibleTime": str(max(due_ms - lease.pop_ms, 0)),
            "reviveQid": str(Handle.parse(fields.extra_info).revive_queue),
        }
    )


def _leased(parts: PopParts, fields: LeaseFields) -> tuple[Key, Lease]:
    """Whose delivery it is. BrokerError NO_MESSAGE when it has ended."""
    config = parts.topics.configs.get(fields.topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{fields.topic}] not exist, apply first please!")
    key = Key(fields.group, fields.topic, fields.queue_id)
    lease = parts.pop.book.find(key, fields.offset, Handle.parse(fields.extra_info, fields.offset).pop_ms)
    if lease is None:
        raise BrokerError(ResponseCode.NO_MESSAGE, ENDED)
    return key, lease


def _end(parts: PopParts, key: Key, offsets: list[int]) -> None:
    parts.pop.book.end(key, offsets)
    queue = parts.pop.book.queues.get(key)
    if queue is None or queue.is_ordered:  # the queue may be free for others
        parts.pop.hold.wake(key.topic, key.group)
