"""The supervisor as witness: a broker that it has seen die has its master's role released in etcd.

A successor then begins at once, instead of after the lease. It speaks only of a process whose exit the guardian has
reaped, by the identity that it noted when it started it, so never of one that still runs: not of a stopped one, nor of
the one that was started next.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from appliance.process.process_identity import identity
from appliance.register.etcd import EtcdError
from appliance.register.opening import register_of
from appliance.register.register import Register
from appliance.settings.loader import load_broker_config
from gantrymq.errors import GantryError

logger = logging.getLogger(__name__)

TRIES = 5  # later ones save no time: the lease is over
RETRY_S = 0.5


async def broker_died(properties: Path, pid: int, started_ticks: int | None) -> None:
    """Release the role of this dead process, if it had one. Bounded; whatever fails costs a lease."""
    process = identity(pid, started_ticks)
    register = await asyncio.to_thread(_register, properties)
    if register is None or not process:
        return
    facts = {"event": "master_death_witnessed", "pid": pid, "broker": str(properties)}
    for _ in range(TRIES):
        try:
            if await register.witness(process):
                logger.warning("master has died: its role is free", extra=facts)
            return
        except EtcdError as exc:
            logger.warning("etcd does not have a dead broker on record", extra=facts | {"why": str(exc)})
        await asyncio.sleep(RETRY_S)


def _register(properties: Path) -> Register | None:
    """None for a broker without automatic failover."""
    try:
        config, _store, _ignored = load_broker_config(properties)
        return register_of(config) if config.automatic_failover else None
    except (GantryError, OSError) as exc:
        logger.warning("settings can't be read", extra={"event": "witness_failed", "why": str(exc)})
        return None
