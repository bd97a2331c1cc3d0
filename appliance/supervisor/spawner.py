"""The guardian's child processes: it starts them on request, copies their output to their logs, and reaps them.

The web process decides which processes run and when one is started again (`supervisor.py`). This module holds what must
outlive the web process: being their parent, reading their pipes, and knowing which of them run.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from appliance.process.process_identity import start_ticks
from appliance.settings.variables import PARENT_VARIABLE
from appliance.supervisor.child_output import ChildOutput
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger(__name__)

CHUNK_BYTES = 65_536
PIPE_BYTES = 1 << 20  # output that fits into the pipe while the guardian is stopped for a moment
DRAINED_BYTES_MAX = 4 << 20  # of a process that ended; a grandchild may hold the pipe and go on


class Spawned:
    """One process name: the process that runs under it, or the last one."""

    def __init__(self, name: str, stage: int, log_path: Path) -> None:
        self.name = name
        self.stage = stage
        self.output = ChildOutput(log_path)
        self.process: subprocess.Popen[bytes] | None = None  # None: none runs
        self.pid = 0
        self.started_at = 0.0  # seconds since the epoch
        self.started_ticks: int | None = None
        self.starts = 0
        self.exit_code: int | None = None  # of the last run that ended
        self.ended = asyncio.Event()

    @property
    def facts(self) -> dict[str, Any]:
        """The content of the event `spawned`."""
        return {
            "name": self.name,
            "pid": self.pid if self.process is not None else None,
            "started_at": self.started_at,
            "started_ticks": self.started_ticks,
            "starts": self.starts,
            "exit_code": self.exit_code,
            "ready": self.output.ready_line,
            "percent": self.output.percent,
        }


class Spawner:
    """`tell` sends events to the web process. Without one they are dropped: the next one's `hello` has everything."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._tell = tell
        self._spawned: dict[str, Spawned] = {}

    def facts(self) -> list[dict[str, Any]]:
        return [spawned.facts for spawned in self._spawned.values()]

    def spawn(self, request: Mapping[str, Any]) -> None:
        """Start the requested process, unless one of this name runs already."""
        name = str(request["name"])
        spawned = self._spawned.get(name)
        if spawned is None:
            spawned = self._spawned[name] = Spawned(name, int(request["stage"]), Path(request["log_path"]))
        if spawned.process is None:
            try:
                self._start(spawned, request)
            except OSError as exc:
                self._tell({"event": "not_spawned", "name": name, "reason": f"can't be started: {exc}"})
                return
        self._tell({"event": "spawned", **spawned.facts})

    def signal(self, request: Mapping[str, Any]) -> None:
        """Send the requested signal, unless the process has ended: another process may have its pid by now."""
        spawned = self._spawned.get(str(request["name"]))
        if spawned is not None and spawned.process is not None and spawned.pid == request["pid"]:
            self._send(spawned, int(request["number"]), is_for_session=bool(request["is_for_session"]))

    def reaped(self, pid: int, exit_code: int) -> bool:
        """Handle the end of a child. Returns False when the spawner did not start it."""
        spawned = next((item for item in self._spawned.values() if item.process is not None and item.pid == pid), None)
        if spawned is None or spawned.process is None:
            return False
        spawned.process.returncode = exit_code  # Popen must not wait for it again
        if spawned.process.stdout is not None and not spawned.process.stdout.closed:
            self._drain(spawned, spawned.process.stdout.fileno())
        spawned.process, spawned.exit_code = None, exit_code
        spawned.ended.set()
        facts = {"event": "process_ended", "child": spawned.name, "pid": pid, "exit_code": exit_code}
        logger.info("process ended", extra=facts)
        self._tell({"event": "ended", "name": spawned.name, "pid": pid, "exit_code": exit_code})
        return True

    async def stop_all(self, grace_s: float) -> None:
        """Stop the processes that still run, the last stage first; for when the web process could not do it."""
        running = [spawned for spawned in self._spawned.values() if spawned.process is not None]
        for stage in sorted({spawned.stage for spawned in running}, reverse=True):
            await asyncio.gather(*(self._stop(spawned, grace_s) for spawned in running if spawned.stage == stage))

    async def _stop(self, spawned: Spawned, grace_s: float) -> None:
        logger.info("process is stopped", extra={"event": "process_stopping", "child": spawned.name})
        self._send(spawned, signal.SIGTERM)
        await wait_for_event(spawned.ended, grace_s)
        if spawned.process is not None:
            self._send(spawned, signal.SIGKILL, is_for_session=True)
            await spawned.ended.wait()

    def _start(self, spawned: Spawned, request: Mapping[str, Any]) -> None:
        """Start the process in a session of its own, so that a terminal's Ctrl-C reaches only the guardian."""
        environment = {**os.environ, **request["environment"], PARENT_VARIABLE: str(os.getpid())}
        process = subprocess.Popen(
            request["command"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        spawned.output.begin_life()
        spawned.process, spawned.pid = process, process.pid
        spawned.started_at, spawned.started_ticks = time.time(), start_ticks(process.pid)
        spawned.starts += 1
        spawned.ended.clear()
        self._read_from(spawned, process)
        logger.info("process started", extra={"event": "process_started", "child": spawned.name, "pid": process.pid})

    def _read_from(self, spawned: Spawned, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        pipe = process.stdout  # owned by the reader: a grandchild may hold the pipe longer than the process lives
        os.set_blocking(pipe.fileno(), False)
        with contextlib.suppress(OSError):  # the kernel may allow less: then the pipe keeps the default size
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        loop = asyncio.get_running_loop()

        def readable() -> None:
            chunk = _read(pipe.fileno())
            if chunk and spawned.process is process:
                self._take(spawned, chunk)
            elif chunk:
                spawned.output.write(chunk)  # a grandchild's, after the process has ended: not to be taken for READY
            elif chunk is not None:
                loop.remove_reader(pipe.fileno())
                pipe.close()

        loop.add_reader(pipe.fileno(), readable)

    def _drain(self, spawned: Spawned, descriptor: int) -> None:
        """Copy the rest of an ended process's output to its log, before its end is reported."""
        drained_bytes = 0
        while drained_bytes < DRAINED_BYTES_MAX and (chunk := _read(descriptor)):
            self._take(spawned, chunk)
            drained_bytes += len(chunk)

    def _take(self, spawned: Spawned, chunk: bytes) -> None:
        output = spawned.output
        lines, was_ready = output.progress_lines, output.ready_line is not None
        output.take(chunk)
        if output.progress_lines != lines:
            self._tell({"event": "progress", "name": spawned.name, "pid": spawned.pid, "percent": output.percent})
        if output.ready_line is not None and not was_ready:
            self._tell({"event": "ready", "name": spawned.name, "pid": spawned.pid, "line": output.ready_line})

    def _send(self, spawned: Spawned, number: int, *, is_for_session: bool = False) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended and is about to be reaped
            (os.killpg if is_for_session else os.kill)(spawned.pid, number)


def _read(descriptor: int) -> bytes | None:
    """A chunk; b"" at the end of the pipe; None when there is no data now."""
    try:
        return os.read(descriptor, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
