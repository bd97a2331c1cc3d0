"""Who is in sync, on record: `config/inSync.json`, GantryMQ's own.

A master writes it when the set changes: a slave is required before it is in it, and until it is out of it. So each that
is in it has all that was confirmed, whenever the master is lost. Slaves are told of it with the state of the tables,
and write it too: a promotion then knows who had that, and how much it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from appliance.broker.replication.in_sync import GONE_S
from appliance.errors import StartError
from appliance.process.json_file import JsonFile, StateFileError

FILE_NAME = "inSync.json"


@dataclass(frozen=True, slots=True)
class InSyncRecord:
    """The set of one epoch; names: addresses where its slaves serve. confirmed: what all of them had then.

    shown: where what consumers of confirmed messages may see ended then; -1: they may see all.
    alone: no slave was in sync, and the master acknowledged what it had. version: the how manieth set of the epoch.
    leave_s: after so long its master lets a slave leave that it lost.
    """

    epoch: int = 0
    names: tuple[str, ...] = ()
    confirmed: int = -1
    shown: int = -1
    version: int = 0
    leave_s: float = GONE_S
    alone: bool = False

    def confirmed_of(self, end: int) -> int:
        """Up to where a log that ends there was confirmed."""
        return end if self.alone else min(self.confirmed, end)

    @property
    def shown_until(self) -> int | None:
        """Up to where consumers of confirmed messages may see a copy of the log; None: all of it."""
        return None if self.shown < 0 else max(self.confirmed, self.shown)

    def to_dict(self) -> dict[str, Any]:
        document = dataclasses.asdict(self)
        return document | {"names": list(self.names), "leaveSeconds": document.pop("leave_s")}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> InSyncRecord:
        """Raise ValueError, KeyError or TypeError for another shape."""
        names = document["names"]
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise ValueError("names is not a list of addresses")
        confirmed = int(document["confirmed"])
        shown = int(document.get("shown", confirmed if names else -1))
        version, leave_s = int(document.get("version", 0)), float(document.get("leaveSeconds", GONE_S))
        alone = bool(document.get("alone", False))
        return cls(int(document["epoch"]), tuple(names), confirmed, shown, version, leave_s, alone)


class InSyncFile:
    """Reads and replaces the file of one store. Blocks."""

    def __init__(self, store_root: Path) -> None:
        self._file = JsonFile(store_root / "config" / FILE_NAME)
        self._writes = 0
        self.record = InSyncRecord()  # as the file has it

    def load(self) -> None:
        """StartError when it can't be read."""
        try:
            self.record = self._file.load_as(InSyncRecord.from_dict, "who is in sync") or InSyncRecord()
        except StateFileError as exc:
            raise StartError(f"which slaves were in sync can't be read: {exc}") from exc

    def keep(self, record: InSyncRecord) -> None:
        """Replace it, durably. StateFileError; the file is as it was then."""
        self._writes += 1
        self._file.write(orjson.dumps(record.to_dict(), option=orjson.OPT_INDENT_2), self._writes)
        self.record = record
