"""Whether another process tells etcd that it is this member, too: one of the two runs on a copy of the other's store.

A process of before has told of itself, and tells no more; so it takes one that is known to run, or something that was
told since this process first looked; and twice for more than a refusal, since etcd may have executed one word late.
No I/O.
"""

from __future__ import annotations

from collections.abc import Callable

from appliance.broker.failover.on_record import FIGURES_LIFE_S
from appliance.failover.view import Figures

OTHERS_TURN_S = 5.0  # two turns of the other one, if there is one: until then it is not told over


class Tellers:
    """As the process of this session sees them. runs: whether another one's process does; None: that is not known."""

    def __init__(self, session: str, runs: Callable[[str], bool | None]) -> None:
        self._session = session
        self._runs = runs
        self._other: tuple[int, float] | None = None  # its revision, and until when it has to be seen again
        self._has_told = False
        self._told_at = 0.0  # when another one was last seen to tell
        self._words = 0  # of another one that were new
        self.is_twice = False
        self.is_sure = False  # it is not the last word of one that is dead
        self.boot = ""  # of the other one

    def look(self, said: tuple[int, Figures] | None, now: float) -> None:
        """said: of this member, as etcd has it, and its revision."""
        if said is not None and said[1].session == self._session:
            self._has_told = True
        elif said is not None and said[1].session:
            self._see_other(said[0], said[1], now)
        self.is_twice &= now - self._told_at <= FIGURES_LIFE_S

    def _see_other(self, revision: int, said: Figures, now: float) -> None:
        runs = self._runs(said.session)
        if self._other is None:
            self._other = revision, now + (0.0 if runs is False else OTHERS_TURN_S)
            is_new = self._has_told
        else:
            is_new = revision != self._other[0]
            self._other = revision, self._other[1]
        if runs is False:  # a word that etcd had late
            return
        self._words += is_new
        if is_new or runs:
            self.is_twice, self._told_at, self.boot = True, now, said.boot
            self.is_sure |= bool(runs) or self._words > 1

    def may_tell(self, now: float) -> bool:
        """Whether it takes nothing away from another one that may still run."""
        return self._has_told or self._other is None or (not self.is_twice and now >= self._other[1])
