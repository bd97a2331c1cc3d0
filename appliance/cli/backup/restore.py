"""Bring a backup back, into a folder that is not there yet or is empty.

  gantry restore /mnt/backups --data /var/lib/gantrymq          the newest of that folder
  gantry restore /mnt/backups/20261124T120000Z --data DIR       this one
  gantry restore /mnt/backups --check                           read all of it, write nothing

Every file is compared with its checksum while it is copied. A backup with damage is refused, and nothing stays behind.
The first start then reads the end of each log, as after a crash.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from pathlib import Path

from appliance.cli.backup import copying
from appliance.cli.backup.manifest import (
    CONTENT,
    BackupError,
    Entry,
    Manifest,
    local_folder,
    newest_backup,
    read_manifest,
)
from appliance.settings.appliance_config import ApplianceConfig, describe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", type=local_folder, metavar="DIR", help="a backup, or the folder of several")
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
    parser.add_argument("--check", action="store_true", help="only compare all files with their checksums")


def run(arguments: argparse.Namespace) -> int:
    backup = newest_backup(arguments.backup)
    if backup is None:
        raise BackupError(f"{arguments.backup} has no whole backup: a manifest.json is missing")
    manifest = read_manifest(backup)
    if arguments.check:
        for name, entry in manifest.files.items():
            _check(backup / CONTENT / name, name, entry)
        print(f"{backup}: sound, {len(manifest.files)} files")
        return 0
    config = ApplianceConfig.load({"data": arguments.data}, config_file=arguments.config)
    restore(backup, manifest, config.data)
    print(f"{config.data}: restored from {backup}, {len(manifest.files)} files")
    if manifest.database == "postgresql":
        print("the dashboard's database was in PostgreSQL and is not in this backup: use pg_restore")
    return 0


def restore(backup: Path, manifest: Manifest, to: Path) -> None:
    """Raises BackupError for a target that is not empty and for a damaged backup; then the target is as it was."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BackupError(f"{to} is not empty: name a new folder with --data, or move this one away")
    unfinished = to.with_name(f"{to.name}.unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)  # of a restore that was interrupted
    try:
        unfinished.mkdir(parents=True, mode=copying.FOLDER_MODE)
        for name, entry in manifest.files.items():
            _bring_back(backup / CONTENT / name, unfinished / name, name, entry)
        for broker in manifest.log_ends:
            store = unfinished / "brokers" / broker / "store"
            store.mkdir(parents=True, exist_ok=True, mode=copying.FOLDER_MODE)
            (store / "abort").touch()  # so that the start reads the log
        if to.exists():
            to.rmdir()
        unfinished.rename(to)
    except OSError as exc:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise BackupError(f"{to} can't be restored: {exc}") from exc
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _bring_back(source: Path, to: Path, name: str, entry: Entry) -> None:
    try:
        copied = copying.copy(source, to)
    except FileNotFoundError:
        raise BackupError(f"the backup is damaged: {name} is missing") from None
    if (copied.size_bytes, copied.sha256) != (entry.size_bytes, entry.sha256):
        raise BackupError(f"the backup is damaged: {name} does not have its checksum")


def _check(path: Path, name: str, entry: Entry) -> None:
    """Raises BackupError."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise BackupError(f"the backup is damaged: {name} can't be read ({exc.strerror})") from None
    if (path.stat().st_size, found) != (entry.size_bytes, entry.sha256):
        raise BackupError(f"the backup is damaged: {name} does not have its checksum")
