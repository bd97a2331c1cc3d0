"""automaticFailover: a master that etcd does not prove to be one steps down, before another may begin.

Past its deadline it accepts and confirms nothing: sends that wait lose their connection without an answer, since what
becomes of them the next master decides. Consumers read on, up to what was confirmed. Once etcd has the next beat in the
same epoch it goes on.

The deadline is looked at where confirmations are made, once for all that a slave acknowledges: every answer to a send
waits for them, also where the compiled path read the request. So a process that stood still confirms nothing when it
wakes, and the path of requests pays nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Iterator

from appliance.broker.epochs.standing import StandingFile
from appliance.process.awake import awake_s
from appliance.register.opening import register_of
from appliance.register.register import Register
from appliance.register.renewals import Renewals
from appliance.register.term import Term
from appliance.settings.roles import BrokerConfig
from store.base.running_state import RunningFlags
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

LOOK_S = 0.25
FLUSH_DUE = 0.25  # of the lease: with the log unflushed for so long, the disk is asked whether it writes
OPENING_LEASES = 3  # for closing as a slave, and again for opening; then it is taken for one that hangs


def early_renewals(config: BrokerConfig, session: str, epoch: int, epoch_id: str, group: str) -> Renewals:
    """Begin to renew an epoch that this process has taken, while it closes as a slave: for some leases at most. A slow
    one loses the epoch to the next candidate otherwise, and that one to the next."""
    register = register_of(config)
    assert register is not None, "automaticFailover needs etcdEndpoints"
    register.session = session
    lease_s = config.failover_lease_s
    closes_until = awake_s() + OPENING_LEASES * lease_s
    renewals = Renewals(
        register,
        lease_s=lease_s,
        clock=awake_s,
        is_healthy=lambda: awake_s() < closes_until,
        on_other=lambda term: None,  # told again each round, and heard of once this broker is open
        group=lambda: group,
    )
    renewals.start(epoch, epoch_id)
    return renewals


class MasterProof:
    """One master's. on_change: called by `run` when the proof or `may_register` has changed. on_other: on the loop."""

    def __init__(
        self,
        register: Register,
        store: MessageStore,
        standing: StandingFile,
        *,
        lease_s: float,
        on_change: Callable[[], None],
        on_other: Callable[[Term], None],
        group: Callable[[], str] = str,
    ) -> None:
        self._store = store
        self._standing = standing
        self._lease_s = lease_s
        self._on_change = on_change
        self._on_other = on_other
        self._group = group
        self._ticked_at = self._flushed_at = awake_s()
        self._flushed = -1
        self._writes_since = math.inf  # what `writing` is about
        self._was_proven = self._was_registered = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_given_up = False
        self.renewals = Renewals(
            register,
            lease_s=lease_s,
            clock=awake_s,
            is_healthy=self._is_healthy,
            on_other=self._told,
            group=group,
        )

    @property
    def is_proven(self) -> bool:
        """Whether this broker may accept and confirm messages now. A clock is read: once for a batch."""
        return not self._has_given_up and awake_s() < self.renewals.until

    @property
    def may_register(self) -> bool:
        """Whether name servers may have this broker as the master; also before there is a record, which needs it."""
        return self.is_proven or self.renewals.is_unrecorded

    @property
    def lacking(self) -> str:
        """Why this master takes no messages; "" when it may."""
        if self._has_given_up:
            return "this master has given up its role"
        why_not = self.renewals.why_not or "the last renewal has no answer yet"
        return "" if self.is_proven else f"etcd does not prove that this is the master: {why_not}"

    def give_up(self) -> None:
        """Confirm nothing more from now on, whatever etcd proves: before it is put on record."""
        self._has_given_up = True
        self._look()

    def take_back(self) -> None:
        """No other member has begun, and none can: etcd has this master on record again, or is about to."""
        self._has_given_up = False
        self._look()

    @property
    def left_s(self) -> float:
        """For how long the proof holds without another renewal, seconds."""
        return max(self.renewals.until - awake_s(), 0.0)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """While the block runs, the disk is to take something beside the log: a master that opens waits for that before
        it accepts a message, so its log has nothing to flush then."""
        self._writes_since = awake_s()
        try:
            yield
        finally:
            self._writes_since = math.inf

    def begin(self, renewals: Renewals) -> None:
        """Go on with these while this broker opens, for some leases at most."""
        self._ticked_at = self._flushed_at = awake_s() + (OPENING_LEASES - 1) * self._lease_s
        renewals.go_on_for(self._is_healthy, self._told, self._group)
        self.renewals = renewals

    async def run(self) -> None:
        """Renew, and look at the deadline, until cancelled."""
        self._loop = asyncio.get_running_loop()
        epochs = self._standing.standing.epochs
        if self.renewals.has_started and awake_s() - self._ticked_at >= self._lease_s:
            facts = {"event": "opening_late", "lease_s": self._lease_s, "leases": OPENING_LEASES}
            logger.error("opening took longer than it may be renewed: raise failoverLeaseSeconds", extra=facts)
        self._look()
        if not self.renewals.has_started:
            self.renewals.start(epochs.current, epochs.current_id)
        try:
            while True:
                self._look()
                await asyncio.sleep(min(LOOK_S, max(self.left_s, 0.01)) if self._was_proven else LOOK_S / 5)
        finally:
            await asyncio.to_thread(self.renewals.stop)

    def _look(self) -> None:
        now = self._ticked_at = awake_s()
        flushed = self._store.flushed_offset
        if flushed != self._flushed or flushed >= self._store.max_physical_offset:
            self._flushed, self._flushed_at = flushed, now
        elif now - self._flushed_at >= self._lease_s * FLUSH_DUE:
            self._store.flush_soon()  # a little would wait for 10 s, and say nothing of the disk
        is_proven = self.is_proven
        if self.may_register != self._was_registered:
            self._was_registered = not self._was_registered
            self._on_change()
        if is_proven == self._was_proven:
            return
        self._was_proven = is_proven
        if is_proven:
            logger.info("etcd proves that this is the master", extra={"event": "master_proven"})
        else:
            logger.error("master steps down", extra={"event": "master_steps_down", "why": self.lacking})
        self._on_change()

    # -- on the thread of the renewals --------------------------------------------------------------------------------

    def _is_healthy(self) -> bool:
        """Whether its loop turned and its disk took what it was given within a lease, without an error."""
        still_s = awake_s() - min(self._ticked_at, self._flushed_at, self._writes_since)
        return still_s < self._lease_s and not self._store.flags & ~(RunningFlags.DISK_FULL | RunningFlags.INDEX_ERROR)

    def _told(self, term: Term) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_other, term)
