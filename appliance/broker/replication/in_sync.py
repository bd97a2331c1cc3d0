"""Which slaves are in sync: they have all that is confirmed, and nothing is confirmed without them. No I/O.

    join    once it has caught up, a slave is required: nothing more is confirmed without it; it is in sync when it has
            all that was confirmed until then
    leave   not caught up for a while, or silent for as long, or disconnected for a second: it is not in sync from then
            on, nor required

Each of them holds every confirmed byte, so any of them may become the master. Without any, the master alone confirms;
but once a slave has been in the set, consumers that read what is confirmed (`shown`) see nothing new until one is in it
again: a slave that left may be the master by now, and this one does not know.
Only slaves of GantryMQ count: they acknowledge in an epoch. At most one joins at a look.

The set is on record (in_sync_file.py). Who is to leave is taken out of the record first (`leaving`), and required until
then. After a restart those on record are required from the beginning, as if they had just gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

GONE_S = 1.0  # a slave that connects anew within this time stays
LOOK_S_MAX = 1.0  # what a longer time between two looks counts as: this process stood still, and slaves were not heard


@dataclass(slots=True)
class Member:
    """One slave of GantryMQ. caught_up_at: when it said last that it had all of the log, or nearly; None: never."""

    acknowledged: int
    seen_end: int  # the log's end when it last acknowledged, and when that was
    seen_at: float
    heard_at: float  # when it last said anything: of its tables, too, while nothing comes
    caught_up_at: float | None = None
    gone_at: float | None = None
    is_required: bool = False
    is_in_sync: bool = False


class InSyncSet:
    """One master's slaves, by the address where each serves. Times are of one clock and may be of any origin."""

    def __init__(
        self,
        lag_s: float,
        end: int,
        *,
        on_record: Collection[str] = (),
        now: float = 0.0,
        shown: int | None = None,
        confirmed: int | None = None,
    ) -> None:
        """shown, confirmed: of before, if there was a set. What a master had beyond that it may have had alone."""
        self._lag_s = lag_s
        self._looked_at: float | None = None
        self._members = {name: Member(-1, end, now, now, gone_at=now, is_required=True) for name in on_record}
        self.confirmed = end if confirmed is None else confirmed  # only grows
        self.shown = shown  # where what consumers may see ends; None: all, there has never been a set

    @property
    def has_required(self) -> bool:
        return any(member.is_required for member in self._members.values())

    @property
    def required(self) -> list[str]:
        """Those without which nothing more is confirmed."""
        return sorted(name for name, member in self._members.items() if member.is_required)

    @property
    def names(self) -> list[str]:
        """Those that are in sync."""
        return sorted(name for name, member in self._members.items() if member.is_in_sync)

    def acknowledged(self, name: str, offset: int, end: int, now: float) -> bool:
        """A slave has the log up to an offset; the log ends at `end`. Say whether a slave came in sync with that."""
        member = self._members.get(name)
        if member is None:
            member = self._members[name] = Member(offset, end, now, now)
        if offset >= end:
            member.caught_up_at = now
        elif offset >= member.seen_end:
            member.caught_up_at = max(member.seen_at, member.caught_up_at or member.seen_at)
        member.acknowledged, member.seen_end, member.seen_at, member.gone_at = offset, end, now, None
        member.heard_at = now
        return self._confirm(end)

    def heard(self, name: str, now: float) -> None:
        """It has said something else than where it is: it does not stand still."""
        if (member := self._members.get(name)) is not None:
            member.heard_at = now

    def gone(self, name: str, now: float) -> None:
        """Its connection is over."""
        member = self._members.get(name)
        if member is not None and member.gone_at is None:
            member.gone_at = now

    def show(self, until: int) -> None:
        """No other member can become the master any more without having this."""
        if self.shown is not None:
            self.shown = max(self.shown, until)

    def leaving(self, end: int, now: float) -> list[str]:
        """Who is to leave at the next look."""
        self._count_only_what_was_awake(now)
        return [name for name, member in self._members.items() if self._is_over(member, end, now)]

    def look(
        self,
        end: int,
        now: float,
        may_leave: Collection[str] | None = None,
        may_join: Collection[str] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Let slaves leave, and one join; return who joined the required and who left. Call it each second.

        may_leave: those that are not on record any more; may_join: those that have all tables; None: all.
        """
        left = [name for name in self.leaving(end, now) if may_leave is None or name in may_leave]
        for name in left:
            member = self._members[name]
            member.is_in_sync = member.is_required = False
        for name in [
            name for name, member in self._members.items() if member.gone_at is not None and not member.is_required
        ]:
            del self._members[name]
        joined = [
            name
            for name, member in self._members.items()
            if (may_join is None or name in may_join) and self._may_join(member, end, now)
        ][:1]
        for name in joined:
            self._members[name].is_required = True
        self._confirm(end)
        return joined, left

    def _confirm(self, end: int) -> bool:
        """Say whether a slave came in sync. Called for each acknowledgement: hot."""
        required = [member for member in self._members.values() if member.is_required]
        everywhere = min([member.acknowledged for member in required], default=end)
        if required:
            self.shown = end if self.shown is None else max(self.shown, everywhere)
        self.confirmed = max(self.confirmed, everywhere)
        came = False
        for member in required:
            if not member.is_in_sync and member.acknowledged >= self.confirmed:
                member.is_in_sync = came = True
        return came

    def _count_only_what_was_awake(self, now: float) -> None:
        asleep_s = 0.0 if self._looked_at is None else max(now - self._looked_at - LOOK_S_MAX, 0.0)
        self._looked_at = now
        for member in self._members.values() if asleep_s else ():
            member.seen_at += asleep_s
            member.heard_at += asleep_s
            if member.caught_up_at is not None:
                member.caught_up_at += asleep_s
            if member.gone_at is not None:
                member.gone_at += asleep_s

    def _is_over(self, member: Member, end: int, now: float) -> bool:
        if not member.is_required:
            return False
        if member.gone_at is not None:
            return now - member.gone_at >= GONE_S
        _note_if_caught_up(member, end)
        return member.caught_up_at is None or now - member.caught_up_at >= self._lag_s

    def _may_join(self, member: Member, end: int, now: float) -> bool:
        if member.is_required or member.gone_at is not None:
            return False
        _note_if_caught_up(member, end)
        return member.caught_up_at is not None and now - member.caught_up_at < self._lag_s


def _note_if_caught_up(member: Member, end: int) -> None:
    """It lacks nothing, as of when it was last heard."""
    if member.acknowledged >= end:
        member.caught_up_at = max(member.heard_at, member.caught_up_at or member.heard_at)
