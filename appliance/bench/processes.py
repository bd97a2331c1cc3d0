"""A child process of the benchmark: started, measured, stopped."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from appliance.process.parent_death import ask_for_signal

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_S = 30.0


class MemoryUse(NamedTuple):
    """Resident bytes without the mapped files of the store: those are page cache that the kernel can take back."""

    rss_bytes: int
    pss_bytes: int

    def plain(self) -> list[tuple[str, int]]:
        return list(self._asdict().items())


class PortRange:
    """Ports are handed out one after the other, so that none comes again soon: who got one may not listen there yet.

    Below the range from which the kernel serves outgoing connections, or any connection made meanwhile could take one.
    """

    def __init__(self, first: int = 11_000, end: int = 32_000) -> None:
        self._lock = threading.Lock()
        self._set(first, end)

    def _set(self, first: int, end: int) -> None:
        self._first, self._end = first, end
        self._next = random.SystemRandom().randrange(first, end)  # another run begins elsewhere

    def keep_share(self, number: int, shares: int) -> None:
        """Hand out only those of one of `shares` equal parts: processes with a share each never meet."""
        size = (self._end - self._first) // shares
        first = self._first + number % shares * size
        self._set(first, first + size)

    def free(self, *deltas: int) -> int:
        """A port p so that p and each p + delta are free right now, on every interface: Java's servers take them all.

        Raises OSError when there is none.
        """
        wanted = {0, *deltas}
        with self._lock:
            for _ in range(self._end - self._first):
                port = self._next - min(wanted)
                if port + max(wanted) >= self._end:
                    self._next = self._first
                    continue
                if _are_free(port + delta for delta in wanted):
                    self._next = port + max(wanted) + 1
                    return port
                self._next += 1
        raise OSError(f"no free port with neighbours {deltas}")


def _are_free(ports: Iterable[int]) -> bool:
    with contextlib.ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(socket.socket()).bind(("", port))
        except OSError:
            return False
        return True


PORTS = PortRange()
free_ports = PORTS.free


def _own_environment() -> dict[str, str]:
    """Not a plain copy: that fails when another thread removes a variable meanwhile, as pytest does after a test."""
    found = {name: os.environ.get(name) for name in list(os.environ)}
    return {name: value for name, value in found.items() if value is not None}


class Process:
    """One child whose output goes to a file. It ends when this process ends, for any reason."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=None if env is None else _own_environment() | dict(env),
                preexec_fn=_end_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        return self._popen.poll()

    def cpu_s(self) -> float:
        """CPU seconds used so far, all threads, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def memory(self, without: Path) -> MemoryUse:
        """What is resident, leaving out files mapped from below the folder `without`."""
        return sum_smaps(Path(f"/proc/{self.pid}/smaps").read_text(), str(without.resolve()))

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that has not helped in time."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL, as a crash would look."""
        self._popen.kill()
        self._popen.wait()

    def last_output(self, characters: int = 2000) -> str:
        return self.log.read_text(errors="replace")[-characters:]


def machine_busy_s() -> float:
    """CPU seconds that this machine has spent in processes since it started, and those its host took away."""
    user, nice, system, _, _, _, _, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + stolen) / _TICKS_PER_S


def sum_smaps(smaps: str, without: str) -> MemoryUse:
    """Add up Rss and Pss of a smaps text, skipping the mappings whose path starts with `without`."""
    rss = pss = 0
    counted = True
    for line in smaps.splitlines():
        key, _, rest = line.partition(" ")
        if not key.endswith(":"):  # "7f..-7f.. rw-s 00000000 fe:00 1234   /path"
            fields = line.split(maxsplit=5)
            counted = not (len(fields) == 6 and fields[5].startswith(without))
        elif counted and key == "Rss:":
            rss += int(rest.split()[0])
        elif counted and key == "Pss:":
            pss += int(rest.split()[0])
    return MemoryUse(rss * 1024, pss * 1024)


def _end_with_parent() -> None:
    """Runs in the child before exec: an aborted benchmark must not leave a JVM behind."""
    ask_for_signal(signal.SIGTERM)
