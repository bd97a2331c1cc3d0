"""Pulls: 11 (and 361, the name 5.x lite consumers use). Messages from one queue, or a wait until there are some.

The answer's body is not copied: the store hands out views of its mapped files, and they go to the socket as they are.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from appliance.acl.access import Access
from appliance.broker.access.access_control import may_still_pull
from appliance.broker.access.cost_limits import CreationLimit
from appliance.broker.access.lane_limits import SHORT_POLLING_MS
from appliance.broker.delivery.answers import pull_head
from appliance.broker.delivery.hot_data import is_hot
from appliance.broker.delivery.long_polling import HeldPull, PullRequestHold
from appliance.broker.delivery.offset_moved import OffsetMovedEvents
from appliance.broker.delivery.slow_consumers import SlowConsumerGuard
from appliance.broker.filters.consumer_filter import ConsumerFilterManager, compiled
from appliance.broker.filters.filter import (
    RetryFilter,
    SqlFilter,
    filter_of,
    is_by_tag,
    parse_tags,
    retried_group,
)
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.service import PopService
from appliance.broker.sql_filter import SqlError
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.errors import BrokerError
from appliance.remoting.pull_request import PullFields, PullRequest
from appliance.settings.roles import BrokerConfig
from gantrymq.client.connection.broker_calls import PULL_READ_AGAIN
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import TOOLS_GROUP
from gantrymq.remoting.bodies import PERM_READ
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import ONEWAY_FLAG, RemotingCommand
from store.base.results import GetMessageResult, GetMessageStatus
from store.message_store import MessageStore
from store.queues.filter import Filter

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

Request = RemotingCommand | PullRequest

# bits of the request's sysFlag (RocketMQ: PullSysFlag)
COMMIT_OFFSET = 1
SUSPEND = 2
HAS_SUBSCRIPTION = 4

MASTER_ID = 0
HELD_MS_MAX = 600_000  # RocketMQ's clients ask for 15 s; no connection is waited for without end

_CODES = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


class PullParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    stats: BrokerStatsManager
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    filters: ConsumerFilterManager
    consumers: ConsumerManager
    creations: CreationLimit
    hold: PullRequestHold
    offset_moved: OffsetMovedEvents
    pop: PopService
    slow_consumers: SlowConsumerGuard
    address: str


def pull(parts: PullParts, connection: ServerConnection, request: Request) -> None:
    """11 PULL_MESSAGE, for the first time: it may wait. One that wants no answer wants nothing."""
    if request.flag & ONEWAY_FLAG:
        return
    _pull(parts, connection, request, may_wait=True)


def answer_held(parts: PullParts, access: Access | None, connection: ServerConnection, request: Request) -> None:
    """A pull that waited: answer it now, whatever there is, if its account may still read the topic."""
    if not may_still_pull(access, connection, request):
        refusal = "the account is no longer allowed to read this topic"
        connection.reply(request, request.reply(ResponseCode.NO_PERMISSION, refusal))
        return
    try:
        _pull(parts, connection, request, may_wait=False)
    except BrokerError as exc:  # the topic or the group went away meanwhile
        connection.reply(request, request.reply(exc.code, str(exc)))


def _pull(parts: PullParts, connection: ServerConnection, request: Request, *, may_wait: bool) -> None:
    fields = request.fields if isinstance(request, PullRequest) else PullFields.of(request.ext_fields)
    group, topic, queue_id, offset = fields.group, fields.topic, fields.queue_id, fields.queue_offset
    sys_flag, count_max = fields.sys_flag, fields.count_max
    wanted = checked_filter(parts, connection, fields)
    if may_wait and sys_flag & COMMIT_OFFSET and not parts.config.is_slave:
        parts.offsets.commit_of_pull(group, topic, queue_id, fields.commit_offset)
    result = parts.store.get_message(group, topic, queue_id, offset, count_max, wanted)
    if result is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "store getMessage return null")
    if sys_flag & PULL_READ_AGAIN and result.message_count == 1:
        parts.store.examine(topic, queue_id, result.next_begin_offset - 1)
    code = _CODES.get(result.status)
    if code is None:  # NO_MESSAGE_IN_QUEUE, NO_MATCHED_LOGIC_QUEUE: an offset other than 0 can't be right
        code = ResponseCode.PULL_OFFSET_MOVED if offset else ResponseCode.PULL_NOT_FOUND
    if code is ResponseCode.PULL_OFFSET_MOVED and parts.config.is_slave and not parts.config.offset_check_in_slave:
        code = _uncorrected(result, offset)
    if code is ResponseCode.PULL_NOT_FOUND and may_wait and sys_flag & SUSPEND:
        _park(parts, connection, request, fields, wanted)
        return
    if code is ResponseCode.PULL_OFFSET_MOVED:
        queue = MessageQueue(topic, parts.config.broker_name, queue_id)
        parts.offset_moved.moved(group, queue, offset, result.next_begin_offset)
    elif parts.config.disable_slow_consumers and result.message_count and group != TOOLS_GROUP:
        parts.slow_consumers.note_read(group, topic, queue_id, result.next_begin_offset)
    _answer(parts, connection, request, fields, code, result)


def _uncorrected(result: GetMessageResult, offset: int) -> ResponseCode:
    """What a slave answers that does not have the offset: it may not have it yet, so the consumer keeps its place.

    RocketMQ's slave has clients ask again at once in both cases; here who is ahead of the copy waits.
    """
    result.next_begin_offset = offset
    if offset > result.max_offset:
        return ResponseCode.PULL_NOT_FOUND
    return ResponseCode.PULL_RETRY_IMMEDIATELY


def _answer(
    parts: PullParts,
    connection: ServerConnection,
    request: Request,
    fields: PullFields,
    code: ResponseCode,
    result: GetMessageResult,
) -> None:
    group, topic = fields.group, fields.topic
    offsets = (result.next_begin_offset, result.min_offset, result.max_offset)
    body_bytes = result.size_bytes if code is ResponseCode.SUCCESS else 0
    suggested = _suggested_broker(parts, fields, result) if parts.config.slave_read_enable else MASTER_ID
    head = pull_head(request, code, result.status.name, offsets, suggested, body_bytes)
    if not body_bytes:
        connection.write(head)
        return
    connection.write_parts([head, *result.buffers])
    if group == TOOLS_GROUP:
        return
    parts.stats.inc_group_get(group, topic, result.message_count, result.size_bytes)


def _suggested_broker(parts: PullParts, fields: PullFields, result: GetMessageResult) -> int:
    """The id of the broker to pull from next: with slaveReadEnable, where the group wants to read what is old.

    Old is what is further back in the log than memory reaches (accessMessageInMemoryMaxRatio). Clients that find no
    broker of that id stay here.
    """
    group_config = parts.groups.configs.get(fields.group)
    if group_config is None:
        return MASTER_ID
    if result.message_count:
        last = parts.store.consume_queue_units(fields.topic, fields.queue_id, result.next_begin_offset - 1, 1)
        if last and not is_hot(parts.store, last[0].physical_offset):
            return group_config.which_broker_when_consume_slowly
    return group_config.broker_id


def _park(
    parts: PullParts, connection: ServerConnection, request: Request, fields: PullFields, wanted: Filter | None
) -> None:
    config = parts.config
    wait_ms = SHORT_POLLING_MS
    if config.long_polling_enable:
        wait_ms = min(fields.suspend_ms, HELD_MS_MAX)
    deadline = time.monotonic() + wait_ms / 1000
    parts.hold.park(fields.topic, fields.queue_id, HeldPull(connection, request, fields.queue_offset, wanted, deadline))


# -- checks -----------------------------------------------------------------------------------------------------------


def checked_filter(parts: PullParts, connection: ServerConnection, fields: PullFields) -> Filter | None:
    """What a pull that is allowed wants. Raises BrokerError with RocketMQ's code when it is not."""
    group, topic, queue_id = fields.group, fields.topic, fields.queue_id
    if not parts.config.permission & PERM_READ:
        host = parts.address.rpartition(":")[0]
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the broker[{host}] pulling message is forbidden")
    group_config = parts.creations.group(parts.groups, connection, group)
    if group_config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group [{group}] does not exist")
    if not group_config.consume_enable:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
    config = parts.topics.configs.get(topic)
    if config is None:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
    if not config.perm & PERM_READ:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the topic[{topic}] pulling message is forbidden")
    if not 0 <= queue_id < config.read_queue_nums:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{config.read_queue_nums}] "
            f"consumer:[/{connection.remote_text}]",
        )
    modes = parts.pop.modes
    if modes.popping and (topic, group) in modes.popping:
        modes.check_pull(topic, group)
    if fields.sys_flag & HAS_SUBSCRIPTION:
        return _own_filter(parts, fields)
    return _filter_from_heartbeat(parts, fields, group_config.consume_broadcast_enable)


def _filter_from_heartbeat(parts: PullParts, fields: PullFields, may_broadcast: bool) -> Filter | None:
    group, topic = fields.group, fields.topic
    consumers = parts.consumers.get(group)
    if consumers is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
    if consumers.is_broadcasting and not may_broadcast:
        raise BrokerError(ResponseCode.NO_PERMISSION, f"the consumer group[{group}] can not consume by broadcast way")
    subscription = consumers.subscriptions.get(topic)
    if subscription is None:
        conflict = parts.consumers.agreement.remark(group)
        raise BrokerError(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's subscription not exist: {topic}{f'; {conflict}' if conflict else ''}",
        )
    if subscription.sub_version < fields.sub_version:
        raise BrokerError(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if is_by_tag(subscription.expression_type):
        wanted = filter_of(subscription)
        return _retry_filter(parts, topic) if wanted is None and parts.config.filter_support_retry else wanted
    found = parts.filters.get(topic, group)
    if found is None:
        raise BrokerError(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if found.client_version < fields.sub_version:
        raise BrokerError(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    _check_enabled(parts, subscription.expression_type)
    return found.content_filter


def _own_filter(parts: PullParts, fields: PullFields) -> Filter | None:
    """The pull brings its own subscription."""
    topic, expression_type, expression = fields.topic, fields.expression_type, fields.subscription
    if is_by_tag(expression_type):
        wanted = parse_tags(expression)
        return _retry_filter(parts, topic) if wanted is None and parts.config.filter_support_retry else wanted
    _check_enabled(parts, expression_type)
    try:
        condition = compiled(expression_type, expression)
    except SqlError as exc:
        raise BrokerError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"parse the consumer's subscription failed: {exc}"
        ) from exc
    return SqlFilter(condition)


def _retry_filter(parts: PullParts, topic: str) -> RetryFilter | None:
    group = retried_group(topic)
    if group is None:
        return None
    return RetryFilter(lambda original: parts.filters.condition(original, group))


def _check_enabled(parts: PullParts, expression_type: str | None) -> None:
    if not parts.config.enable_property_filter:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {expression_type}: "
            "set enablePropertyFilter=true",
        )
