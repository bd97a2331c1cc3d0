"""What can go wrong with a store folder.

GantryError
└─ StoreError
   ├─ StoreLocked      another process (a Java broker included) has the folder open
   ├─ StoreDamaged     files contradict each other in a way that no start can repair by itself
   ├─ NewerFormat      a newer version of the program wrote the folder: this one would misread it
   ├─ StampDamaged     it is not known which format the folder has
   ├─ StoreNotRunning  the store is closed, or was never started
   ├─ NotReadableNow   a message is there, and can be read later
   └─ CopyRefused      bytes of a master's log that can't follow this copy of it
      └─ NoRoomForCopy the disk has no room for them
"""

from __future__ import annotations

from pathlib import Path

from gantrymq import __version__
from gantrymq.errors import GantryError


class StoreError(GantryError):
    """Root of the store's errors."""


class StoreLocked(StoreError):
    """Another process holds the lock file of this folder."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is locked: another broker has this store open; stop it or use another storePathRootDir"
        )
        self.path = path


class StoreDamaged(StoreError):
    """A file is not what its place in the store demands. `path` names it, the text says what to do."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NewerFormat(StoreError):
    """A newer version wrote this folder; nothing in it was changed."""

    def __init__(self, folder: Path, what: str, found: int, written_by: str, known: int) -> None:
        super().__init__(
            f"{folder}: this {what} has format {found}, written by GantryMQ {written_by or 'of a newer version'}; "
            f"this is {__version__} and knows formats up to {known}. Nothing was changed. Start that version or a "
            f"newer one, or name another folder"
        )
        self.folder = folder
        self.found = found
        self.known = known


class NotReadableNow(StoreError):
    """A message whose place in the queue is being looked for, or that consumers may not see yet."""


class StampDamaged(StoreError):
    """The stamp of a folder can't be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} can't be read ({reason}), so it is unknown if this version may work here. Put it back from a "
            f"copy, or remove it if no version newer than {__version__} wrote the folder"
        )
        self.path = path


class StoreNotRunning(StoreError):
    """The store is closed, or was never started."""


class CopyRefused(StoreError):
    """Bytes of a master's log can't follow what this copy of it has; nothing of them counts."""


class NoRoomForCopy(CopyRefused):
    """The disk does not take the next bytes of a master's log; they may come again later."""
