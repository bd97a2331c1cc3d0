"""What makes a broker close and open anew in the same process: another role, or a log that has to end earlier."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NamedTuple


class Promotion(NamedTuple):
    """A slave becomes the master, in a new epoch. untold: HA addresses of the master of before. above: the highest
    epoch that any member knows; members: the others, where they serve. epoch_id: the one that etcd has on record for
    the epoch after `above`; "": none does. in_sync: where the others serve that etcd has on record in that epoch's set:
    nothing is confirmed without them until they are not there any more."""

    broker_role: str
    untold: tuple[str, ...]
    above: int
    members: tuple[str, ...] = ()
    epoch_id: str = ""
    in_sync: tuple[str, ...] = ()


class Demotion(NamedTuple):
    """A master has heard of a later epoch: it becomes a slave."""

    epoch: int
    master: str
    id: str = ""


class Cut(NamedTuple):
    """A slave's log has to end there before it can follow its master."""

    end: int


Turn = Promotion | Demotion | Cut


class Turns:
    """The turn that one opened broker is to take; the first that is asked for. asked: ids of the epochs that this
    process has asked etcd for by hand. unsettled: which etcd may still execute that, and the revision of the term that
    it compares; None: none does."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._promotions = 0  # that are being decided on
        self.turn: Turn | None = None
        self.asked: set[str] = set()
        self.unsettled: tuple[int, int] | None = None

    def go_on_from(self, before: Turns) -> None:
        """Know what the same process has asked etcd for before its last turn."""
        self.asked, self.unsettled = before.asked, before.unsettled

    @property
    def may_begin_epoch(self) -> bool:
        """Whether this broker may be about to begin an epoch. Once it is not, no earlier request makes it do so."""
        return self.is_deciding or self.unsettled is not None

    @property
    def is_deciding(self) -> bool:
        """Whether a promotion is being decided on, or a turn is asked for."""
        return self._promotions > 0 or self.turn is not None

    @contextlib.contextmanager
    def deciding(self) -> Iterator[None]:
        """While the block runs, this broker may ask for a promotion."""
        self._promotions += 1
        try:
            yield
        finally:
            self._promotions -= 1

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
