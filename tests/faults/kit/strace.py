"""A disk that is slow or fails, by strace: system calls of a running process wait, or return an error."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import missing, require_tool

ATTACHED_S = 30.0


@contextlib.contextmanager
def injected(pid: int, calls: str, fault: str, log: Path, path: Path | None = None) -> Iterator[None]:
    """In process `pid`, all threads, let the system calls suffer: `delay_enter=MICROSECONDS`, `error=EIO`, …

    path: only those on that file. With `signal=SIGSTOP` the process stands still at a place of the caller's choice.
    """
    tool = require_tool("strace", "a failing disk is made by its fault injection")
    sudo = ["sudo", "-n"] if os.geteuid() and shutil.which("sudo") else []
    command = [
        *sudo,
        tool,
        "-f",
        "-p",
        str(pid),
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={calls}:{fault}",
        "-o",
        str(log),
        *(["-P", str(path)] if path is not None else []),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        _wait_until_attached(process, pid)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # it lets go of the process
        try:
            process.communicate(timeout=ATTACHED_S)
        except subprocess.TimeoutExpired:  # it waits for a process that was killed
            process.kill()
            process.communicate()


def _wait_until_attached(process: subprocess.Popen[bytes], pid: int) -> None:
    deadline = time.monotonic() + ATTACHED_S
    threads = Path(f"/proc/{pid}/task")
    while not all(_is_traced(thread) for thread in threads.iterdir()):
        if process.poll() is not None:
            assert process.stderr is not None
            missing("the right to trace", process.stderr.read().decode(errors="replace").strip())
        assert time.monotonic() < deadline, "strace did not attach"
        time.sleep(0.02)


def _is_traced(thread: Path) -> bool:
    return "TracerPid:\t0\n" not in (thread / "status").read_text()
