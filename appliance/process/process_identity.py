"""Identifies processes by pid and start time, because the kernel reuses pids (Linux)."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path

START_TIME_FIELD = 19  # of /proc/PID/stat, counted after the name: ticks since the boot
PARENT_FIELD = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SESSION_BYTES = 8


def start_ticks(pid: int) -> int | None:
    """When the process started, in ticks; None when there is none, or only a zombie."""
    fields = _stat(pid)
    return None if not fields or fields[0] in ("Z", "X") else int(fields[START_TIME_FIELD])


def identity(pid: int, started_ticks: int | None) -> str:
    """A name that no other process has or had, on any machine: boot of the machine, namespace of the pid, pid, start.
    "": it can't be told. For a process of this one's namespace."""
    try:
        boot, namespace = BOOT_ID.read_text(encoding="ascii").strip(), Path("/proc/self/ns/pid").readlink()
    except (OSError, ValueError):
        return ""
    return "" if started_ticks is None or not boot else f"{boot}/{namespace}/{pid}/{started_ticks}"


def new_session() -> str:
    """A name for something of this process, never the same: it begins with the process's identity."""
    return f"{identity(os.getpid(), start_ticks(os.getpid()))}/{secrets.token_hex(SESSION_BYTES)}"


def is_of(session: str, process: str) -> bool:
    """Whether a session is of the process of that identity."""
    return process != "" and session.startswith(f"{process}/")


def is_of_same_boot(session: str, other: str) -> bool:
    """Whether both are of processes of one machine, since it was booted last. Unknown machines are not the same."""
    boot = session.partition("/")[0]
    return boot != "" and boot == other.partition("/")[0]


def is_running(session: str) -> bool:
    """Whether another process than this one has the session, and still runs: as far as can be seen from here, since
    one of another namespace, as in another container, is not to be found."""
    process = session.rpartition("/")[0]
    pid = process.split("/")[-2] if process.count("/") > 1 else ""
    return pid.isdecimal() and int(pid) != os.getpid() and identity(int(pid), start_ticks(int(pid))) == process


def runs(session: str, own: str) -> bool | None:
    """Whether another process with that session runs; None: not to be told from the process of the session `own`."""
    place = own.split("/")[:2]  # boot and namespace
    return is_running(session) if place[0] and session.split("/")[:2] == place else None


def is_same(pid: int, started_ticks: int | None) -> bool:
    """Whether `pid` is still the process with this start time."""
    return started_ticks is not None and start_ticks(pid) == started_ticks


def kill_same(pid: int, started_ticks: int | None, number: signal.Signals, *, is_for_session: bool = False) -> None:
    """Send a signal to that process, or to its session; not to another process that has its pid by now."""
    if is_same(pid, started_ticks):
        (os.killpg if is_for_session else os.kill)(pid, number)


def children_of(parent: int) -> set[int]:
    """The pids of the parent's children."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {pid for pid in pids if (fields := _stat(pid)) and int(fields[PARENT_FIELD]) == parent}


def _stat(pid: int) -> list[str]:
    """The fields after the name in /proc/PID/stat: state, parent, …; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name may hold blanks and brackets
