"""A text file replaced atomically and durably: after a crash it is the old one or the new one. Syncs paths, too."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

NEW_FILE_MODE = 0o600


def replace_file(path: Path, text: str, *, is_private: bool = False) -> None:
    """Replace the file; when this returns, it is on disk. Raises OSError; the file is then unchanged.

    Mode and, where allowed, owner stay. is_private: for secrets; mode 0600 whatever it was, and the folder is made.
    """
    if is_private:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600 by construction
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            if not is_private:
                _like(path, file.fileno())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_path(path.parent)  # makes the rename durable


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _like(path: Path, descriptor: int) -> None:
    """Give the new file the old one's mode and owner."""
    try:
        found = path.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, NEW_FILE_MODE)
        return
    os.fchmod(descriptor, found.st_mode & 0o7777)
    with contextlib.suppress(PermissionError):  # only root can keep another owner: then this account becomes the owner
        os.fchown(descriptor, found.st_uid, found.st_gid)
