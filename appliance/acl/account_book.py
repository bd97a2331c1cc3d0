"""AccountBook: all accounts of a home folder. It watches the files, and changes them on request.

    HOME/conf/acl/**/*.yml, *.yaml      in order of their names
    HOME/conf/plain_acl.yml             last; new accounts are written here

An access key in two files belongs to the first one. If a changed file is invalid, its former accounts stay in force and
the log names the wrong line. At a start an invalid file is an error, because starting with the wrong accounts, open or
locked, would be worse than not starting. Several processes may share a home folder: changes are made under a lock
file, and each process reads those of the others within a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from appliance.acl.account import Account
from appliance.acl.account_file import AccountFileError, FileContent, read_content
from appliance.acl.address import Matches
from appliance.settings.replaced_file import replace_file
from gantrymq.remoting.admin_bodies import DataVersion

logger = logging.getLogger(__name__)

DEFAULT_FILE = Path("conf/plain_acl.yml")
FOLDER = Path("conf/acl")
WATCH_INTERVAL_S = 1.0  # RocketMQ: 5 s
FILES_MAX = 256
MOMENT_S = 60.0  # in which a tool asks one broker after the other to delete the same account

FileStamp = tuple[int, int, int]  # modified ns, size, inode


@dataclass(frozen=True)
class Accounts:
    """All accounts at one moment. Replaced as a whole, never changed."""

    by_key: dict[str, Account] = field(default_factory=dict)
    files: dict[Path, FileContent] = field(default_factory=dict)
    file_of: dict[str, Path] = field(default_factory=dict)  # access key -> its file
    is_white: Matches = lambda address: False


class AccountBook:
    """The accounts under a home folder. `current` may be read at any time; `refresh` and the changes block."""

    def __init__(self, home: Path, *, default_file: Path = DEFAULT_FILE) -> None:
        self.home = home
        self.default_file = default_file if default_file.is_absolute() else home / default_file
        self.current = Accounts()
        self._stamps: dict[Path, FileStamp] = {}
        self._broken: dict[Path, str] = {}  # invalid files and their errors; each is logged once
        self._lock = threading.RLock()
        self._gone: dict[str, float] = {}  # accounts that others deleted, and when that was seen

    def load(self) -> None:
        """Read all files; create an empty default file if it is missing. Raises AccountFileError."""
        with self._lock:
            if not self.default_file.exists():
                try:
                    replace_file(self.default_file, "accounts: []\n", is_private=True)
                except OSError as exc:
                    raise AccountFileError(self.default_file, f"can't be created: {exc.strerror}") from exc
            paths = self._paths()
            self._stamps = {path: _stamp(path) for path in paths}
            self._take({path: read_content(path) for path in paths})
            self._tell_loose_modes(paths)

    async def run(self) -> None:
        """Watch the files until cancelled."""
        while True:
            await asyncio.sleep(WATCH_INTERVAL_S)
            if self._has_changed():
                await asyncio.to_thread(self.refresh)

    def refresh(self) -> None:
        """Read the files that have changed. An invalid file, or a missing default file, keeps its former accounts."""
        with self._lock:
            contents: dict[Path, FileContent] = {}
            stamps: dict[Path, FileStamp] = {}
            for path in self._paths():
                known = self.current.files.get(path)
                stamp = stamps[path] = _stamp(path)
                if known is not None and stamp == self._stamps.get(path) and path not in self._broken:
                    contents[path] = known
                    continue
                try:
                    contents[path] = read_content(path)
                    self._broken.pop(path, None)
                except AccountFileError as exc:
                    self._tell_broken(exc)
                    if known is not None:
                        contents[path] = known
            if self.default_file not in contents and self.default_file in self.current.files:
                contents[self.default_file] = self.current.files[self.default_file]
                self._tell_broken(AccountFileError(self.default_file, "is gone; its accounts stay until it is back"))
            self._stamps = stamps
            self._take(contents)

    def version(self) -> DataVersion:
        """The version of the default file."""
        content = self.current.files.get(self.default_file)
        return content.version if content is not None else DataVersion()

    def was_deleted_elsewhere(self, access_key: str) -> bool:
        """Whether another process that shares the files has deleted it, moments ago."""
        return time.monotonic() - self._gone.get(access_key, -math.inf) <= MOMENT_S

    def deleted_here(self, access_key: str) -> None:
        """This process has deleted it: asked again, there is nothing to delete."""
        self._gone.pop(access_key, None)

    @property
    def broken_files(self) -> list[Path]:
        """The files that are invalid now, so that their accounts are not known."""
        return sorted(path for path in self._broken if path in self._stamps)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock of all changes, in this process and in others, while the block runs. AccountFileError."""
        lock_path = self.default_file.with_name(".acl.lock")
        with self._lock:
            try:
                descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as exc:
                raise AccountFileError(lock_path, f"can't be created: {exc.strerror}") from exc
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self.refresh()
                yield
                self.refresh()
            finally:
                os.close(descriptor)

    # -- files --------------------------------------------------------------------------------------------------------

    def _paths(self) -> list[Path]:
        """The files, in order of precedence."""
        folder = self.home / FOLDER
        found = sorted(
            path
            for path in folder.rglob("*")
            if path.suffix in (".yml", ".yaml") and path.is_file() and not path.name.startswith(".")
        )
        if len(found) > FILES_MAX:
            raise AccountFileError(folder, f"holds more than {FILES_MAX} files")
        paths = [path for path in found if path != self.default_file]
        return [*paths, self.default_file] if self.default_file.is_file() else paths

    def _has_changed(self) -> bool:
        try:
            return {path: _stamp(path) for path in self._paths()} != self._stamps
        except AccountFileError as exc:
            self._tell_broken(exc)
            return False

    def _take(self, files: dict[Path, FileContent]) -> None:
        by_key: dict[str, Account] = {}
        file_of: dict[str, Path] = {}
        for path, content in files.items():
            for account in content.accounts:
                if account.access_key in by_key:
                    logger.warning(
                        "access key is in two files: the first one counts",
                        extra={"event": "acl_key_twice", "access_key": account.access_key, "path": str(path)},
                    )
                    continue
                by_key[account.access_key] = account
                file_of[account.access_key] = path
        now = time.monotonic()
        gone = {key: at for key, at in self._gone.items() if now - at <= MOMENT_S and key not in by_key}
        self._gone = gone | dict.fromkeys(self.current.by_key.keys() - by_key.keys(), now)
        white = [content.is_white for content in files.values() if content.white_addresses]
        self.current = Accounts(by_key, files, file_of, lambda address: any(test(address) for test in white))
        logger.info("accounts read", extra={"event": "acl_accounts_read", "accounts": len(by_key), "files": len(files)})

    def _tell_broken(self, exc: AccountFileError) -> None:
        if self._broken.get(exc.path) != exc.reason:
            self._broken[exc.path] = exc.reason
            logger.error(
                "accounts file is invalid: the previous accounts stay in force",
                extra={"event": "acl_file_broken", "path": str(exc.path), "why": exc.reason},
            )

    def _tell_loose_modes(self, paths: list[Path]) -> None:
        for path in paths:
            if path.stat().st_mode & 0o077:
                logger.warning(
                    "other accounts of this machine can read the accounts file: chmod 600 it",
                    extra={"event": "acl_file_open", "path": str(path)},
                )


def _stamp(path: Path) -> FileStamp:
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def now_ms() -> int:
    return int(time.time() * 1000)
