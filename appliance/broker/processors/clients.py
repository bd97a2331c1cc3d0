"""Clients coming and going: heartbeat (34), unregistration (35), check of a subscription (46), and what operators of
GantryMQ ask: who is connected (29403), and an end of it (29404).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from appliance.broker.access.cost_limits import CreationLimit
from appliance.broker.filters.consumer_filter import ConsumerFilterManager, compiled
from appliance.broker.filters.filter import is_by_tag
from appliance.broker.groups.client_connections import ClientConnections
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.connected import described, page_after, those_of
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.sql_filter import SqlError
from appliance.broker.topics.topic_config import UNIT_SUB_FLAG, TopicConfigManager
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import long_field
from appliance.remoting.request_body import read_body
from appliance.remoting.server import RemotingServer
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message import topics as names
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import CheckClientRequestBody, ConsumerData, HeartbeatData
from gantrymq.remoting.codes import TIMES_KEPT_FIELD, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig

if TYPE_CHECKING:
    from appliance.broker.groups.clients import ProducerManager
    from appliance.broker.groups.consumer_groups import ConsumerManager

logger = logging.getLogger(__name__)

CONFLICTS_TOLD_MAX = 5  # groups of one client
GROUPS_MAX = 1024  # of one client
GROUPS_ONLINE_MAX = 100_000  # of all, producers and consumers each
SUBSCRIPTIONS_MAX = 4096  # of one group
CLIENT_ID_CHARS_MAX = 1024


class ClientParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store_config: MessageStoreConfig
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    filters: ConsumerFilterManager
    producers: ProducerManager
    consumers: ConsumerManager
    client_connections: ClientConnections
    proxied: ProxiedClients
    locks: RebalanceLockManager
    creations: CreationLimit
    server: RemotingServer
    vip_server: RemotingServer


def heartbeat(parts: ClientParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Register the connection in every group its body names. A bad name spoils that group only, and is reported."""
    if not request.body:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, "a heartbeat has a body")
    _check_subscriptions(parts, request.body.count(b'"subString"'))  # before they are read: that is what costs
    beat = read_body(HeartbeatData, request.body)
    _check_subscriptions(parts, sum(len(consumer.subscription_data_set) for consumer in beat.consumer_data_set))
    if not isinstance(beat.client_id, str) or not beat.client_id:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, "a heartbeat has a clientID")
    groups = len(beat.producer_data_set) + len(beat.consumer_data_set)
    if groups > GROUPS_MAX or len(beat.client_id) > CLIENT_ID_CHARS_MAX:
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"{groups} groups, clientID of {len(beat.client_id)} characters: at most {GROUPS_MAX} and "
            f"{CLIENT_ID_CHARS_MAX}",
        )
    if connection.is_closing:  # it left while this waited: registered now, it would stay a member for two minutes
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "the connection is closed")
    parts.client_connections.note(beat.client_id, connection)
    parts.locks.client_back(beat.client_id)
    if beat.proxy is not None:
        parts.proxied.note(connection, beat.proxy)
    refused: list[MessageRejected | BrokerError] = []
    for producer in beat.producer_data_set:
        group = str(producer.group_name)
        try:
            names.check_group(group)
            _check_room(parts.producers, connection, group)
        except MessageRejected as exc:
            refused.append(exc)
            continue
        parts.producers.register(group, connection, beat.client_id, request.language, request.version)
    for consumer in beat.consumer_data_set:
        try:
            _register_consumer(parts, connection, beat.client_id, consumer, request)
        except (MessageRejected, BrokerError) as exc:
            refused.append(exc)
    if refused:  # a client does not send again what is invalid: what may pass has a code of its own
        codes = {exc.code if isinstance(exc, BrokerError) else ResponseCode.INVALID_PARAMETER for exc in refused}
        code = codes.pop() if len(codes) == 1 else ResponseCode.INVALID_PARAMETER
        raise BrokerError(code, "; ".join(map(str, refused)))
    keeps_times = {TIMES_KEPT_FIELD: str(parts.store_config.timer_delay_max_s)}
    return request.reply(remark=_conflicts(parts, beat), ext_fields=keeps_times)


def _check_subscriptions(parts: ClientParts, count: int) -> None:
    count_max = parts.config.heartbeat_subscriptions_max
    if count > count_max:
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"the heartbeat has {count} subscriptions: at most heartbeatSubscriptionsMax={count_max}",
        )


def _conflicts(parts: ClientParts, beat: HeartbeatData) -> str | None:
    """What members of the client's groups disagree on. Clients that don't read a good answer's remark miss nothing."""
    agreement = parts.consumers.agreement
    remarks = [agreement.remark(consumer.group_name) for consumer in beat.consumer_data_set[:CONFLICTS_TOLD_MAX]]
    return "; ".join(filter(None, remarks)) or None


def _register_consumer(
    parts: ClientParts,
    connection: ServerConnection,
    client_id: str,
    consumer: ConsumerData,
    request: RemotingCommand,
) -> None:
    """Raises MessageRejected when the group, or the retry topic made of it, can't have that name."""
    group = consumer.group_name = str(consumer.group_name)
    names.check_group(group)
    if len(consumer.subscription_data_set) > SUBSCRIPTIONS_MAX:
        raise MessageRejected(f"group {group} subscribes to more than {SUBSCRIPTIONS_MAX} topics")
    _check_room(parts.consumers, connection, group)
    config = parts.creations.group(parts.groups, connection, group)
    if config is not None:
        sys_flag = UNIT_SUB_FLAG if consumer.unit_mode else 0
        parts.topics.create_retry_topic(names.retry_topic(group), config.retry_queue_nums, topic_sys_flag=sys_flag)
    is_notifying = config is None or config.notify_consumer_ids_changed_enable
    parts.consumers.register(
        consumer, connection, client_id, request.language, request.version, is_notifying=is_notifying
    )
    parts.filters.register(group, consumer.subscription_data_set)


def _check_room(members: ProducerManager | ConsumerManager, connection: ServerConnection, group: str) -> None:
    """Raise MessageRejected for a group too many, of one connection or of all."""
    if group in members.groups:
        return
    if members.group_count(connection) >= GROUPS_MAX:
        raise MessageRejected(f"this connection is a member of {GROUPS_MAX} groups already")
    if len(members.groups) >= GROUPS_ONLINE_MAX:
        raise MessageRejected(f"{GROUPS_ONLINE_MAX} groups are online already")


def unregister_client(parts: ClientParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Take the connection out of the producer group and the consumer group that are named."""
    fields = request.ext_fields
    producer_group, consumer_group = fields.get("producerGroup"), fields.get("consumerGroup")
    if producer_group:
        parts.producers.unregister(producer_group, connection)
    if consumer_group:
        parts.consumers.unregister(consumer_group, connection)
    return request.reply()


def check_client_config(parts: ClientParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Say whether this broker can filter as the subscription wants: by tag it can, and by SQL92 that compiles."""
    if not request.body:
        return request.reply()
    wanted = read_body(CheckClientRequestBody, request.body).subscription_data
    if is_by_tag(wanted.expression_type):
        return request.reply()
    if not parts.config.enable_property_filter:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {wanted.expression_type}",
        )
    try:
        compiled(wanted.expression_type, wanted.sub_string)
    except SqlError as exc:
        raise BrokerError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(exc)) from exc
    return request.reply()


def get_connections(parts: ClientParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29403: the open connections behind the number `after`. next: what to ask for then; 0: that was all."""
    after = long_field(request.ext_fields, "after", 0, low=0)
    found = page_after((*parts.server.connections, *parts.vip_server.connections), after)
    rest = page_after((*parts.server.connections, *parts.vip_server.connections), found[-1].number) if found else []
    shown = [described(one, parts.producers, parts.consumers, parts.proxied) for one in found]
    return request.reply(body=fastjson.dumps({"connections": shown, "next": found[-1].number if rest else 0}))


def close_connections(parts: ClientParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29404: close those of a client id, or of an address, but the asking one. The client may come back."""
    fields = request.ext_fields
    client_id, address = fields.get("clientId", ""), fields.get("address", "")
    if not client_id and not address:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, "name a clientId or an address")
    open_ones = [one for one in (*parts.server.connections, *parts.vip_server.connections) if one is not connection]
    found = those_of(open_ones, client_id, address, parts.producers, parts.consumers)
    logger.warning(
        "clients disconnected by a request",
        extra={
            "event": "admin_disconnect",
            "peer": connection.remote_text,
            "client": client_id,
            "address": address,
            "count": len(found),
        },
    )
    for one in found:
        one.close("closed by an administrator")
    return request.reply(ext_fields={"count": str(len(found))})
