"""A file system of a few MiB, so that a full disk is a real one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import missing

PAGE_BYTES = 4096


class SmallDisk:
    """Mounted at `path`. `leave` fills it up to so many free bytes, `empty` gives the space back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def leave(self, free_bytes: int) -> None:
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while (stat := os.statvfs(self.path)).f_bavail * stat.f_frsize > free_bytes:
                file.write(bytes(PAGE_BYTES))

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Mount a tmpfs. Without the right to, the test skips aloud; in CI it fails."""
    path.mkdir()
    sudo = ["sudo", "-n"] if os.geteuid() and shutil.which("sudo") else []
    mounting = subprocess.run(
        [*sudo, "mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=777", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounting.returncode:
        missing("the right to mount", f"a full disk needs a small file system ({mounting.stderr.strip()})")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run([*sudo, "umount", "--lazy", str(path)], check=True)
