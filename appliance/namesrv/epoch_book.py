"""Which epoch of each broker name is the highest that a master registered with, and when its master was last there.

A promotion asks for it, since the members that knew may be gone; it lasts as long as the name server runs. An epoch is
its number and the id of who began it. Two of one number are two logs that parted: which of them counts, only a person
can say, so neither is registered until a higher one has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gantrymq.client.admin.members import EPOCH_ID, EPOCH_MASTER, EPOCH_NUMBER, MASTER_GONE_MS

NAMES_MAX = 4096
FIRST = 1  # each new store begins it by itself: two of that number are rivals only while both are there


@dataclass(frozen=True, slots=True)
class MasterEpoch:
    """A master's: number, id ("": it told none), where it serves."""

    number: int
    id: str
    address: str

    @property
    def text(self) -> str:
        return f"epoch {self.number} ({self.id}) of {self.address}"


@dataclass(slots=True)
class _Entry:
    highest: MasterEpoch
    rival: MasterEpoch | None = None  # of the same number


class EpochBook:
    """One name server's."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # by broker name, the one that changed last at the end
        self._gone_at: dict[str, float] = {}  # by broker name: when its master's connection ended

    def rival_of(self, name: str, epoch: MasterEpoch, is_live: Callable[[str], bool]) -> MasterEpoch | None:
        """The epoch of the same number that this one stands against; None when there is none. It is kept in mind."""
        entry = self._entries.get(name)
        if entry is None or not epoch.id or not entry.highest.id or epoch.number != entry.highest.number:
            return None
        if epoch.id == entry.highest.id:
            return entry.rival
        if entry.rival is None and epoch.number <= FIRST and not is_live(entry.highest.address):
            return None
        if entry.rival is None:
            entry.rival = epoch
        return entry.highest

    def has_rivals(self, name: str) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.rival is not None

    def registered(self, name: str, epoch: MasterEpoch | None) -> None:
        """A master is there; None: one without epochs."""
        self._gone_at.pop(name, None)
        entry = self._entries.get(name)
        if epoch is None or (entry is not None and epoch.number < entry.highest.number):
            return
        if entry is None or epoch != entry.highest:
            self._entries.pop(name, None)
            self._entries[name] = _Entry(epoch)
            if len(self._entries) > NAMES_MAX:
                self._entries.pop(next(iter(self._entries)))

    def ended(self, name: str, now_s: float) -> None:
        """Its master said good-bye, or its connection ended."""
        self._gone_at.pop(name, None)
        self._gone_at[name] = now_s
        if len(self._gone_at) > NAMES_MAX:
            self._gone_at.pop(next(iter(self._gone_at)))

    def fields(self, name: str, now_s: float) -> dict[str, str]:
        """What is known of that name, for who asks."""
        fields = {}
        if (entry := self._entries.get(name)) is not None:
            highest = entry.highest
            fields = {EPOCH_NUMBER: str(highest.number), EPOCH_ID: highest.id, EPOCH_MASTER: highest.address}
        if (gone_at := self._gone_at.get(name)) is not None:
            fields[MASTER_GONE_MS] = str(int((now_s - gone_at) * 1000))
        return {key: value for key, value in fields.items() if value}
