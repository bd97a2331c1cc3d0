"""One child process: spawn, wait until it serves, stop, kill, exit code. Restarting it is decided elsewhere.

A role that serves prints one line on its standard output, `READY {"role": …, "listen": "host:port", …}`, once its port
is open; `wait_ready` then also connects to that port, so that "ready" means a client would get through. Everything the
child prints, that line too, goes to its log file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.supervisor.log_file import LogFile
from appliance.supervisor.parent import PARENT_VARIABLE
from gantrymq.errors import GantryError

READY_PREFIX = b"READY "
READY_LINE_BYTES_MAX = 65_536
PROGRESS_MARK = b"event=store_recovering"  # a store that tells how far it is does not hang
CHUNK_BYTES = 65_536
CONNECT_ATTEMPT_S = 1.0
CONNECT_PAUSE_S = 0.02


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """What to start, and what to expect of it."""

    name: str  # unique, shown to people, names the log file
    role: str
    command: tuple[str, ...]
    address: str = ""  # where it will listen, as far as known before it says so itself
    is_service: bool = True  # False: a job that ends by itself, prints no READY, is never started again
    ready_timeout_s: float = 60.0  # opening a large store after a crash takes a while
    environment: Mapping[str, str] = field(default_factory=dict)


class ChildNotReady(GantryError):
    """The child ended or ran out of time before it served; `exit_code` is None when it was still running."""

    def __init__(self, name: str, reason: str, exit_code: int | None) -> None:
        super().__init__(f"{name} {reason}")
        self.name = name
        self.exit_code = exit_code


class Child:
    """One life of one process. A restart makes a new object."""

    def __init__(self, spec: ChildSpec, log_path: Path) -> None:
        self.spec = spec
        self.facts: dict[str, Any] = {}  # what the READY line said; before it, how far recovery is
        self._log_path = log_path
        self._process: asyncio.subprocess.Process | None = None
        self._ready_line: asyncio.Future[bytes] | None = None
        self._ready_deadline: asyncio.Timeout | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """As the shell has it: negative is the number of the signal that ended it; None while it runs."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Spawn the process in a session of its own, so that a terminal's Ctrl-C reaches only the supervisor."""
        environment = {**os.environ, **self.spec.environment, PARENT_VARIABLE: str(os.getpid())}
        self._ready_line = asyncio.get_running_loop().create_future()
        self._process = await asyncio.create_subprocess_exec(
            *self.spec.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self._pump = asyncio.create_task(self._copy_output(), name=f"output of {self.spec.name}")

    async def wait_ready(self) -> None:
        """Return when the child serves; raise ChildNotReady when it ends or takes too long."""
        assert self._process is not None
        assert self._ready_line is not None
        deadline = asyncio.timeout(self.spec.ready_timeout_s)
        self._ready_deadline = deadline
        try:
            async with deadline:
                line = await self._or_exit(asyncio.shield(self._ready_line))
                self.facts = _facts_of(line)
                if listen := self.facts.get("listen"):
                    await self._or_exit(_until_port_answers(listen))
        except TimeoutError:
            reason = f"did not serve within {self.spec.ready_timeout_s:g} s"
            raise ChildNotReady(self.spec.name, reason, None) from None
        finally:
            self._ready_deadline = None

    async def wait(self) -> int:
        """The exit code, once the process has ended and all it printed is in the log."""
        assert self._process is not None
        assert self._pump is not None
        code = await self._process.wait()
        await asyncio.wait([self._pump], timeout=1.0)  # a grandchild may hold the pipe open
        return code

    async def stop(self, grace_s: float) -> int | None:
        """Ask with SIGTERM, insist with SIGKILL after `grace_s` seconds."""
        if self._process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self._process.wait()
        except TimeoutError:
            self._kill_session()
            await self._process.wait()
        await self._end_pump()
        return self._process.returncode

    def _kill_session(self) -> None:
        """SIGKILL the process and whatever it started: the child leads a session, its pid is the group's."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _end_pump(self) -> None:
        if self._pump is None:
            return
        await asyncio.wait([self._pump], timeout=1.0)
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump

    async def _or_exit(self, awaitable: Any) -> Any:
        """The result of `awaitable`, unless the process ends first."""
        assert self._process is not None
        wanted = asyncio.ensure_future(awaitable)
        exited = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([wanted, exited], return_when=asyncio.FIRST_COMPLETED)
            if wanted.done():
                return wanted.result()
            raise ChildNotReady(self.spec.name, f"ended before it served ({_ending(exited.result())})", exited.result())
        finally:
            wanted.cancel()
            exited.cancel()

    async def _copy_output(self) -> None:
        """Copy what the child prints to its log, and catch the READY line on its way."""
        assert self._process is not None
        assert self._process.stdout is not None
        log = LogFile(self._log_path)
        watched = b""
        try:
            while chunk := await self._process.stdout.read(CHUNK_BYTES):
                log.write(chunk)
                if self._ready_line is not None and not self._ready_line.done():
                    watched = self._look_for_ready(watched + chunk)
        finally:
            log.close()

    def _look_for_ready(self, output: bytes) -> bytes:
        """Settle the future when a whole READY line is there; return what still has to be looked at."""
        assert self._ready_line is not None
        *lines, rest = output.split(b"\n")
        for line in lines:
            if PROGRESS_MARK in line:
                self._allow_more_time(line)
            if line.startswith(READY_PREFIX):
                self._ready_line.set_result(line.removeprefix(READY_PREFIX))
                return b""
        return rest[-READY_LINE_BYTES_MAX:]

    def _allow_more_time(self, line: bytes) -> None:
        """The broker reads its store again after a crash: each line that says so gives it its time anew."""
        words = dict(word.split("=", 1) for word in line.decode(errors="replace").split() if "=" in word)
        self.facts = {"recovering_percent": words.get("percent", "")}
        if self._ready_deadline is not None and not self._ready_deadline.expired():
            self._ready_deadline.reschedule(asyncio.get_running_loop().time() + self.spec.ready_timeout_s)


def _facts_of(line: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(line)
    except ValueError:
        return {}  # a READY without facts still says ready
    return facts if isinstance(facts, dict) else {}


def _ending(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


async def _until_port_answers(address: str) -> None:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    while True:
        try:
            async with asyncio.timeout(CONNECT_ATTEMPT_S):
                _, writer = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError):
            await asyncio.sleep(CONNECT_PAUSE_S)
            continue
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return
