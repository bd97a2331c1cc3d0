"""One run of the web process, as the guardian sees it: start, requests, hang, end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from appliance.settings.variables import GUARDIAN_VARIABLE, PARENT_VARIABLE
from appliance.supervisor.hang_timer import TICK_S, CpuWait, HangTimer
from appliance.supervisor.link_messages import MESSAGE_BYTES_MAX, decode, encode
from appliance.supervisor.spawner import Spawner

logger = logging.getLogger(__name__)

FIRST_BEAT_FACTOR = 12  # loading Django takes longer than the limit between two beats
UNREAD_BYTES_MAX = 1 << 20
FAREWELL_S = 1.0  # for reading the messages that it sent before it ended
COMMAND = (sys.executable, "-P", "-m", "dashboard", "up")


@dataclass(frozen=True, slots=True)
class Ending:
    """How the web process ended. `finish_code`: the appliance's exit code, when it had stopped everything."""

    reason: str
    finish_code: int | None
    lived_s: float
    has_served: bool = False


class WebProcess:
    """`run` starts the process and returns at its end; `tell` sends it events."""

    def __init__(self, spawner: Spawner, *, hang_s: float, command: tuple[str, ...] = COMMAND) -> None:
        self.pid = 0
        self.serves = asyncio.Event()
        self._spawner = spawner
        self._command = command
        self._hang_s = hang_s
        self._first_beat_s = hang_s * FIRST_BEAT_FACTOR
        self._hang_timer = HangTimer()
        self._has_beaten = False
        self._finish_code: int | None = None
        self._killed_for = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._writer: asyncio.StreamWriter | None = None

    async def run(self, hello: Mapping[str, Any]) -> Ending:
        """Start the process; return when it has ended."""
        started = time.monotonic()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._start(theirs)
            except OSError as exc:
                ours.close()
                return Ending(f"can't be started: {exc}", None, 0.0)
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=MESSAGE_BYTES_MAX)
        self.tell(hello)
        tasks = [asyncio.create_task(self._listen(reader)), asyncio.create_task(self._watch())]
        try:
            code = await asyncio.shield(self._exit_code)
            await asyncio.wait(tasks[:1], timeout=FAREWELL_S)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()
            self._writer = None
        lived_s, reason = time.monotonic() - started, self._killed_for or _ending(code)
        return Ending(reason, self._finish_code, lived_s, self.serves.is_set())

    def tell(self, event: Mapping[str, Any]) -> None:
        """Send an event. A process that does not read its events is killed."""
        if self._writer is None:
            return
        self._writer.write(encode(event))
        if self._writer.transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._kill("does not read its messages")

    def reaped(self, pid: int, exit_code: int) -> bool:
        """Handle the end of a child. Returns False when it was another one."""
        if self._process is None or pid != self.pid or self._exit_code.done():
            return False
        self._process.returncode = exit_code  # Popen must not wait for it again
        self._exit_code.set_result(exit_code)
        return True

    def ask_to_stop(self, number: signal.Signals) -> None:
        self._send(number)

    def _start(self, theirs: socket.socket) -> None:
        environment = {**os.environ, GUARDIAN_VARIABLE: str(theirs.fileno()), PARENT_VARIABLE: str(os.getpid())}
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            env=environment,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # a terminal's Ctrl-C reaches the guardian, which passes it on
        )
        self.pid = self._process.pid

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._obey(decode(line))
        except OSError:
            return  # it ended with unread messages; its exit code tells more
        except (ValueError, KeyError) as exc:
            logger.exception("malformed message from the web process", extra={"event": "web_message_bad"})
            self._kill(f"sent a malformed message ({exc})")

    def _obey(self, request: Mapping[str, Any]) -> None:
        self._hang_timer.reset()
        match request["do"]:
            case "beat":
                self._has_beaten = True
            case "spawn":
                self._spawner.spawn(request)
            case "signal":
                self._spawner.signal(request)
            case "serving":
                self.serves.set()
            case "finish":
                self._finish_code = int(request["code"])

    async def _watch(self) -> None:
        """Kill the process when it has sent no heartbeat for too long (see HangTimer)."""
        waits, last = CpuWait(self.pid), time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            elapsed_s, last = now - last, now
            self._hang_timer.tick(elapsed_s, waits.since_last_s(elapsed_s))
            limit_s = self._hang_s if self._has_beaten else self._first_beat_s
            if self._hang_timer.silent_s > limit_s:
                self._kill(f"did not answer for {limit_s:g} s")
                return

    def _kill(self, reason: str) -> None:
        self._killed_for = self._killed_for or reason
        with contextlib.suppress(ProcessLookupError):
            if not self._exit_code.done():
                os.killpg(self.pid, signal.SIGKILL)  # with all processes that it started in its session

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None and not self._exit_code.done():
                os.kill(self.pid, number)


def _ending(code: int) -> str:
    """Describe an exit code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
