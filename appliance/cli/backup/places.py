"""Where backups are: what makes and restores them asks of a place, and the place that is a folder."""

from __future__ import annotations

import calendar
import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from appliance.cli.backup import copying
from appliance.cli.backup.manifest import CONTENT, NAME, BackupError, Entry, Manifest, decode
from appliance.settings.lake_place import StoreAddress, place_of
from appliance.settings.replaced_file import sync_path
from gantrymq.errors import ConfigError

STAMP = "%Y%m%dT%H%M%SZ"  # a backup's name
BLOCK_BYTES = 512  # of st_blocks
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}  # exFAT, CIFS; too many of a file
STALE_S = 86400.0  # a backup that has no manifest after so long was interrupted
HOW = "name a folder or s3://BUCKET/PREFIX"


class Place(Protocol):
    """Backups by their names, which are in the order of time. All methods raise BackupError or OSError."""

    @property
    def scratch(self) -> Path | None:
        """A folder for a file that is made before it is put here; None: the system's."""

    def path(self, backup: str) -> str:
        """What a person calls this backup."""

    def used(self, backup: str, manifest: Manifest) -> int:
        """The bytes that its files take, those of older backups included."""

    def is_backup(self) -> bool:
        """Whether this is one, and not the place of several."""

    def whole(self) -> list[str]:
        """The backups that have a manifest, oldest first."""

    def unfinished(self) -> list[str]:
        """Those that have none."""

    def manifest(self, backup: str) -> Manifest: ...

    def begin(self, backup: str) -> None: ...

    def put(self, backup: str, name: str, parts: Iterator[bytes], size_bytes: int, mtime_ns: int) -> Entry:
        """Store a file, whose parts may end before its size: zeros follow."""

    def keep(self, backup: str, before: str, name: str, entry: Entry) -> Entry:
        """Have a file of the backup before in this one, too: what is in a backup is never written again."""

    def drop(self, backup: str, name: str) -> None:
        """Remove a file that was just put."""

    def seal(self, backup: str, manifest: Manifest) -> None:
        """Write the manifest, when all that it names is stored for good."""

    def remove(self, backups: list[str]) -> None:
        """Remove these, but nothing that other backups need. First the manifests: half a backup must not look whole."""

    def parts(self, backup: str, name: str, entry: Entry) -> Iterator[bytes]:
        """A file's bytes, as stored. Raises FileNotFoundError."""


def place_named(text: str) -> Place:
    """The place of backups that a command names. Raises ConfigError, BackupError."""
    found = place_of(text if "://" in text else str(Path(text).absolute()), "the place of backups")
    if not isinstance(found, StoreAddress):
        assert found is not None
        return FolderPlace(found)
    if found.scheme != "s3":
        raise ConfigError(f"backups can't be in {found.address}: {HOW}")
    try:
        from appliance.cli.backup.s3_place import S3Place  # pyarrow is a part of what install-reports installs
    except ImportError as missing:
        raise BackupError(
            f"a place in S3 needs the package pyarrow, which belongs to reports ({missing}): run `gantry "
            "install-reports`, or name a folder"
        ) from missing
    return S3Place(found)


def find_backup(text: str) -> tuple[Place, str]:
    """A whole backup that a command names, or the newest in a place. Raises ConfigError, BackupError."""
    address, mark, options = text.partition("?") if "://" in text else (str(Path(text).absolute()), "", "")
    place = place_named(text)
    if place.is_backup():
        above, _, name = address.rstrip("/").rpartition("/")
        return place_named(above + mark + options), name
    if isinstance(place, FolderPlace) and not place.folder.is_dir():
        raise BackupError(f"{address} is not there: name a backup, or the folder that has them")
    if found := place.whole():
        return place, found[-1]
    raise BackupError(f"{address} has no whole backup: a {NAME} is missing")


def remove_older(place: Place, keep: int, now: float) -> list[str]:
    """Remove backups, so that `keep` are left, and what was interrupted. now: seconds since the epoch.

    Returns the backups; in S3, what later ones need of them stays until they go, too.
    """
    old = place.whole()[:-keep]
    place.remove(old + [name for name in place.unfinished() if _is_stale(name, now)])
    return old


def _is_stale(name: str, now: float) -> bool:
    """Whether it was begun long ago; what has no time in its name is no backup."""
    try:
        return now - calendar.timegm(time.strptime(name, STAMP)) > STALE_S
    except ValueError:
        return False


class FolderPlace:
    """A folder, best on another disk. Files that did not change are hard links to those of the backup before, or copies
    of them on a disk without links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def scratch(self) -> Path | None:
        return self.folder

    def path(self, backup: str) -> str:
        return str(self.folder / backup)

    def used(self, backup: str, manifest: Manifest) -> int:
        return sum(self._file(backup, name).stat().st_blocks * BLOCK_BYTES for name in manifest.files)

    def is_backup(self) -> bool:
        return (self.folder / NAME).is_file()

    def whole(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob(f"*/{NAME}"))

    def unfinished(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir() and not (path / NAME).exists())

    def manifest(self, backup: str) -> Manifest:
        path = self.folder / backup / NAME
        try:
            return decode(path.read_bytes(), str(path))
        except OSError as exc:
            raise BackupError(f"{path} can't be read ({exc.strerror})") from exc

    def begin(self, backup: str) -> None:
        try:
            (self.folder / backup).mkdir(parents=True, mode=copying.FOLDER_MODE)
        except OSError as exc:
            raise BackupError(f"{self.path(backup)} can't be made ({exc.strerror})") from exc

    def put(self, backup: str, name: str, parts: Iterator[bytes], size_bytes: int, mtime_ns: int) -> Entry:
        return Entry(size_bytes, copying.write(parts, size_bytes, self._file(backup, name)), mtime_ns)

    def keep(self, backup: str, before: str, name: str, entry: Entry) -> Entry:
        to = self._file(backup, name)
        to.parent.mkdir(parents=True, exist_ok=True, mode=copying.FOLDER_MODE)
        try:
            os.link(self._file(before, name), to)
        except OSError as exc:
            if exc.errno not in NO_LINKS:
                raise
            self._copy(before, name, entry, to)
        return entry

    def _copy(self, before: str, name: str, entry: Entry, to: Path) -> None:
        if copying.write(self.parts(before, name, entry), entry.size_bytes, to) != entry.sha256:
            raise BackupError(f"{self._file(before, name)} is damaged: move {self.path(before)} away, and try again")

    def drop(self, backup: str, name: str) -> None:
        self._file(backup, name).unlink()

    def seal(self, backup: str, manifest: Manifest) -> None:
        folder = self.folder / backup
        new = folder / f"{NAME}.new"
        new.write_bytes(manifest.encoded())
        os.sync()  # with everything that was copied before
        new.replace(folder / NAME)
        sync_path(folder)

    def remove(self, backups: list[str]) -> None:
        for backup in backups:
            (self.folder / backup / NAME).unlink(missing_ok=True)
            shutil.rmtree(self.folder / backup)

    def parts(self, backup: str, name: str, entry: Entry) -> Iterator[bytes]:
        with self._file(entry.held_by or backup, name).open("rb") as file:
            while part := file.read(copying.CHUNK_BYTES):
                yield part

    def _file(self, backup: str, name: str) -> Path:
        return self.folder / backup / CONTENT / name
