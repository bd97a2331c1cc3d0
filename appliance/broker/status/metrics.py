"""Metrics of the broker's services for GET_BROKER_RUNTIME_INFO (28): our own keys beside RocketMQ's.

RocketMQ tells size, capacity and head wait of four of its queues; here every lane has them, under the name that its
capacity's setting has. `…Served`, `…Rejected`, `…Expired` and `…OnewayRefused` count since the start: rejected are
requests that a full lane refused, expired those that waited too long in it (fast failure), and of the rejected those
that are one-way are lost without an answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from appliance.broker.status.replication import epoch_metrics, master_metrics, member_metrics, slave_metrics
from appliance.process.json_file import SavedTable
from appliance.remoting.acceptor import files_max
from appliance.remoting.lane import Lane

if TYPE_CHECKING:
    from appliance.broker.status.runtime_info import RuntimeInfoParts

# lane -> what its keys begin with
_LANE_PREFIXES = {
    "send": "sendThreadPoolQueue",
    "pull": "pullThreadPoolQueue",
    "query": "queryThreadPoolQueue",
    "transaction": "EndTransactionQueue",
    "reply": "replyThreadPoolQueue",
    "heartbeat": "heartbeatThreadPoolQueue",
    "client": "clientManagerThreadPoolQueue",
    "consumer": "consumerManagerThreadPoolQueue",
    "admin": "adminBrokerThreadPoolQueue",
}
_TOLD_BY_ROCKETMQ = frozenset({"send", "pull", "query", "transaction"})  # runtime_info has their irregular keys


def service_metrics(parts: RuntimeInfoParts) -> dict[str, str]:
    """One row a metric. Cheap: reads memory only."""
    known, all_ = parts.outer_api.registered
    tables: dict[str, SavedTable] = {
        "topics": parts.topics,
        "groups": parts.groups,
        "offsets": parts.offsets,
        "filters": parts.filters,
    }
    rows = {
        "brokerRole": parts.config.broker_role,
        **(master_metrics(parts.slaves) if parts.follower is None else slave_metrics(parts.follower)),
        **epoch_metrics(parts.standing.standing),
        **member_metrics(parts.member.membership),
        "epochRegister": "etcd" if parts.config.etcd_endpoints else "none",  # who gives out the numbers
        "inSyncSetPublished": "none" if parts.slaves.published is None else parts.slaves.published.state,
        "messagesHeld": str(parts.store.parts.state.is_held).lower(),  # back, for a switchover
        "mayBeginEpoch": str(parts.turns.may_begin_epoch).lower(),  # it is being promoted
        "nameServersRegistered": f"{known}/{all_}",
        "connections": str(parts.server.connection_count + parts.vip_server.connection_count),
        "connectionsParked": str(parts.lanes.parked_count),  # bring more requests than can be served now
        **_files(parts),
        **_refused_settings(parts),
        "messagesDamaged": str(parts.store.lost_messages[0]),  # found by consumers and reads since the start
        "messagesDamagedLast": parts.store.lost_messages[1] or "none",
        "heldPullRequests": str(parts.hold.held_count),
        **parts.pop.figures(),
        "consumerFilters": str(len(parts.filters)),  # SQL92 conditions, those of groups that left for a day too
        "tlsMode": parts.config.effective_tls_mode,  # disabled, permissive or enforcing
        "tablesNotSaved": " ".join(name for name, table in tables.items() if table.is_failing) or "none",
    }
    for name, prefix in _LANE_PREFIXES.items():
        rows |= _lane(parts.lanes.by_name[name], prefix, is_told=name in _TOLD_BY_ROCKETMQ)
    return rows


def _files(parts: RuntimeInfoParts) -> dict[str, str]:
    """Connections that were refused because the process has too few files left, and when that last happened."""
    (count, at), (vip_count, vip_at) = parts.server.refused_for_files, parts.vip_server.refused_for_files
    last = max((moment for moment in (at, vip_at) if moment is not None), default=None)
    return {
        "openFilesMax": str(files_max()),
        "connectionsRefusedForFiles": str(count + vip_count),
        "outOfFilesSecondsAgo": _seconds_ago(last),
    }


def _refused_settings(parts: RuntimeInfoParts) -> dict[str, str]:
    """Requests for settings that no request may change: public attacks on RocketMQ begin with them."""
    refusals = parts.live_config.refusals
    return {
        "settingsRefused": str(refusals.count),
        "settingsRefusedFrom": refusals.last_peer or "none",
        "settingsRefusedSecondsAgo": _seconds_ago(refusals.last_at),
    }


def _seconds_ago(moment: float | None) -> str:
    return "never" if moment is None else str(int(time.monotonic() - moment))


def _lane(lane: Lane, prefix: str, *, is_told: bool) -> dict[str, str]:
    counts = {
        f"{prefix}Served": str(lane.served),
        f"{prefix}Rejected": str(lane.rejected),
        f"{prefix}Expired": str(lane.expired),
        f"{prefix}OnewayRefused": str(lane.oneway_refused),
    }
    if is_told:
        return counts
    return counts | {
        f"{prefix}Size": str(lane.size),
        f"{prefix}Capacity": str(lane.capacity),
        f"{prefix}HeadWaitTimeMills": str(lane.head_wait_ms()),
    }
