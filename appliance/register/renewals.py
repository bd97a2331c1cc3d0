"""A master renews its beat in etcd, and knows until when that proves it to be the master.

A thread with a loop and connections of its own: a busy event loop must not cost the master its proof. But one that
stands still must, so each round asks whether the broker is healthy. What guards the proof:

    it counts from before the first sending of a counter that etcd is known to have, never from an answer
    a renewal names the revisions of term and beat; after an outage of etcd it goes on in the same epoch
    in another etcd than the one in which the record was begun or adopted it proves nothing
    who finds another session's beat in its epoch stops, and waits until that one has been still for a lease
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import threading
from collections.abc import Callable

from appliance.failover.lease import RENEW_EVERY_S, Beats, Watched, deadline
from appliance.failover.view import Beat, TermState
from appliance.register.etcd import EtcdError, OutcomeUnknown
from appliance.register.register import RESTORED, Register
from appliance.register.term import Term, View

logger = logging.getLogger(__name__)

TRIES = 3  # of one counter; each try at a member of etcd has its own deadline
SESSION_BYTES = 8
STANDS_STILL = "this broker does not turn, or its disk takes nothing"
EARLY_S = 0.05


class Renewals:
    """Of one epoch. clock: seconds that go on while this process, or the machine, stands still.

    is_healthy, on_other: called on the thread; the second with the term of another epoch that is on record, unless etcd
    is another one than that in which the record was begun. group: of the store by now, "": none; also on the thread.
    """

    def __init__(
        self,
        register: Register,
        *,
        lease_s: float,
        clock: Callable[[], float],
        is_healthy: Callable[[], bool],
        on_other: Callable[[Term], None],
        group: Callable[[], str] = str,
    ) -> None:
        self._register = register
        self._group = group
        self._lease_s = lease_s
        self._clock = clock
        self._is_healthy = is_healthy
        self._on_other = on_other
        self.epoch, self.epoch_id = 0, ""
        self._beats = Beats()
        self._revisions: tuple[int, int] | None = None  # of term and beat, as they are known to be; None: look
        self._cluster_id = 0  # of the etcd whose revisions these are
        self._rival = Watched()  # another session's beat
        self._task: asyncio.Task[None] | None = None  # of the thread
        self._is_over = False
        self._thread: threading.Thread | None = None
        self.session = secrets.token_hex(SESSION_BYTES)
        self.until = -math.inf  # of the clock: so long this process is proven to be the master
        self.why_not = "etcd has not answered yet"
        self._is_early = False  # it has not been proven yet: look soon again
        self.is_unrecorded = False  # etcd has no term: no member can take over yet

    @property
    def has_started(self) -> bool:
        return self._thread is not None

    def start(self, epoch: int, epoch_id: str) -> None:
        """Renew from now on, for this epoch."""
        self.epoch, self.epoch_id = epoch, epoch_id
        self._thread = threading.Thread(target=self._work, name="renewals", daemon=True)
        self._thread.start()

    def go_on_for(
        self, is_healthy: Callable[[], bool], on_other: Callable[[Term], None], group: Callable[[], str]
    ) -> None:
        """Ask and tell these from the next round on: the broker that renews opens as the master."""
        self._is_healthy, self._on_other, self._group = is_healthy, on_other, group

    def stop(self) -> None:
        """End the thread. Blocks for a moment. What etcd has stands there until its lease is over."""
        self._is_over = True
        if self._thread is None:
            return
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended already
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._thread = None

    # -- on the thread ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            return
        except Exception as exc:  # the proof ends with it, and the master with that
            self.why_not = f"renewing ended: {exc!r}"
            logger.exception("renewing ended", extra={"event": "renewals_ended"})

    async def _run(self) -> None:
        self._task = asyncio.current_task()
        while not self._is_over:
            began = self._clock()
            if self._is_healthy():
                await self.round()
            else:
                self._note(STANDS_STILL)
            every_s = EARLY_S if self._is_early else RENEW_EVERY_S
            await asyncio.sleep(max(every_s - (self._clock() - began), 0.01))

    async def round(self) -> None:
        """Renew once, with a new counter."""
        counter = self._beats.next(self._clock())
        for _ in range(TRIES):
            try:
                if self._revisions is None and not await self._look():
                    return
                assert self._revisions is not None
                term_revision, beat_revision = self._revisions
                self._revisions = None
                beat = Beat(self.session, counter, self._lease_s)
                renewed = await self._register.renew(beat, term_revision, beat_revision, self._cluster_id)
            except OutcomeUnknown as exc:  # the next look tells; until then nothing is proven by it
                self._note(str(exc))
                continue
            except EtcdError as exc:
                self._note(str(exc))
                return
            if renewed is not None:
                self._revisions = term_revision, renewed
                self._arrived(counter)
                return

    async def _look(self) -> bool:
        """Read term and beat; return whether this process may renew."""
        self._register.group = self._group()
        view = await self._register.view()
        self.is_unrecorded = view.term is None
        if view.term is None or view.is_restored or not view.term.is_of(self.epoch, self.epoch_id):
            owner = "nothing" if view.term is None else f"epoch {view.term.epoch} of {view.term.owner}"
            self._note(f"it has {owner} on record" + (f", and {RESTORED}" if view.is_restored else ""))
            if view.term is not None and not view.is_restored:
                self._on_other(view.term)
            return False
        if why_not := self._why_not_own(view.term):
            self._note(why_not)
            return False
        if view.beat is not None and view.beat.session == self.session:
            self._arrived(view.beat.counter)
        elif self._is_rivals(view):
            self._note("another process renews this epoch: a copy of this store is open as a master")
            return False
        self._rival, self._cluster_id = Watched(), view.cluster_id
        self._revisions = view.term_revision, view.beat_revision
        return True

    def _why_not_own(self, term: Term) -> str:
        """Why this process does not hold the epoch, as the record says; "" when it does."""
        own = self._register.session
        self._is_early = own != "" and self.until == -math.inf  # it is about to have its session there
        if own and term.session != own:
            return "this process has not taken over the epoch of the one before it yet"
        return "this master has given up its role" if term.state == TermState.RELEASED else ""

    def _is_rivals(self, view: View) -> bool:
        """Whether another session has taken this epoch over from here, and still renews. At the start there is only the
        one of the process before, whose epoch the register has given to this one."""
        if view.beat is None or self._beats.first_sent is None:
            return False
        lease_s = max(self._lease_s, view.beat.lease_s)
        return not self._rival.is_still(view.beat_revision, lease_s, self._clock())

    def _arrived(self, counter: int) -> None:
        self._is_early = False
        self._beats.arrived(counter)
        if self._beats.first_sent is not None:
            self.until = deadline(self._beats.first_sent, self._lease_s)
        self._note("")

    def _note(self, why_not: str) -> None:
        """Log what has changed, not each second."""
        if why_not == self.why_not:
            return
        self.why_not = why_not
        if why_not:
            logger.warning("not renewed in etcd", extra={"event": "not_renewed", "why": why_not})
        else:
            logger.info("renewed in etcd", extra={"event": "renewed"})
