"""Replication in the table of 28, all our own keys: a master tells of its slaves, a slave of itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

if TYPE_CHECKING:  # rooms that need the counters of this one
    from appliance.broker.epochs.membership import Membership
    from appliance.broker.epochs.standing import Standing
    from appliance.broker.replication.follower import Follower
    from appliance.broker.replication.master.slaves import SlaveService

GONE_NAMED_MAX = 16


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
