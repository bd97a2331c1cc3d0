"""The data folder: its layout, its secrets, and the lock that keeps a second appliance out.

DATA/gantry.lock              held while an appliance runs here; holds its process id
DATA/dashboard/               db.sqlite3, copies/ of it, secret_key
DATA/accounts/                appliance.yml, conf/plain_acl.yml, conf/acl/ (with --accounts)
DATA/namesrv/                 namesrv.properties, kvConfig.json
DATA/brokers/<name>/          broker.properties, store/
DATA/etcd/                    node.json, data/ of etcd itself (with --replicas 3)
DATA/reports/                 lake, runs, install.json, gantry.format
DATA/logs/                    one file a process, rotated
DATA/gantry.format            which format the folder has (store/startup/format_stamp.py)
DATA/before-format-<n>/       what a start with a newer version has rewritten, as it was
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
from pathlib import Path

from appliance.process.formats import DATA, bring_up_to_date
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import GantryError

LOCK_NAME = "gantry.lock"
SECRET_BYTES = 48
FOLDER_MODE = 0o700  # other accounts of the machine may not read messages and secrets
SECRET_MODE = 0o600


class DataFolderInUse(GantryError):
    """Another appliance runs on this data folder; `pid` is its process id, None when unknown."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{folder} is in use by {owner}: stop that process, or name another folder with --data")
        self.folder = folder
        self.pid = pid


def lay_out(config: ApplianceConfig) -> None:
    """Create missing folders and secrets; restrict the mode of the data folder. Raises NewerFormat."""
    if config.data.is_dir():
        bring_up_to_date(config.data, DATA)  # first: a folder of a newer version must stay untouched
    for folder in (
        config.data,
        config.dashboard_folder,
        config.namesrv_folder,
        config.brokers_folder,
        config.reports_folder,
        config.logs_folder,
    ):
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    config.data.chmod(FOLDER_MODE)
    bring_up_to_date(config.data, DATA)
    ensure_secret(config.dashboard_folder / "secret_key")


def ensure_secret(path: Path) -> str:
    """Return the secret in `path`. A missing file is created with a random secret, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        _write_new(path, secrets.token_urlsafe(SECRET_BYTES))
    return path.read_text(encoding="ascii").strip()


def _write_new(path: Path, secret: str) -> None:
    """Write `secret` to `path` atomically; if another process has created the file meanwhile, its secret stays."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:  # mode 0600 by construction
        file.write(secret + "\n")
        file.flush()
        with contextlib.suppress(FileExistsError):
            os.link(file.name, path)


def guardian_pid(folder: Path) -> int | None:
    """The process that holds the lock, or held it last; None: no process did, or this account can't know."""
    try:
        holder = (folder / LOCK_NAME).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(holder) if holder.isdigit() else None


class DataFolderLock:
    """Exclusive use of a data folder, from `acquire` until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise DataFolderInUse."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, SECRET_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DataFolderInUse(self._path.parent, int(holder) if holder.isdigit() else None) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
