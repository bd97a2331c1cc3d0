"""Which store this is, and of which group: `config/member.json`, GantryMQ's own.

Group and store have an id each, random and for ever, and etcd gives the member of each store a number. So a broker that
was pointed at another group's record, or opened with a copy of another member's folder, is found out before it counts.

`boot` names the time since which this log has surely lost nothing that it had: it stays the same over a killed process,
which leaves its log to the kernel, and over a clean stop, which leaves it on the disk; after any other new boot of the
machine, in a copy of an open store's folder, after a cut or a failed sync, and where the log ends before what was
confirmed, it is a new one. An in-sync set that names a member's boot speaks of no later, shorter log, and not of a copy
that runs beside the store.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from appliance.errors import StartError
from appliance.failover.own import Doubt
from appliance.process.json_file import JsonFile, StateFileError
from appliance.process.process_identity import BOOT_ID

logger = logging.getLogger(__name__)

FILE_NAME = "member.json"
ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Membership:
    """store, group: ids; "": none yet. number: of the member, 1 and more; 0: it has not joined a group.

    machine: the boot of the machine in which the store was opened last. is_closed: and was closed cleanly since.
    folder: the inode in which it was, 0: not known; a copy has another one. doubt: what this boot began with, for
    people.
    """

    store: str = ""
    group: str = ""
    number: int = 0
    boot: str = ""
    machine: str = ""
    is_closed: bool = False
    folder: int = 0
    doubt: Doubt = Doubt.NONE

    def to_json(self) -> bytes:
        return orjson.dumps(dataclasses.asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Membership:
        """Raise ValueError, KeyError or TypeError for another shape."""
        found = cls(
            str(document["store"]),
            str(document["group"]),
            int(document["number"]),
            str(document["boot"]),
            str(document["machine"]),
            document["is_closed"] is True,
            int(document.get("folder", 0)),
            Doubt(document.get("doubt", "")),
        )
        if not found.store or not found.boot or found.number < 0:
            raise ValueError(f"{document!r} names no member")
        return found

    def opened(self, machine: str, folder: int, *, is_cut: bool) -> Membership:
        """As it is when its store is opened in this boot of the machine. is_cut: the log was shortened just now."""
        is_copy = not self.is_closed and self.folder not in (0, folder)
        keeps = not is_cut and not is_copy and self.boot and (self.is_closed or (machine and machine == self.machine))
        found = Doubt.COPY if is_copy else Doubt.NONE if self.machine else self.doubt  # doubted, and opened after that
        return dataclasses.replace(
            self,
            store=self.store or str(uuid.uuid4()),
            boot=self.boot if keeps else secrets.token_hex(ID_BYTES),
            machine=machine,
            is_closed=False,
            folder=folder,
            doubt=self.doubt if keeps else found,
        )


class MembershipFile:
    """Reads and replaces the file of one store. Blocks."""

    def __init__(self, store_root: Path) -> None:
        self._root = store_root
        self._file = JsonFile(store_root / "config" / FILE_NAME, is_mirrored=True)  # an older one may say: closed
        self._writes = 0
        self.membership = Membership()  # as the file has it; without one, of no group

    def read(self) -> Membership:
        """As the file has it; without one, of no group. StartError."""
        try:
            return self._file.load_as(Membership.from_dict, "which member of a group a store is") or Membership()
        except StateFileError as exc:
            raise StartError(f"which member of its group this store is can't be read: {exc}") from exc

    def open(self, *, is_wanted: bool, is_cut: bool) -> None:
        """Put on record that the store is open, before anything is added to its log. StartError.

        is_wanted: have a file from now on. One that is there is kept true whatever the settings say.
        """
        found = self.read()
        try:
            if found.store or is_wanted:
                self._put(found.opened(_machine_boot(), self._root.stat().st_ino, is_cut=is_cut))
                if self.membership.boot != found.boot and self.membership.doubt is Doubt.COPY:
                    logger.warning("store folder was copied", extra={"event": "store_copied", "store": found.store})
        except StateFileError as exc:
            raise StartError(f"which member of its group this store is can't be put on record: {exc}") from exc

    def joined(self, group: str, number: int) -> None:
        """StateFileError; nothing has changed then."""
        self._put(dataclasses.replace(self.membership, group=group, number=number))

    def closed(self) -> None:
        """The store is closed, and all of it is on the disk. StateFileError."""
        if self.membership.store:
            self._put(dataclasses.replace(self.membership, is_closed=True))

    def doubted(self, doubt: Doubt) -> None:
        """A part of the log may be lost: the next time the store is opened it has a new boot. StateFileError."""
        if self.membership.store:
            self._put(dataclasses.replace(self.membership, machine="", doubt=doubt))

    def _put(self, membership: Membership) -> None:
        if membership != self.membership:
            self._writes += 1
            self._file.write(membership.to_json(), self._writes)
            self.membership = membership


def _machine_boot() -> str:
    """The kernel's id of this boot; "": it has none to tell, and each start counts as a new one."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
