"""What tools ask about consumer and producer groups: their settings, and who is online."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerGroupInfo, ConsumerManager
from appliance.broker.groups.consumer_offset import QUEUES_MAX, ConsumerOffsetManager
from appliance.broker.groups.proxied_clients import CONSUME_POP, ProxiedClients, as_connection, subscriptions_of
from appliance.broker.groups.subscription_agreement import parties_of
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.service import PopService
from appliance.broker.status.stats import BrokerStatsManager
from appliance.errors import BrokerError
from appliance.remoting.header_fields import INT_MAX, INT_MIN, FieldError
from appliance.remoting.request_body import read_body, read_list
from gantrymq.errors import MessageRejected
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import (
    Connection,
    ConsumerConnection,
    ProducerConnection,
    SubscriptionGroupConfig,
    TopicList,
)
from gantrymq.remoting.bodies import ProxiedClient
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.broker.groups.clients import ClientChannel
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)


class AdminGroupParts(Protocol):
    """What these handlers use of the broker."""

    stats: BrokerStatsManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    producers: ProducerManager
    consumers: ConsumerManager
    proxied: ProxiedClients
    pop: PopService


# -- settings ---------------------------------------------------------------------------------------------------------


async def update_group(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """200: create or replace a consumer group's settings; answered when they are on disk."""
    await _put_groups(parts, connection, [read_body(SubscriptionGroupConfig, request.body)])
    return request.reply()


async def update_groups(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """225: several at once (5.x tools)."""
    entries = read_list(request.body, "groupConfigList")
    await _put_groups(parts, connection, [SubscriptionGroupConfig.from_dict(entry) for entry in entries])
    return request.reply()


async def _put_groups(
    parts: AdminGroupParts, connection: ServerConnection, configs: list[SubscriptionGroupConfig]
) -> None:
    for config in configs:
        _check_config(config)
    for config in configs:
        try:
            parts.groups.update(config)
        except MessageRejected as exc:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, str(exc)) from exc
        logger.info(
            "group set by a request",
            extra={"event": "admin_group_set", "peer": connection.remote_text, "group": config.group_name},
        )
    await parts.groups.saved()


def _check_config(config: SubscriptionGroupConfig) -> None:
    """Raise FieldError for numbers that no group can have."""
    if config.retry_queue_nums > QUEUES_MAX or config.retry_queue_nums < INT_MIN:
        raise FieldError(f"retryQueueNums: {config.retry_queue_nums} queues: use 0 to {QUEUES_MAX}")
    if not INT_MIN <= config.retry_max_times <= INT_MAX:
        raise FieldError(f"retryMaxTimes: {config.retry_max_times} is not a 32-bit number")


async def delete_group(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """207: forget a group's settings and, if asked to, its offsets. One that is online comes back by itself."""
    fields = request.ext_fields
    group = fields["groupName"]
    parts.groups.delete(group)
    parts.pop.book.forget_group(group)
    parts.stats.group_deleted(group)
    if "true" in (fields.get("removeOffset", "").lower(), fields.get("cleanOffset", "").lower()):
        parts.offsets.remove_group(group)
        parts.pop.book.drop_void()
        await parts.offsets.saved(is_urgent=True)  # after a kill, one of the same name would go on with them
    await parts.groups.saved()
    logger.info(
        "group deleted by a request",
        extra={"event": "admin_group_deleted", "peer": connection.remote_text, "group": group},
    )
    return request.reply()


async def get_all_groups(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """201: every group's settings."""
    return request.reply(body=await parts.groups.body())


def get_group(parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """352: one group's settings (5.x tools). Looking does not create it."""
    group = request.ext_fields["group"]
    config = parts.groups.configs.get(group)
    if config is None:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group[{group}] not exist")
    return request.reply(body=config.to_json())


# -- who is online ----------------------------------------------------------------------------------------------------


def get_consumer_connections(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """203: the group's consumers and what they subscribe to; also those that a proxy serves."""
    group = request.ext_fields["consumerGroup"]
    info, proxied = parts.consumers.get(group), parts.proxied.members(group)
    if info is None and proxied:
        info = ConsumerGroupInfo(group, CONSUME_POP, "CLUSTERING", "CONSUME_FROM_LAST_OFFSET")
    if info is None:
        raise BrokerError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
    through_proxies = {data.topic: data for client in proxied for data in subscriptions_of(client)}
    body = ConsumerConnection(
        [*(channel.describe() for channel in info.channels.values()), *map(as_connection, proxied)],
        through_proxies | info.subscriptions,
        info.consume_type,
        info.message_model,
        info.consume_from_where,
        parties_of(info) if parts.consumers.agreement.remark(group) is not None else None,
    )
    return request.reply(body=body.to_json())


def get_producer_connections(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """204: the group's producers; for a proxy's channel, those that it serves."""
    group = request.ext_fields["producerGroup"]
    channels, proxied = _producers(parts, group, parts.producers.channels(group))
    if not channels and not proxied:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
    found = [*(channel.describe() for channel in channels), *map(as_connection, proxied)]
    return request.reply(body=ProducerConnection(found).to_json())


def _producers(
    parts: AdminGroupParts, group: str, channels: Collection[ClientChannel]
) -> tuple[list[ClientChannel], list[ProxiedClient]]:
    """The channels that are producers, and who stands behind the others, the proxies."""
    direct = [each for each in channels if parts.proxied.of_connection(each.connection) is None]
    return direct, parts.proxied.producers(group) if len(direct) < len(channels) else []


def get_all_producers(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """328: every producer group with its producers, as 204 has them."""
    now_ms, now_s = int(time.time() * 1000), time.monotonic()

    def row(one: Connection, at_ms: int) -> dict[str, Any]:
        return {
            "clientId": one.client_id,
            "language": one.language,
            "lastUpdateTimestamp": at_ms,
            "remoteIP": f"/{one.client_addr}",  # as Java prints an address
            "version": one.version,
        }

    data = {}
    for group, known in parts.producers.groups.items():
        channels, proxied = _producers(parts, group, known.values())
        data[group] = [row(each.describe(), now_ms - int((now_s - each.last_update) * 1000)) for each in channels]
        data[group] += [row(as_connection(each), now_ms) for each in proxied]
    return request.reply(body=fastjson.dumps({"data": data}))


def get_subscription(parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """345: what a group that is online wants of a topic (5.x tools)."""
    group, topic = request.ext_fields["group"], request.ext_fields["topic"]
    subscription = parts.consumers.find_subscription(group, topic)
    body: dict[str, Any] = {"group": group, "topic": topic}
    if subscription is not None:
        body["subscriptionData"] = subscription.to_dict()
    return request.reply(body=fastjson.dumps(body))


def get_topics_of_group(
    parts: AdminGroupParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """343: topics the group has offsets on (5.x tools)."""
    return request.reply(body=TopicList(sorted(parts.offsets.topics_of(request.ext_fields["group"]))).to_json())
