"""Who answers which request code: the whole table, put together from the processors by resource."""

from __future__ import annotations

from appliance.broker.processors import (
    acl,
    admin_broker,
    admin_groups,
    admin_offsets,
    admin_progress,
    admin_topics,
    client_relay,
    clients,
    consumers,
    pull,
    query,
    queue_locks,
    reply,
    send,
    send_back,
    transaction,
)
from appliance.remoting.lane import Route
from gantrymq.remoting.codes import RequestCode

HANDLERS: dict[int, Route] = {
    **send.HANDLERS,
    **send_back.HANDLERS,
    **reply.HANDLERS,
    **transaction.HANDLERS,
    **pull.HANDLERS,
    **query.HANDLERS,
    **clients.HANDLERS,
    **consumers.HANDLERS,
    **queue_locks.HANDLERS,
    **admin_topics.HANDLERS,
    **admin_groups.HANDLERS,
    **admin_progress.HANDLERS,
    **admin_offsets.HANDLERS,
    **client_relay.HANDLERS,
    **admin_broker.HANDLERS,
    **acl.HANDLERS,
}

# RocketMQ registers no pulls on the VIP port, and clients don't expect them there.
VIP_HANDLERS: dict[int, Route] = {code: route for code, route in HANDLERS.items() if code != RequestCode.PULL_MESSAGE}
