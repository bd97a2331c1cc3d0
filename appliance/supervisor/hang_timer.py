"""For how long a process has really been silent: time in which it could have spoken, and not time that a clock shows.

A machine that stands still, or has no core to give, must not look like a process that hangs: everything would be
killed, started again into the same misery, and killed again. So the watcher counts its own ticks. When it was late
itself, by whatever cause, a tick counts no more than its period; and what threads of the watched process spent waiting
for a core or in the disk's queue does not count either.
"""

from __future__ import annotations

from pathlib import Path

TICK_S = 0.5


class Silence:
    """`tick` once a period; `heard` when the other one spoke."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self.counted_s = 0.0
        self._tick_s = tick_s

    def heard(self) -> None:
        self.counted_s = 0.0

    def tick(self, elapsed_s: float, waited_s: float) -> None:
        """`elapsed_s` since the last tick, of which the process waited `waited_s` for a core or the disk."""
        self.counted_s += max(0.0, min(elapsed_s, self._tick_s) - waited_s)


class CoreWait:
    """What the threads of a process have waited for a core since the last look (Linux; elsewhere 0)."""

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._waited_ns: dict[str, int] = {}

    def since_last_s(self, elapsed_s: float) -> float:
        """Seconds in which a thread waited; all `elapsed_s` when the disk holds the process."""
        grown_ns, now_ns, is_in_disk_queue = 0, dict[str, int](), False
        try:
            for task in self._tasks.iterdir():
                waited_ns = int((task / "schedstat").read_text(encoding="ascii").split()[1])
                now_ns[task.name] = waited_ns
                grown_ns += waited_ns - self._waited_ns.get(task.name, waited_ns)
                state = (task / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
                is_in_disk_queue = is_in_disk_queue or state == "D"
        except (OSError, IndexError, ValueError):
            return 0.0  # it has just ended, or the kernel does not count
        self._waited_ns = now_ns
        return elapsed_s if is_in_disk_queue else grown_ns / 1e9
