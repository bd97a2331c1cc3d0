"""Which process a number means: the kernel gives numbers again, so the start time belongs to them (Linux)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

START_TIME_FIELD = 19  # of /proc/PID/stat, counted behind the name: ticks since the boot
PARENT_FIELD = 1


def start_ticks(pid: int) -> int | None:
    """When the process started; None when there is none, or one that has ended and is not reaped yet."""
    fields = _stat(pid)
    return None if not fields or fields[0] in ("Z", "X") else int(fields[START_TIME_FIELD])


def is_same(pid: int, started_ticks: int | None) -> bool:
    """Whether `pid` is still the process that started then."""
    return started_ticks is not None and start_ticks(pid) == started_ticks


def kill_same(pid: int, started_ticks: int | None, number: signal.Signals, *, is_for_session: bool = False) -> None:
    """Send a signal to that process, or to the session it leads, and to nobody who has its number by now."""
    if is_same(pid, started_ticks):
        (os.killpg if is_for_session else os.kill)(pid, number)


def children_of(parent: int) -> set[int]:
    """The processes that `parent` has to reap."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {pid for pid in pids if (fields := _stat(pid)) and int(fields[PARENT_FIELD]) == parent}


def _stat(pid: int) -> list[str]:
    """State, parent, … of a process; empty when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name may hold blanks and brackets
