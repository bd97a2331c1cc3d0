"""A file system of a few MiB, so that a full disk is a real one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import missing

PAGE_BYTES = 4096
# Reads until its parent closes the pipe or is no more, be it by SIGKILL; then nothing may stay mounted.
GUARD = """
import signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
sys.exit(subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode)
"""


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
    with at_the_end([*sudo, "umount", "--lazy", str(path)]):
        _mount(sudo, path, size_bytes)
        yield SmallDisk(path)


@contextlib.contextmanager
def at_the_end(command: list[str]) -> Iterator[None]:
    """Run the command when the block ends, and also when this process is killed within it."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-c", GUARD, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert guard.stdin is not None and guard.stdout is not None
    was_used = False
    try:
        assert guard.stdout.readline() == b"ready\n"
        yield
        was_used = True
    finally:
        guard.stdin.close()
        guard.stdout.close()
        code = guard.wait()
    assert not was_used or code == 0, f"{command} ended with {code}"


def _mount(sudo: list[str], path: Path, size_bytes: int) -> None:
    mounting = subprocess.run(
        [*sudo, "mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=777", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounting.returncode:
        missing("the right to mount", f"a full disk needs a small file system ({mounting.stderr.strip()})")
