"""What a store knows of its own standing in replication: `config/epochs.json`, GantryMQ's own.

The epochs of its log, the role that a promotion or its opposite gave it, a cut that has been decided on, and masters
of before that have not heard of their successor. One file, replaced and synced as a whole: what is decided together is
on disk together, and before the first byte that follows from it.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from appliance.broker.epochs.history import Epochs
from appliance.errors import StartError
from appliance.process.json_file import JsonFile, StateFileError
from appliance.settings.roles import BrokerConfig

logger = logging.getLogger(__name__)

FILE_NAME = "epochs.json"
TOLD_MAX = 32


@dataclass(frozen=True, slots=True)
class GivenRole:
    """A role that was given while running. instead: of what the settings said then; who edits them decides anew."""

    broker_role: str
    broker_id: int
    instead: str

    def applies_to(self, config: BrokerConfig) -> bool:
        return self.instead == role_text(config)


class Rival(NamedTuple):
    """An epoch of the same number as the highest that is known here, begun by another broker; where that serves."""

    number: int
    id: str
    address: str

    @property
    def text(self) -> str:
        return f"{self.number} {self.id} {self.address}"


class HandedTo(NamedTuple):
    """Where the slave serves that may begin the next epoch, and its number: this master takes nothing any more."""

    epoch: int
    address: str

    @property
    def text(self) -> str:
        return f"{self.epoch} {self.address}"


@dataclass(frozen=True, slots=True)
class Standing:
    """The content of the file."""

    epochs: Epochs = field(default_factory=Epochs)
    role: GivenRole | None = None
    cut_to: int | None = None  # the log is to end there at the next start
    untold: tuple[str, ...] = ()  # HA addresses of masters of before, which may not know yet
    master_role: str = ""  # of the master that is followed, as it says: what a promoted slave becomes
    master: str = ""  # where it serves requests
    members: tuple[str, ...] = ()  # that have not been told of the epoch which this master began: where they serve
    rival: Rival | None = None  # another master of the highest number that is known here
    yields_to: str = ""  # the id of an epoch for which a person gave up what was confirmed here
    slave_id: int = 0  # that a master had before it became one; 0: it was none
    handed_to: HandedTo | None = None  # until it is known what became of that

    def to_json(self) -> bytes:
        document = self.epochs.to_dict() | {"untold": list(self.untold), "masterRole": self.master_role}
        document |= {"master": self.master, "members": list(self.members), "yieldsTo": self.yields_to}
        document["slaveId"] = self.slave_id
        if self.rival is not None:
            document["rival"] = list(self.rival)
        if self.handed_to is not None:
            document["handedTo"] = list(self.handed_to)
        if self.role is not None:
            document["role"] = {
                "brokerRole": self.role.broker_role,
                "brokerId": self.role.broker_id,
                "instead": self.role.instead,
            }
        if self.cut_to is not None:
            document["cutTo"] = self.cut_to
        return orjson.dumps(document, option=orjson.OPT_INDENT_2)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Standing:
        """Raise ValueError, KeyError or TypeError for another shape."""
        role, cut_to, untold = document.get("role"), document.get("cutTo"), document.get("untold", [])
        if cut_to is not None and (not isinstance(cut_to, int) or cut_to < 0):
            raise ValueError(f"cutTo is {cut_to!r}")
        if not isinstance(untold, list) or not all(isinstance(each, str) for each in untold):
            raise ValueError("untold is not a list of addresses")
        given = None
        if role is not None:
            given = GivenRole(str(role["brokerRole"]), int(role["brokerId"]), str(role["instead"]))
        epochs = Epochs.from_dict(document)
        role_of, master = str(document.get("masterRole", "")), str(document.get("master", ""))
        members, rival, handed = document.get("members", []), document.get("rival"), document.get("handedTo")
        return cls(
            epochs,
            given,
            cut_to,
            tuple(untold[:TOLD_MAX]),
            role_of,
            master,
            tuple(map(str, members[:TOLD_MAX])),
            None if rival is None else Rival(int(rival[0]), str(rival[1]), str(rival[2])),
            str(document.get("yieldsTo", "")),
            int(document.get("slaveId", 0)),
            None if handed is None else HandedTo(int(handed[0]), str(handed[1])),
        )


class StandingFile:
    """Reads and replaces the file of one store. Blocks. Several threads may change it."""

    def __init__(self, store_root: Path) -> None:
        self.path = store_root / "config" / FILE_NAME
        self._file = JsonFile(self.path, is_mirrored=True)  # the role of before would be the wrong one
        self._writes = 0
        self._lock = threading.Lock()
        self.standing = Standing()  # as the file has it

    def load(self) -> Standing:
        """StartError when it can't be used: without it a master of before would not be known as one."""
        try:
            self.standing = self._file.load_as(Standing.from_dict, "what a store knows of its epochs") or Standing()
        except StateFileError as exc:
            raise StartError(f"whose log this is can't be read: {exc}") from exc
        return self.standing

    def change(self, **fields: Any) -> Standing:
        """Replace fields, durably, unless they are so already. StateFileError; nothing has changed then.

        What depends on the fields of before belongs into `update`: another thread may change them meanwhile."""
        return self.update(lambda standing: dataclasses.replace(standing, **fields))

    def hear(self, number: int, epoch_id: str = "") -> Standing:
        """Put an epoch on record that was heard of. A rival of a lower one is over with it."""

        def heard(standing: Standing) -> Standing:
            rival = standing.rival if number <= standing.epochs.highest else None
            return dataclasses.replace(standing, epochs=standing.epochs.heard(number, epoch_id), rival=rival)

        return self.update(heard)

    def update(self, make: Callable[[Standing], Standing]) -> Standing:
        """As `change`, with what `make` makes of the fields as they are. What it raises leaves all as it is."""
        with self._lock:
            changed = make(self.standing)
            if changed != self.standing:
                self._writes += 1
                self._file.write(changed.to_json(), self._writes)
                self.standing = changed
            return changed


def role_text(config: BrokerConfig) -> str:
    """Role and id as the settings say them."""
    return f"{config.broker_role} {config.broker_id}"


def with_role(config: BrokerConfig, role: GivenRole | None) -> BrokerConfig:
    """The settings with the role that the store was given, if one was and the settings still say what they did."""
    if role is None or not role.applies_to(config):
        return config
    return dataclasses.replace(config, broker_role=role.broker_role, broker_id=role.broker_id, slaves_enable=True)
