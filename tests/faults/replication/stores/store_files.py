"""The files of a broker's commit log, and their deletion."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from gantrymq import AdminClient
from tests.harness import LocalCluster
from tests.waiting import wait_until

EXPIRED_S = 100 * 3600.0  # beyond fileReservedTime


def log_files(peer: LocalCluster) -> list[Path]:
    return sorted(path for path in (peer.store / "commitlog").iterdir() if path.name.isdecimal())


def delete_expired(master: LocalCluster, count: int) -> int:
    """Have the master delete so many of its oldest files, as if they were as old; return where its log begins then."""

    async def ask() -> None:
        async with AdminClient(master.namesrv_address, timeout_s=30) as admin:
            await admin.brokers.delete_expired_commit_log(master.broker_address)

    old = time.time() - EXPIRED_S
    going = log_files(master)[:count]
    for path in going:
        os.utime(path, (old, old))
    asyncio.run(ask())
    wait_until(lambda: not any(path.exists() for path in going))
    return int(log_files(master)[0].name)
