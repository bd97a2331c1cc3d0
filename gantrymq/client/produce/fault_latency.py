"""Which brokers to leave alone for a while because they were slow or failed (Java: MQFaultStrategy), without I/O.

A send says how long its broker took. From 0.55 s on, messages that may go to any queue go elsewhere for a time that
grows with what was waited: 30 s, 1, 2, 3 and 10 minutes. A failed try counts as one that took 30 s. When every broker
of the topic is to be left alone, the better half of them is used in turn.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

# Java: latencyMax and notAvailableDuration, in seconds
PENALTIES_S = ((15.0, 600.0), (3.0, 180.0), (2.0, 120.0), (1.0, 60.0), (0.55, 30.0))
FAILED_S = 30.0  # what a failed try counts as


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
