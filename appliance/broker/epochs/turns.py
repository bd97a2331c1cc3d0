"""What makes a broker close and open anew in the same process: another role, or a log that has to end earlier."""

from __future__ import annotations

import asyncio
import math
import time
from typing import NamedTuple


class Promotion(NamedTuple):
    """A slave becomes the master, in a new epoch. untold: HA addresses of the master of before. above: the highest
    epoch that any member knows; members: the others, where they serve. epoch_id: the one that etcd has on record for
    the epoch after `above`; "": none does. until: of `awake_s`; one that is later is given up, since its master may
    take messages again by then."""

    broker_role: str
    untold: tuple[str, ...]
    above: int
    members: tuple[str, ...] = ()
    epoch_id: str = ""
    until: float = math.inf


class Demotion(NamedTuple):
    """A master has heard of a later epoch: it becomes a slave."""

    epoch: int
    master: str
    id: str = ""


class Cut(NamedTuple):
    """A slave's log has to end there before it can follow its master."""

    end: int


Turn = Promotion | Demotion | Cut


def awake_s() -> float:
    """Seconds that go on while this process, or the machine, stands still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Turns:
    """The turn that one opened broker is to take; the first that is asked for."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self.turn: Turn | None = None

    def ask(self, turn: Turn) -> None:
        """Take this turn soon, unless another one was asked for."""
        if self.turn is None:
            self.turn = turn
            self._asked.set()

    async def wait(self) -> Turn:
        """Return the turn once one is asked for."""
        await self._asked.wait()
        assert self.turn is not None
        return self.turn
