"""The files of a broker's commit log, and their deletion."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gantrymq import SyncAdminClient
from tests.harness import LocalCluster
from tests.waiting import wait_until

EXPIRED_S = 100 * 3600.0  # beyond fileReservedTime


def log_files(peer: LocalCluster) -> list[Path]:
    return sorted(path for path in (peer.store / "commitlog").iterdir() if path.name.isdecimal())


def delete_expired(master: LocalCluster, count: int) -> int:
    """Have the master delete so many of its oldest files, as if they were as old; return where its log begins then."""
    old = time.time() - EXPIRED_S
    going = log_files(master)[:count]
    for path in going:
        os.utime(path, (old, old))
    with SyncAdminClient(master.namesrv_address, timeout_s=30) as admin:
        admin.brokers.delete_expired_commit_log(master.broker_address)
    wait_until(lambda: not any(path.exists() for path in going))
    return int(log_files(master)[0].name)
