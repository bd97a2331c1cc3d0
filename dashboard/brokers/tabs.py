"""The tabs above a broker's pages."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.status.board import board


@dataclass(frozen=True, slots=True)
class Tabs:
    """`name` tells one process from its slaves, `broker_name` names all of them; `here` is the page that shows them."""

    name: str
    broker_name: str
    here: str

    @property
    def is_slave(self) -> bool:
        return self.name != self.broker_name

    @property
    def has_master_page(self) -> bool:
        """Whether there is, or was, something to choose a master from."""
        snapshot = board.snapshot
        return self.here == "succession" or (snapshot is not None and snapshot.has_master_page)
