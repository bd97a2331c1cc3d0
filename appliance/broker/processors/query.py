"""Looking messages up: by key (12) and by where they are stored (33)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from appliance.broker.access.cost_limits import UNIQUE_KEY_MESSAGES_MAX
from appliance.errors import BrokerError
from appliance.process.cooperative import in_turns, slice_scheduler
from appliance.remoting.header_fields import int_field, long_field
from appliance.settings.roles import BrokerConfig
from gantrymq.message.properties import PROPERTIES_BYTES_MAX
from gantrymq.message.record import split_record
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import QueryMessageResult
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

_NOT_FOUND = "can not find message, maybe time range not correct"


class QueryParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    store: MessageStore


def query_message(
    parts: QueryParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | Awaitable[RemotingCommand]:
    """12: messages of a topic under a key, by store time. Hits are by hash of topic and key.

    Where many messages share the key, others have turns while those outside of the span are passed over. Those of
    another topic are dropped here, for who asks may not see it; those of another key the client drops.
    """
    fields = request.ext_fields
    if len(fields["key"]) > PROPERTIES_BYTES_MAX:  # no message has it: not worth working out its hash
        return request.reply(
            ResponseCode.QUERY_NOT_FOUND,
            _NOT_FOUND,
            {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"},
        )
    is_unique = fields.get("_UNIQUE_KEY_QUERY", "").lower() == "true"
    steps = parts.store.query_steps(
        fields["topic"],
        fields["key"],
        UNIQUE_KEY_MESSAGES_MAX if is_unique else int_field(fields, "maxNum", low=0),
        long_field(fields, "beginTimestamp"),
        long_field(fields, "endTimestamp"),
    )
    try:
        next(steps)
    except StopIteration as end:
        return _answer(request, end.value)

    async def query_in_turns() -> RemotingCommand:
        await slice_scheduler().next_turn()
        return _answer(request, await in_turns(steps))

    return query_in_turns()


def _answer(request: RemotingCommand, found: QueryMessageResult) -> RemotingCommand:
    index_state = {
        "indexLastUpdateTimestamp": str(found.index_last_update_timestamp),
        "indexLastUpdatePhyoffset": str(found.index_last_update_physical_offset),
    }
    topic = request.ext_fields["topic"].encode()
    buffers = [buffer for buffer in found.buffers if split_record(buffer).topic == topic]
    if not buffers:
        return request.reply(ResponseCode.QUERY_NOT_FOUND, _NOT_FOUND, index_state)
    return request.reply(ext_fields=index_state, body=b"".join(buffers))


def view_message(parts: QueryParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """33: the message stored at a physical offset, as its offset message id says."""
    physical_offset = long_field(request.ext_fields, "offset")
    message = parts.store.shown_message_bytes(physical_offset)
    if message is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {physical_offset}")
    return request.reply(body=bytes(message))
