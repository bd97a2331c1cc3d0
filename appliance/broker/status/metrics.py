"""Metrics of the broker's services for GET_BROKER_RUNTIME_INFO (28): our own keys beside RocketMQ's.

RocketMQ tells size, capacity and head wait of four of its queues; here every lane has them, under the name that its
capacity's setting has. `…Served`, `…Rejected`, `…Expired` and `…OnewayRefused` count since the start: rejected are
requests that a full lane refused, expired those that waited too long in it (fast failure), and of the rejected those
that are one-way are lost without an answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from appliance.process.json_file import SavedTable
from appliance.remoting.acceptor import files_max
from appliance.remoting.lane import Lane
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.broker.epochs.membership import Membership
    from appliance.broker.epochs.standing import Standing
    from appliance.broker.replication.follower import Follower
    from appliance.broker.replication.master.slaves import SlaveService

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
GONE_NAMED_MAX = 16


def service_metrics(parts: BrokerController) -> dict[str, str]:
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


def _files(parts: BrokerController) -> dict[str, str]:
    """Connections that were refused because the process has too few files left, and when that last happened."""
    (count, at), (vip_count, vip_at) = parts.server.refused_for_files, parts.vip_server.refused_for_files
    last = max((moment for moment in (at, vip_at) if moment is not None), default=None)
    return {
        "openFilesMax": str(files_max()),
        "connectionsRefusedForFiles": str(count + vip_count),
        "outOfFilesSecondsAgo": _seconds_ago(last),
    }


def _refused_settings(parts: BrokerController) -> dict[str, str]:
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


def epoch_metrics(standing: Standing) -> dict[str, str]:
    """Whose log it is. roleGiven: by a promotion or its opposite, instead of what the settings say."""
    return {
        "epoch": str(standing.epochs.current),
        "epochHighest": str(standing.epochs.highest),
        "epochStart": str(standing.epochs.history[-1].start if standing.epochs.history else 0),
        "epochId": standing.epochs.history[-1].id if standing.epochs.history else "none",
        "epochRival": "none" if standing.rival is None else standing.rival.text,
        "epochHandedTo": "none" if standing.handed_to is None else standing.handed_to.text,
        "slaveIdBefore": str(standing.slave_id),  # which a master had as a slave: the one before it takes it
        "roleGiven": "none" if standing.role is None else f"instead of {standing.role.instead}",
    }


def member_metrics(member: Membership) -> dict[str, str]:
    """Which member of which group the store is. memberBoot: since then its log has lost nothing."""
    return {
        "memberNumber": str(member.number),  # 0: it has not joined
        "memberGroup": member.group or "none",
        "memberStore": member.store or "none",
        "memberBoot": member.boot or "none",
    }


def master_metrics(slaves: SlaveService) -> dict[str, str]:
    """What is known of the slaves. slavesGone: "host seconds" of those that went and did not come back."""
    behind = slaves.behind_bytes
    connected = sorted((each for each in slaves.slaves if each.acknowledged >= 0), key=lambda slave: slave.address)
    told = SlaveDifferences(
        [
            SlaveDifference(
                slave.address,
                slaves.lacks(slave),
                round(slave.seconds_behind, 1),
                slaves.is_in_sync(slave),
                round(slave.rate.bytes_per_s),
                -1 if slave.messages_behind is None else slave.messages_behind,
            )
            for slave in connected
        ]
    )
    gone = slaves.gone_for()
    return {
        "masterFencedBy": slaves.fenced_by or "none",
        "masterProof": "none" if slaves.proof is None else slaves.proof.lacking or f"{slaves.proof.left_s:.1f} s",
        "haTlsMode": slaves.guard.tls_mode,
        "haAccounts": str(slaves.guard.needs_account).lower(),
        "slavesConnected": str(len(connected)),
        "slaveBehindBytes": "none" if behind is None else str(behind),  # of the one that has most
        "slavesInSync": str(sum(map(slaves.is_in_sync, connected))),
        "slavesInSyncSet": ",".join(slaves.in_sync.names if slaves.in_sync is not None else ()) or "none",
        "confirmedOffset": str(slaves.in_sync.confirmed) if slaves.in_sync is not None else "none",
        "slaveDifferences": told.to_json().decode(),
        "slavesGone": ",".join(f"{host} {seconds:.0f}" for host, seconds in gone[:GONE_NAMED_MAX]) or "none",
    }


def slave_metrics(follower: Follower) -> dict[str, str]:
    """What a slave is doing."""
    client, told, told_at = follower.ha_client, follower.sink.in_sync, follower.sink.told_at
    fence = follower.synchronize.fence
    return {
        "slaveState": str(client.state),
        "slaveStateWhy": client.why or "none",
        "slaveMaster": client.master_address or "none",
        "slaveReceivedBytes": str(client.received_bytes),
        "slaveMasterEnd": str(client.master_end),  # of its log, when it was last heard of
        "slaveHeardSecondsAgo": f"{time.monotonic() - client.heard_at:.1f}" if client.heard_at else "never",
        "slaveConnection": client.own_address or "none",  # as the master names this slave
        "inSyncSetTold": ",".join(told.names) or "none",  # by the master, as it said last
        "confirmedOffsetTold": str(told.confirmed),
        "inSyncEpochTold": str(told.epoch),
        "inSyncVersionTold": str(told.version),
        "inSyncLeaveSecondsTold": f"{told.leave_s:g}",
        "slaveToldSecondsAgo": "never" if told_at is None else f"{time.monotonic() - told_at:.2f}",
        "slaveMasterBroker": client.master_broker or "none",  # where it serves requests
        "slaveApacheBegin": str(fence.begin if client.has_joined else -1),  # of the log of a fenced Apache master
        "slaveApacheEnd": str(fence.end if client.has_joined else -1),
    }
