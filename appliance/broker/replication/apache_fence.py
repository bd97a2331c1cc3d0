"""Where the log of an Apache master ends for good: what a promotion of its slave is judged by. Decisions only, no I/O.

Apache's master tells its slave bytes and tables, and neither epochs nor who is in sync. `brokerPermission=4` and
wiping the write permission change routes only: it goes on storing what clients send that have an older route, and
what consumers send back. `brokerRole=SLAVE` does stop it: its store checks the role at each put, and it keeps the
setting in its file, with which it does not start as a master again. That is the fence.

A put that was checked just before may still be appended: after 5 s at most, which is how long it waits for a new file
of the log. So the end counts once it has been the same for SETTLED_S, and the tables were all taken in that time.
"""

from __future__ import annotations

from typing import NamedTuple

from appliance.settings.replication import MASTER_ROLES

SETTLED_S = 10.0
FENCE = "SLAVE"
NOT_KNOWN = (-1, -1)


class _Seen(NamedTuple):
    master: str
    end: int
    since: float


class ApacheFence:
    """What one slave has seen of its master. begin, end: of the master's log once it is settled, -1 before.

    master_role: as it was before the fence, "" while not known.
    """

    def __init__(self) -> None:
        self.begin, self.end = NOT_KNOWN
        self.master_role = ""
        self._seen: _Seen | None = None

    @property
    def is_up(self) -> bool:
        """Whether the master was fenced when it was last looked at."""
        return self._seen is not None

    def note(self, role: str) -> None:
        """Take its role, before anything is copied from it."""
        self.master_role = role if role in MASTER_ROLES else self.master_role

    def look(self, master: str, role: str, log: tuple[int, int], now_s: float) -> None:
        """Take what the master at this address said: its role, before the tables were asked for, and begin and end of
        its log, after they all came."""
        begin, end = log
        if role != FENCE:
            self._seen = None
            self.note(role)
        elif self._seen is None or (self._seen.master, self._seen.end) != (master, end):
            self._seen = _Seen(master, end, now_s)
        if self._seen is not None and end >= 0 and now_s - self._seen.since >= SETTLED_S:
            self.begin, self.end = begin, end
        else:
            self.begin, self.end = NOT_KNOWN
