"""What can go wrong with a store folder.

GantryError
└─ StoreError
   ├─ StoreLocked      another process (a Java broker included) has the folder open
   ├─ StoreDamaged     files contradict each other in a way that no start can repair by itself
   └─ StoreNotRunning  the store is closed, or was never started
"""

from __future__ import annotations

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


class StoreNotRunning(StoreError):
    """The store is closed, or was never started."""
