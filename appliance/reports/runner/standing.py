"""What a store has on record of its epochs and its role: `config/epochs.json`, as its broker writes it. Read only."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from appliance.settings.replication import MASTER_ROLES

logger = logging.getLogger(__name__)

FILE = Path("config", "epochs.json")
SLAVE = "SLAVE"


class Epoch(NamedTuple):
    """number: 1 and more; start: where its first byte stands in the log; id: of who began it."""

    number: int
    start: int
    id: str


@dataclass(frozen=True, slots=True)
class Standing:
    """A log's epochs, the oldest first, and whether its broker takes messages."""

    epochs: tuple[Epoch, ...] = ()
    is_slave: bool = False

    @property
    def current(self) -> int:
        """The number of the epoch in which the log ends; 0: not known."""
        return self.epochs[-1].number if self.epochs else 0

    def shared_until(self, other: Standing) -> int | None:
        """Up to where both logs are one: where the first epoch begins that only one of them has; None: nowhere."""
        if not set(self.epochs) & set(other.epochs):
            return None
        own = set(self.epochs) ^ set(other.epochs)
        newest_shared = max(epoch.number for epoch in set(self.epochs) & set(other.epochs))
        return min((epoch.start for epoch in own if epoch.number > newest_shared), default=1 << 63)


def read_standing(store_folder: Path, properties: Mapping[str, str]) -> Standing:
    """The standing of a store, whose broker has these settings: a role that it was given counts more than theirs."""
    role = properties.get("brokerRole", MASTER_ROLES[0])
    instead = f"{role} {properties.get('brokerId', '0')}"
    try:
        document = json.loads((store_folder / FILE).read_bytes())
        epochs = tuple(Epoch(int(number), int(start), str(name)) for number, start, name in document["epochs"])
        given = document.get("role") or {}
        if given.get("instead") == instead:
            role = str(given["brokerRole"])
    except FileNotFoundError:
        return Standing((), role == SLAVE)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as wrong:
        facts: dict[str, Any] = {"event": "report_epochs_unreadable", "store": str(store_folder), "error": repr(wrong)}
        logger.warning("epochs not read; the settings decide the role", extra=facts)
        return Standing((), role == SLAVE)
    return Standing(epochs, role == SLAVE)
