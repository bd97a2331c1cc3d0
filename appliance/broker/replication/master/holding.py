"""A master holds back messages before a switchover, until one slave has its whole log and tables.

For a while only, unless it hands over to that slave meanwhile (hand_over.py).
"""

from __future__ import annotations

import asyncio
import logging

from appliance.broker.epochs.turns import Turns
from appliance.broker.replication.master.slaves import Slave, SlaveService
from appliance.process.awake import awake_s
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

HOLD_S_MAX = 60
LOOK_S = 0.005
GONE_S = 2.0  # a slave that connects anew within this time is waited for


class Holding:
    """Producers get SERVICE_NOT_AVAILABLE meanwhile, which they send again elsewhere or later."""

    def __init__(self, store: MessageStore, slaves: SlaveService, turns: Turns) -> None:
        self._store = store
        self._slaves = slaves
        self._turns = turns
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = 0.0  # of awake_s
        self._is_pinned = False

    def begin(self, seconds: float) -> None:
        """Hold back what comes from now on, for so long at most."""
        if self._timer is not None:
            self._timer.cancel()
        self._ends_at = awake_s() + seconds
        self._store.hold(True)
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)

    def end(self) -> None:
        """Take messages again, unless a later epoch has begun meanwhile."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._go_on()

    @property
    def is_on(self) -> bool:
        return self._is_pinned or self._timer is not None

    def pin(self, pinned: bool) -> None:
        """Hold back whatever time and tools say; or no longer."""
        self._is_pinned = pinned
        if pinned:
            self._store.hold(True)
        else:
            self._go_on()

    def _go_on(self) -> None:
        if not self.is_on and self._turns.turn is None:
            self._store.hold(False)
            logger.warning("messages are accepted again", extra={"event": "hold_ended"})

    async def until_copied(self, slave_address: str, seconds: float) -> bool:
        """Wait until the slave has all; False when it has not after so long, is gone, or at the hold's end."""
        began = seen_at = awake_s()
        while (now := awake_s()) < min(self._ends_at, began + seconds) and self._turns.turn is None:
            there = [slave for slave in self._slaves.slaves if slave.broker == slave_address]
            if any(self._has_all(slave, began) for slave in there):
                return True
            seen_at = now if there else seen_at
            if now - seen_at > GONE_S:
                return False
            await asyncio.sleep(LOOK_S)
        return False

    def has_all(self, slave_address: str, *, within_s: float) -> bool:
        """Whether the slave has all, and has said so of the tables within this time."""
        began = awake_s() - within_s
        return any(slave.broker == slave_address and self._has_all(slave, began) for slave in self._slaves.slaves)

    def _has_all(self, slave: Slave, began: float) -> bool:
        """It has the log, and has itself said that it has the tables as of the hold's begin or later: one that stands
        still is not promoted."""
        has_tables = slave.told_at >= began and not slave.states
        return slave.acknowledged >= self._store.max_physical_offset and has_tables
