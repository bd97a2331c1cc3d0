"""Bring a backup back, into a folder that is not there yet or is empty.

  gantry restore /mnt/backups --data /var/lib/gantrymq          the newest of that folder
  gantry restore /mnt/backups/20261124T120000Z --data DIR       this one
  gantry restore 's3://BUCKET/PREFIX?region=eu-west-1' --data DIR    the newest in S3
  gantry restore /mnt/backups --check                           read all of it, write nothing

Every file is compared with its checksum while it is copied. A backup with damage is refused, and nothing stays behind.
The first start then reads the end of each log, as after a crash. As root, name an empty folder of the account that runs
the appliance: what is restored belongs to the folder's owner.

The file that says which member of its group a store is (config/member.json) is left out, unless the group's etcd is in
the backup, too: that one would take the older log for the one that it has on record. With its etcd the whole group goes
back at once, so no store passes for a copy beside its original.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from appliance.broker.epochs.membership import FILE_NAME, Membership
from appliance.cli.backup import copying
from appliance.cli.backup.manifest import BackupError, Entry, Manifest
from appliance.cli.backup.places import Place, find_backup
from appliance.settings.appliance_config import ApplianceConfig, describe

ETCD = "etcd/"  # of `gantry up`, in the data folder
MEMBER_FILES = (FILE_NAME, f"{FILE_NAME}.bak")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", metavar="BACKUP", help="a backup, or the place of several: a folder, or s3://…")
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
    parser.add_argument("--check", action="store_true", help="only compare all files with their checksums")


def run(arguments: argparse.Namespace) -> int:
    place, backup = find_backup(arguments.backup)
    manifest = place.manifest(backup)
    if arguments.check:
        for name, entry in manifest.files.items():
            _compare(name, entry, copying.hash_of(_stored(place, backup, name, entry), entry.size_bytes))
        print(f"{place.path(backup)}: sound, {len(manifest.files)} files")
        return 0
    config = ApplianceConfig.load({"data": arguments.data}, config_file=arguments.config)
    left_out = _member_files(manifest)
    for name in left_out:
        del manifest.files[name]
    restore(place, backup, manifest, config.data)
    print(f"{config.data}: restored from {place.path(backup)}, {len(manifest.files)} files")
    if left_out:
        print(f"left out: {', '.join(left_out)}. Once it runs, `gantry admin ha join BROKER` has it join again")
    elif any(name.startswith(ETCD) for name in manifest.files):
        print("if the machine has restarted since the backup, or is another one, members may take no messages until")
        print("`gantry admin ha switchover BROKER --unclean --to HOST:PORT ...` names the one to go on")
    if manifest.database == "postgresql":
        print("the dashboard's database was in PostgreSQL and is not in this backup: use pg_restore")
    return 0


def restore(place: Place, backup: str, manifest: Manifest, to: Path) -> None:
    """Raises BackupError for a target that is not empty and for a damaged backup; then the target is as it was."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BackupError(f"{to} is not empty: name a new folder with --data, or move this one away")
    unfinished = to.with_name(f"{to.name}.unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)  # of a restore that was interrupted
    try:
        unfinished.mkdir(parents=True, mode=copying.FOLDER_MODE)
        for name, entry in manifest.files.items():
            stored = _stored(place, backup, name, entry)
            _compare(name, entry, copying.write(stored, entry.size_bytes, unfinished / name))
        for broker in manifest.log_ends:
            store = unfinished / "brokers" / broker / "store"
            store.mkdir(parents=True, exist_ok=True, mode=copying.FOLDER_MODE)
            (store / "abort").touch()  # so that the start reads the log
            for name in MEMBER_FILES:
                _forget_folder(store / "config" / name)
        if to.exists():
            _give(unfinished, to.stat())
            to.rmdir()
        unfinished.rename(to)
    except OSError as exc:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise BackupError(f"{to} can't be restored: {exc}") from exc
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _member_files(manifest: Manifest) -> list[str]:
    if any(name.startswith(ETCD) for name in manifest.files):
        return []
    files = (f"brokers/{broker}/store/config/{name}" for broker in manifest.log_ends for name in MEMBER_FILES)
    return [name for name in files if name in manifest.files]


def _forget_folder(file: Path) -> None:
    if file.exists():
        try:
            found = Membership.from_dict(json.loads(file.read_bytes()))
        except (ValueError, KeyError, TypeError):
            return  # damaged already when it was backed up: the broker takes the other one, or says so
        file.write_bytes(dataclasses.replace(found, folder=0).to_json())


def _give(folder: Path, to: os.stat_result) -> None:
    """To the owner of the empty folder that it replaces: root may restore for a service's account.

    The folder itself comes last: until then the account can't enter it, and put a link where root is about to look.
    """
    if to.st_uid != os.geteuid():
        for path in (*folder.rglob("*"), folder):
            os.chown(path, to.st_uid, to.st_gid, follow_symlinks=False)


def _stored(place: Place, backup: str, name: str, entry: Entry) -> Iterator[bytes]:
    """A file's bytes. Raises BackupError when they are not all there, or more."""
    if entry.stored_bytes == 0:
        return  # zeros alone: nothing was sent
    size_bytes = 0
    try:
        for part in place.parts(backup, name, entry):
            size_bytes += len(part)
            yield part
    except OSError as exc:
        raise BackupError(f"the backup is damaged: {name} can't be read ({exc.strerror or exc})") from exc
    if size_bytes != entry.length:
        raise BackupError(f"the backup is damaged: {name} has {size_bytes:,} bytes, not {entry.length:,}")


def _compare(name: str, entry: Entry, sha256: str) -> None:
    if sha256 != entry.sha256:
        raise BackupError(f"the backup is damaged: {name} does not have its checksum")
