"""What consumers ask for between pulls: offsets (14, 15), the members of their group (38). Queue locks: queue_locks.py.

These come several times a second from every consumer, so each handler is one table look-up and one answer.
"""

from __future__ import annotations

from collections.abc import Awaitable

from appliance.broker.delivery.hot_data import is_hot
from appliance.broker.pop.leases import Key
from appliance.broker.processors.pull import PullParts
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import int_field, long_field
from gantrymq.remoting.codes import ONLY_FORWARD_FIELD, ResponseCode
from gantrymq.remoting.command import RemotingCommand


def query_consumer_offset(
    parts: PullParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | Awaitable[RemotingCommand | None]:
    """The group's offset; where it has none, 0 on a young queue (unless setZeroIfNotFound=false), else 22.

    Java consumers take any error for "no offset yet" and start where consumeFromWhere says, so nothing but a true
    absence may be answered with one. While it may be an old one there is no answer.
    """
    return _when_new(parts, request) if parts.offsets.has_to_wait else _offset(parts, request)


async def _when_new(parts: PullParts, request: RemotingCommand) -> RemotingCommand | None:
    return _offset(parts, request) if await parts.offsets.until_new() else None


def _offset(parts: PullParts, request: RemotingCommand) -> RemotingCommand:
    fields = request.ext_fields
    topic, queue_id = fields["topic"], int_field(fields, "queueId")
    offset = parts.offsets.query(fields["consumerGroup"], topic, queue_id)
    if offset < 0:
        if fields.get("setZeroIfNotFound") == "false" or not _is_young(parts, topic, queue_id):
            return request.reply(
                ResponseCode.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
            )
        offset = 0
    return request.reply(ext_fields={"offset": str(offset)})


def _is_young(parts: PullParts, topic: str, queue_id: int) -> bool:
    """Whether a new group should begin at the queue's first message: it is still there, and in reach of memory."""
    store = parts.store
    if store.min_offset(topic, queue_id) > 0:
        return False
    first = store.consume_queue_units(topic, queue_id, 0, 1)
    return not first or is_hot(store, first[0].physical_offset)


def update_consumer_offset(parts: PullParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """Commit an offset; smaller than before is fine, that is a rewind.

    onlyForward, an extension: a larger one that is there stays, and the answer has it as `offset`. Between look and
    write no other request is served.
    """
    parts.offsets.check_may_move()
    fields = request.ext_fields
    queue_id, offset = int_field(fields, "queueId", low=0), long_field(fields, "commitOffset", low=-1)
    if request.is_oneway and parts.pop.modes.popping:  # a consumer that pulled; tools, which may reset, want an answer
        parts.pop.modes.check_pull(fields["topic"], fields["consumerGroup"])
    if fields.get(ONLY_FORWARD_FIELD) == "true":
        there = parts.offsets.query(fields["consumerGroup"], fields["topic"], queue_id)
        if there > offset:
            return request.reply(ext_fields={"offset": str(there)})
    parts.offsets.commit(fields["consumerGroup"], fields["topic"], queue_id, offset)
    if not request.is_oneway:
        parts.pop.book.note_set(Key(fields["consumerGroup"], fields["topic"], queue_id))
    return request.reply()


def get_consumer_list(parts: PullParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """The client ids online in the group."""
    group = request.ext_fields["consumerGroup"]
    info = parts.consumers.get(group)
    if info is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
    return request.reply(body=info.id_list())
