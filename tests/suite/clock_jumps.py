"""`--clock-jumps SEED`: the process of the tests loses the core again and again, without anyone having to wait.

The clocks that only go forward jump ahead at random, as they do for a process that others keep from its core: now a
slice of 2 ms ends after its first message, now a limit of a second is over before it was looked at. What a test then
takes for a fault is one of its own, or a constant of ours that assumes a speed.

The clocks are replaced before anything of ours is imported (tests/machine.py), because modules keep them in defaults.
uvloop, compiled code and other processes keep theirs, and the wall clock stays: for us it is one that is set back.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

OPTION = "--clock-jumps"
VARIABLE = "GANTRY_TEST_CLOCK_JUMPS"  # the seed, for the workers of a parallel run

ONE_IN = 20  # calls
USUAL_NS = (1_000_000, 50_000_000)
LONG_NS = 500_000_000
LONG_ONE_IN = 50  # jumps
# A test that only reads the clock would be at the end of every limit at once: as much is lost as on a machine that
# has three times as much to do as it can, and a few seconds more.
AT_ONCE_NS = 3_000_000_000
LOST_PER_PASSED = 2


@dataclass
class JumpingClock:
    """Real time and what was lost so far. Never goes back, and all threads see the same."""

    seed: str
    lost_ns: int = 0
    jumps: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)  # what runs in a collection of garbage may ask, too
    _real_ns = staticmethod(time.monotonic_ns)

    def __post_init__(self) -> None:
        os.register_at_fork(after_in_child=self._forked)
        self.begin("")

    def begin(self, test: str) -> None:
        """The same jumps again for a test with this name, whatever ran before."""
        with self._lock:
            self._random = random.Random(f"{self.seed} {test}")
            self._began_ns, self._lost_before_ns = self._real_ns(), self.lost_ns

    def monotonic_ns(self) -> int:
        with self._lock:
            if self._random.random() * ONE_IN < 1:
                self._jump()
            return self._real_ns() + self.lost_ns

    def monotonic(self) -> float:
        return self.monotonic_ns() / 1e9

    def _forked(self) -> None:
        """Another thread may have had the lock."""
        self._lock = threading.RLock()

    def _jump(self) -> None:
        is_long = self._random.random() * LONG_ONE_IN < 1
        wanted = LONG_NS if is_long else self._random.randint(*USUAL_NS)
        allowed = AT_ONCE_NS + LOST_PER_PASSED * (self._real_ns() - self._began_ns)
        if self.lost_ns - self._lost_before_ns + wanted <= allowed:
            self.lost_ns += wanted
            self.jumps += 1


def install_if_asked() -> JumpingClock | None:
    """Replace the clocks of a process that runs tests, if its command or its environment says so."""
    seed = _seed_of(sys.argv) or os.environ.get(VARIABLE)
    if seed is None or "pytest" not in sys.modules:
        return None
    os.environ[VARIABLE] = seed
    clock = JumpingClock(seed)
    time.monotonic = time.perf_counter = clock.monotonic
    time.monotonic_ns = time.perf_counter_ns = clock.monotonic_ns
    return clock


def _seed_of(arguments: Iterable[str]) -> str | None:
    """Read by hand: pytest knows its options only when it has imported a lot."""
    arguments = list(arguments)
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == OPTION:
            return value or next(iter(arguments[place + 1 :]), None)
    return None


CLOCK = install_if_asked()
