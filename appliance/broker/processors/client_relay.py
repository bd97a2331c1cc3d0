"""What only a running consumer knows: its offsets (223), its state (307), how it consumes one message (309).

Each is asked over the consumer's own connection, or its proxy's; for 307 and 309 its answer, unread, is the tool's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.errors import BrokerError
from appliance.remoting.header_fields import FieldError, quoted
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import BodyError, ConnectError, RequestTimeout
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RESPONSE_FLAG, RemotingCommand
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.broker.groups.clients import ClientChannel
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

RELAY_TIMEOUT_S = 10.0
STATUS_TIMEOUT_S = 5.0
VERSION_WITH_STATUS = 28  # MQVersion ordinal of V3_0_7_SNAPSHOT
VERSION_WITH_RUNNING_INFO = 62  # of V3_1_8_SNAPSHOT
UNSET_REMARK = "not set any response code"  # RocketMQ forgets to remove its template's remark from these answers


class ClientRelayParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore
    consumers: ConsumerManager
    proxied: ProxiedClients


async def get_held_offsets(
    parts: ClientRelayParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """223: the offsets that the online consumers themselves hold (221), by client id."""
    fields = request.ext_fields
    topic, group, wanted_client = fields["topic"], fields["group"], fields.get("clientAddr")
    channels = parts.consumers.channels(group)
    if not channels:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]")
    for channel in channels:
        if channel.version < VERSION_WITH_STATUS:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR, f"the client does not support this feature. version={channel.version}"
            )
    asked = [channel for channel in channels if not wanted_client or channel.client_id == wanted_client]
    answers = await asyncio.gather(*(_client_offsets(channel, topic, group) for channel in asked))
    table = {channel.client_id: offsets for channel, offsets in zip(asked, answers, strict=True) if offsets is not None}
    return request.reply(remark=UNSET_REMARK, body=fastjson.dumps({"consumerTable": table, "messageQueueTable": {}}))


async def _client_offsets(channel: ClientChannel, topic: str, group: str) -> dict[Any, Any] | None:
    """One client's offsets; None when it does not answer, which must not spoil the answers of the others."""
    request = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": topic, "group": group})
    try:
        answer = await channel.connection.invoke(request, timeout_s=STATUS_TIMEOUT_S)
        document = fastjson.loads(answer.body) if answer.code == ResponseCode.SUCCESS and answer.body else {}
    except (RequestTimeout, ConnectError, BodyError) as exc:
        logger.warning(
            "client status unknown",
            extra={"event": "client_status_unknown", "client": channel.client_id, "why": str(exc)},
        )
        return None
    table = document.get("messageQueueTable") if isinstance(document, dict) else None
    return table if isinstance(table, dict) else None


async def get_running_info(
    parts: ClientRelayParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """307: what a consumer says about itself."""
    fields = request.ext_fields
    return await _relay(parts, request, fields["consumerGroup"], fields["clientId"], dict(fields), request.body)


async def consume_directly(
    parts: ClientRelayParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """309: have one consumer consume one stored message now, and tell how it went."""
    fields = request.ext_fields
    message_id, client_id = fields.get("msgId", ""), fields.get("clientId", "")
    try:
        *_, physical_offset = decode_offset_message_id(message_id)
    except ValueError as exc:
        raise FieldError(f"header field msgId={quoted(message_id)} is not an offset message id") from exc
    message = parts.store.shown_message_bytes(physical_offset)
    if message is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"can not find message by the id, {message_id}")
    push_fields = fields | {"brokerName": parts.config.broker_name}
    return await _relay(parts, request, fields["consumerGroup"], client_id, push_fields, bytes(message))


async def _relay(
    parts: ClientRelayParts,
    request: RemotingCommand,
    group: str,
    client_id: str,
    ext_fields: dict[str, str],
    body: bytes,
) -> RemotingCommand:
    """Pass a request on to one consumer; its answer, unread, is the answer."""
    info = parts.consumers.get(group)
    channel = info.channel_of(client_id) if info is not None else None
    connection = parts.proxied.proxy_of(group, client_id) if channel is None else channel.connection
    if connection is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
    if channel is not None and channel.version < VERSION_WITH_RUNNING_INFO:
        raise BrokerError(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{channel.version}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT",
        )
    push = RemotingCommand.request(request.code, ext_fields, body)
    try:
        answer = await connection.invoke(push, timeout_s=RELAY_TIMEOUT_S)
    except RequestTimeout as exc:
        raise BrokerError(ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{group}> <{client_id}> Timeout: {exc}") from exc
    except ConnectError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"invoke consumer <{group}> <{client_id}>: {exc}") from exc
    return RemotingCommand(
        answer.code,
        answer.ext_fields,
        answer.body,
        answer.remark,
        request.opaque,
        RESPONSE_FLAG,
        answer.language,
        answer.version,
        request.serialize_type,
    )
