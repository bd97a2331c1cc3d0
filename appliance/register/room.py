"""Whether etcd has room for changes: it refuses all of them once its database has reached its quota, and comes there in
time if it is never compacted, since each renewal is a change that it keeps. What is not known is no trouble."""

from __future__ import annotations

import logging
from typing import NamedTuple

from appliance.register.etcd import EtcdClient, EtcdError, Health
from gantrymq.byte_size import readable
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

NO_SPACE, CORRUPT = "NOSPACE", "CORRUPT"  # alarms of etcd
CHANGES_KEPT = 1_000_000  # more than days of renewals: above what etcd keeps when it is compacted
LARGE_BYTES = 512 << 20  # a quarter of etcd's own quota: others may make as many changes, or it is compacted each day
ROOM_S = 1.0  # asked beside the record: a caller that waits for the record must not lose it for this
RUNBOOK = "see “etcd has no room” in the failover runbook"


class Trouble(NamedTuple):
    """text: "" when there is none. is_refusing: etcd executes no change now."""

    text: str = ""
    is_refusing: bool = False


async def trouble_of(
    client: EtcdClient, key: str, changes_kept: int = CHANGES_KEPT, large_bytes: int = LARGE_BYTES
) -> Trouble:
    """key: one that this client may read. An etcd that is slow about it is not waited for."""
    try:
        async with timeout(ROOM_S):
            health = await client.health()
            if found := _alarm(health):
                return found
            old = health.revision - changes_kept
            if old > 0 and health.size >= large_bytes and await client.has_kept(key, old):
                return Trouble(
                    f"etcd has kept its last {changes_kept:,} changes and more ({readable(health.size)}): it is never "
                    f"compacted, or too seldom, and once it is full it refuses every change; {RUNBOOK}"
                )
    except (EtcdError, TimeoutError) as exc:
        logger.debug("whether etcd has room is not known: %s", exc)
    return Trouble()


def _alarm(health: Health) -> Trouble | None:
    if NO_SPACE in health.alarms:
        return Trouble(
            f"etcd's database is full ({readable(health.size)}), so it refuses every change and masters can't renew: "
            f"compact it, defragment its members, then `etcdctl alarm disarm`; {RUNBOOK}",
            is_refusing=True,
        )
    if CORRUPT in health.alarms:
        return Trouble(
            "members of etcd have found that their data differ (CORRUPT): replace the member that etcd's log names",
            is_refusing=True,
        )
    return None
