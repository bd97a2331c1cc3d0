"""Which brokers to leave alone for a while because they were slow or failed (Java: MQFaultStrategy), without I/O.

A send says how long its broker took. From 0.55 s on, messages that may go to any queue go elsewhere for a time that
grows with what was waited: 30 s, 1, 2, 3 and 10 minutes. A failed try counts as one that took 30 s. When every broker
of the topic is to be left alone, the better half of them is used in turn.

That has to be asked for. What every producer does is less: `Silences` keeps messages for any queue from brokers that
did not answer at all, one of which would hold up each message that meets it for a whole try.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from gantrymq.message.model import MessageQueue

# Java: latencyMax and notAvailableDuration, in seconds
PENALTIES_S = ((15.0, 600.0), (3.0, 180.0), (2.0, 120.0), (1.0, 60.0), (0.55, 30.0))
FAILED_S = 30.0  # what a failed try counts as

SILENT_S = 2.0  # for so long a broker that did not answer is left alone; doubles each time
SILENT_S_MAX = 60.0
LOOK_S = 10.0  # so long others wait for the message that goes there first


class _Fault(NamedTuple):
    took_s: float
    until: float


class FaultLatency:
    """What a producer knows of its brokers. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._faults: dict[str, _Fault] = {}  # by broker name: as many as the cluster has
        self._turn = itertools.count()

    def note(self, broker_name: str, took_s: float, *, has_failed: bool = False) -> None:
        """A try at the broker ended, after so long. The last one counts."""
        counted_s = FAILED_S if has_failed else took_s
        pause_s = next((pause_s for least_s, pause_s in PENALTIES_S if counted_s >= least_s), 0.0)
        self._faults[broker_name] = _Fault(took_s, self._clock() + pause_s)

    def is_available(self, broker_name: str) -> bool:
        """Whether messages may go there again."""
        fault = self._faults.get(broker_name)
        return fault is None or fault.until <= self._clock()

    def least_bad(self, broker_names: Iterable[str]) -> str:
        """When none is available: one of the better half of these, in turn. There has to be one at least."""
        ranked = sorted(broker_names, key=lambda name: self._faults.get(name, _Fault(0.0, 0.0)))
        return ranked[next(self._turn) % max(len(ranked) // 2, 1)]


class _Silence(NamedTuple):
    until: float
    pause_s: float
    is_looked_at: bool  # a message is on its way there


class Silences:
    """The brokers that did not answer a try in time, or can't be reached, until one answers. clock: as above.

    After the pause one message goes there; the others wait for what becomes of it. Where all brokers are silent, this
    machine may be the slow one: then all are used.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.known: dict[str, _Silence] = {}  # by broker name: empty while all is well
        self._clock = clock

    def failed(self, broker_name: str) -> None:
        """A try there had no answer. Of tries that were on their way together the first counts."""
        silence, now = self.known.get(broker_name), self._clock()
        if silence is not None and silence.until > now and not silence.is_looked_at:
            return
        pause_s = SILENT_S if silence is None else min(2 * silence.pause_s, SILENT_S_MAX)
        self.known[broker_name] = _Silence(now + pause_s, pause_s, False)

    def answered(self, broker_name: str) -> None:
        """It answered, whatever it said."""
        self.known.pop(broker_name, None)

    def usable(
        self, queues: Sequence[MessageQueue], avoid: Collection[str], *, may_look: bool = True
    ) -> Sequence[MessageQueue]:
        """The queues at brokers that are neither silent nor to be avoided; all when there are none. may_look: those
        where a message should look again are among them. Threads may ask, too."""
        now = self._clock()
        known = list(self.known.items())  # the loop's thread may change it meanwhile
        silent = {name for name, silence in known if silence.until > now or not may_look}
        return [
            queue for queue in queues if queue.broker_name not in silent and queue.broker_name not in avoid
        ] or queues

    def chosen(self, broker_name: str) -> None:
        """A message is sent there. After the pause it is the one that looks whether the broker answers again."""
        silence, now = self.known.get(broker_name), self._clock()
        if silence is not None and silence.until <= now:
            self.known[broker_name] = _Silence(now + LOOK_S, silence.pause_s, True)
