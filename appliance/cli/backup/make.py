"""Make a backup of the data folder while the appliance runs: messages, offsets, settings, accounts, database, reports.

  gantry backup /mnt/backups                 a new folder in it, named by the time
  gantry backup /mnt/backups --keep 7        and remove the oldest, so that seven are left
  gantry backup 's3://BUCKET/PREFIX?region=eu-west-1'     the same in S3; keys come from the environment
  gantry restore /mnt/backups --data DIR     the newest of them

Every message that was acknowledged before the command began is in the backup. Each backup is whole; files of the log
that did not change since the one before are hard links to it, or are not sent again, and cost no room. Logs and locks
are left out, and so is a database in PostgreSQL: pg_dump copies that. Run it as the user who owns the data folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from appliance.cli.backup import copying
from appliance.cli.backup.manifest import BackupError, Entry, Manifest
from appliance.cli.backup.places import STAMP, FolderPlace, Place, place_named, remove_older
from appliance.cli.backup.stores import FIRST, LEFT_OUT, LOG, HeldLog, ends_of_groups, held_logs, log_end
from appliance.process.data_folder import LOCK_NAME
from appliance.process.version import VERSION
from appliance.settings.appliance_config import ApplianceConfig, describe
from gantrymq.byte_size import readable
from gantrymq.errors import GantryError

DATABASE = "db.sqlite3"
LEFT_OUT_FOLDERS = frozenset({"logs", "reports/jre", "reports/work", "dashboard/copies", "dashboard/locale"})
DELTA_LOG = "_delta_log"  # names the files of a table: it is copied before them, so that all that it names are there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="PLACE", help="folder of backups, on another disk, or s3://BUCKET/PREFIX")
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
    parser.add_argument("--keep", type=int, default=0, metavar="N", help="remove older backups, so that N are left")


def run(arguments: argparse.Namespace) -> int:
    config = ApplianceConfig.load({"data": arguments.data}, config_file=arguments.config)
    place = place_named(arguments.place)
    name, manifest = Backup(config, place).make()
    size = sum(entry.size_bytes for entry in manifest.files.values())
    took = manifest.ended_at - manifest.began_at
    print(
        f"{place.path(name)}: {len(manifest.files)} files, {readable(size)} "
        f"({readable(place.used(name, manifest))} stored: without the zeros that brokers prepare), {took:.1f} s"
    )
    if manifest.database == "postgresql":
        print("the dashboard's database is in PostgreSQL and not in this backup: use pg_dump")
    if arguments.keep > 0:
        for old in remove_older(place, arguments.keep, time.time()):
            print(f"{place.path(old)}: removed")
    return 0


class Backup:
    """One backup: `make` it once."""

    def __init__(self, config: ApplianceConfig, place: Place) -> None:
        self._config = config
        self._data = config.data
        self._place = place
        if not self._data.is_dir():
            raise BackupError(f"{self._data} is not there: name the data folder with --data")
        if isinstance(place, FolderPlace) and place.folder.resolve().is_relative_to(self._data.resolve()):
            raise BackupError(f"{place.folder} is in the data folder: name a folder elsewhere, best on another disk")
        self._before = next(reversed(place.whole()), None)
        self._known = place.manifest(self._before) if self._before else None
        if isinstance(place, FolderPlace) and self._known and self._known.is_shared:
            raise BackupError(f"{place.folder} is a copy of a place in S3: restore from it, and name another folder")
        self._manifest = Manifest(VERSION, time.time())
        self._name = time.strftime(STAMP, time.gmtime())

    def make(self) -> tuple[str, Manifest]:
        """Returns its name and what it holds. Raises GantryError; then what was copied is gone again."""
        self._place.begin(self._name)
        try:
            with ExitStack() as stack:
                self._copy_all(stack)
            self._manifest.ended_at = time.time()
            self._place.seal(self._name, self._manifest)
        except BaseException as exc:
            with contextlib.suppress(GantryError, OSError):  # the failure before it is the one to tell
                self._place.remove([self._name])
            if isinstance(exc, OSError):
                raise BackupError(f"the backup failed: {exc}") from exc
            raise
        return self._name, self._manifest

    def _copy_all(self, stack: ExitStack) -> None:
        logs = list(held_logs(self._config.brokers_folder))
        for log in logs:
            log.begin(stack)
        stores = {log.root for log in logs}
        for log in logs:  # small files first: none of them knows more than what is copied after it
            for name in FIRST:
                self._copy_tree(log.root / name, stores)
        self._copy_database()
        self._copy_tree(self._data, stores)
        for log in logs:
            self._copy_tree(log.root, set())
        ends = ends_of_groups(logs)
        for log in logs:
            self._copy_log(log, stack, ends[log.broker])
            log.check_unchanged()

    def _copy_tree(self, top: Path, elsewhere: set[Path]) -> None:
        """All that is not copied yet. elsewhere: folders that have their own turn."""
        for path in [top] if top.is_file() else _walk(top, self._data, elsewhere):
            name = self._name_of(path)
            if name in self._manifest.files:
                continue
            try:
                self._take(path, name)
            except FileNotFoundError:
                self._forget_older(path)

    def _take(self, path: Path, name: str) -> None:
        known = self._known.files.get(name) if self._known else None
        if known and _is_closed(path) and _is_same(path, known):
            self._keep(name, known)
        else:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                self._put(name, descriptor)
            finally:
                os.close(descriptor)

    def _keep(self, name: str, known: Entry) -> None:
        assert self._before
        self._manifest.files[name] = self._place.keep(self._name, self._before, name, known)

    def _put(self, name: str, source: int, end: int | None = None) -> None:
        """An open file as it is now. end: from there on the copy has zeros, up to the file's length."""
        facts = os.fstat(source)
        parts = copying.parts_of(source, facts.st_size if end is None else min(end, facts.st_size))
        self._manifest.files[name] = self._place.put(self._name, name, parts, facts.st_size, facts.st_mtime_ns)

    def _forget_older(self, path: Path) -> None:
        """A queue's file went while its folder was copied: those before it went, too, and a gap would be damage."""
        if not path.name.isdecimal():
            return
        for other in list(self._manifest.files):
            where = self._data / other
            if where.parent == path.parent and where.name.isdecimal() and where.name < path.name:
                del self._manifest.files[other]
                self._place.drop(self._name, other)

    def _copy_log(self, log: HeldLog, stack: ExitStack, end_max: int) -> None:
        """The log, up to its last whole record: everything that the copies before name is below that."""
        log.hold(stack)
        end = self._manifest.log_ends[log.broker] = min(log_end(log.root), end_max)
        for name, descriptor in sorted(log.files.items()):
            if int(name) >= end and int(name):
                continue  # prepared ahead, or begun since
            path = log.root / LOG / name
            key = self._name_of(path)
            known = self._known.files.get(key) if self._known else None
            was_full = self._known is not None and self._known.log_ends.get(log.broker, 0)
            if known and was_full >= int(name) + known.size_bytes and _is_same(path, known):
                self._keep(key, known)
            else:
                self._put(key, descriptor, end - int(name))

    def _copy_database(self) -> None:
        source, name = self._config.dashboard_folder / DATABASE, f"dashboard/{DATABASE}"
        if self._config.database_url:
            self._manifest.database = "postgresql"
        elif source.is_file():
            self._manifest.database = "sqlite"
            with tempfile.TemporaryDirectory(prefix="gantry-backup-", dir=self._place.scratch) as scratch:
                whole = Path(scratch) / DATABASE
                address = f"{source.absolute().as_uri()}?mode=ro"
                with closing(sqlite3.connect(address, uri=True)) as theirs, closing(sqlite3.connect(whole)) as ours:
                    theirs.backup(ours)
                    ours.execute("PRAGMA journal_mode=DELETE")  # whole in one file
                    found = ours.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise BackupError(f"{source} is damaged: {found}")
                with whole.open("rb") as file:
                    self._put(name, file.fileno())

    def _name_of(self, path: Path) -> str:
        return path.relative_to(self._data).as_posix()


def _walk(top: Path, data: Path, elsewhere: set[Path]) -> Iterator[Path]:
    """The files below a folder, in the order of their names; a table's log first."""
    try:
        entries = sorted(top.iterdir(), key=lambda path: (path.name != DELTA_LOG, path.name))
    except (FileNotFoundError, NotADirectoryError):
        return
    for path in entries:
        name = path.relative_to(data).as_posix()
        if path.is_symlink() or path.name in LEFT_OUT or path.name.endswith((".tmp", ".new")):
            continue
        if path.is_dir():
            is_log = path.name == LOG and path.parent.name == "store"
            if path not in elsewhere and not is_log and name not in LEFT_OUT_FOLDERS:
                yield from _walk(path, data, elsewhere)
        elif path.is_file() and not name.startswith((f"dashboard/{DATABASE}", LOCK_NAME)):
            yield path


def _is_closed(path: Path) -> bool:
    """Whether a file has a number and a later one is beside it: of a queue or an index, which only grow."""
    if not path.name.isdecimal():
        return False
    return any(other.name.isdecimal() and other.name > path.name for other in path.parent.iterdir())


def _is_same(path: Path, known: Entry) -> bool:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return False
    return (facts.st_size, facts.st_mtime_ns) == (known.size_bytes, known.mtime_ns)
