"""Measures how long a process has not sent a heartbeat although it could have: that is shorter than wall time.

A stalled or overloaded machine must not look like a hanging process, or everything would be killed, started again under
the same load, and killed again. So the watcher counts its own ticks: when it runs late itself, a tick counts no more
than its period. Time in which the watched process's threads waited for a core or for the disk does not count either.
"""

from __future__ import annotations

from pathlib import Path

TICK_S = 0.5


class HangTimer:
    """Call `tick` once a period, and `reset` at each heartbeat."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self.silent_s = 0.0
        self._tick_s = tick_s

    def reset(self) -> None:
        self.silent_s = 0.0

    def tick(self, elapsed_s: float, waited_s: float) -> None:
        """Count the time since the last tick, without the part that the process waited for a core or the disk."""
        self.silent_s += max(0.0, min(elapsed_s, self._tick_s) - waited_s)


class CpuWait:
    """How long the threads of a process have waited for a core since the last call (Linux; elsewhere 0)."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._waited_ns: dict[str, int] = {}

    def since_last_s(self, elapsed_s: float) -> float:
        """Seconds in which a thread waited; all of `elapsed_s` when a thread waits for the disk now."""
        grown_ns, now_ns, is_in_disk_queue = 0, dict[str, int](), False
        try:
            for task in self._tasks.iterdir():
                waited_ns = int((task / "schedstat").read_text(encoding="ascii").split()[1])
                now_ns[task.name] = waited_ns
                grown_ns += waited_ns - self._waited_ns.get(task.name, waited_ns)
                state = (task / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
                is_in_disk_queue = is_in_disk_queue or state == "D"
        except (OSError, IndexError, ValueError):
            return 0.0  # the process has just ended, or the kernel has no schedstat
        self._waited_ns = now_ns
        return elapsed_s if is_in_disk_queue else grown_ns / 1e9
