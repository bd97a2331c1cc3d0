"""One run of one process: start or adopt it, wait until it serves, stop it. `supervisor.py` decides on restarts.

A service prints one line on its standard output, `READY {"role": …, "listen": "host:port", …}`, once its port is open;
`wait_ready` then connects to that port, so "ready" means that a client can connect. The guardian starts the process and
reads its output (`guardian_link.py`). A process that already runs, started by an earlier supervisor, is adopted.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.supervisor.guardian_link import GuardianLink, NotSpawned, WorkerHandle
from gantrymq.errors import GantryError
from gantrymq.timeouts import timeout

CONNECT_ATTEMPT_S = 1.0
CONNECT_PAUSE_S = 0.02
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """What to start, and what to expect of it."""

    name: str  # unique, shown to people, names the log file
    role: str
    command: tuple[str, ...]
    address: str = ""  # where it will listen, as far as known before its READY line
    says_ready: bool = True  # False: a program of others, which serves when `address` answers
    speaks_http: bool = False  # of either version, and nothing of RocketMQ's
    is_service: bool = True  # False: a job, which ends on its own, prints no READY, and is never started again
    ready_timeout_s: float = 60.0  # opening a large store after a crash takes a while
    environment: Mapping[str, str] = field(default_factory=dict)
    # Told of each process that was reaped: its pid, and when it started, in ticks.
    on_death: Callable[[int, int | None], Coroutine[Any, Any, None]] | None = None
    hold_file: Path | None = None  # while it exists, the process does not run


class ChildNotReady(GantryError):
    """The child ended or ran out of time before it served; `exit_code` is None when it was still running."""

    def __init__(self, name: str, reason: str, exit_code: int | None) -> None:
        super().__init__(f"{name} {reason}")
        self.name = name
        self.exit_code = exit_code


class Child:
    """One run of one process. A restart makes a new object."""

    def __init__(self, spec: ChildSpec, link: GuardianLink, *, stage: int, log_path: Path) -> None:
        self.spec = spec
        self.facts: dict[str, Any] = {}  # from the READY line; before it, the progress of recovery
        self.is_adopted = False
        self._link = link
        self._stage = stage
        self._log_path = log_path
        self._handle: WorkerHandle | None = None
        self._ready_deadline: asyncio.Timeout | None = None

    @property
    def pid(self) -> int | None:
        return self._handle.pid if self._handle else None

    @property
    def started_ticks(self) -> int | None:
        """What tells it from another process that gets its pid later."""
        return self._handle.started_ticks if self._handle else None

    @property
    def started_at(self) -> float | None:
        """Seconds since the epoch."""
        return self._handle.started_at if self._handle else None

    @property
    def is_running(self) -> bool:
        return self._handle is not None and not self._handle.exited.done()

    @property
    def exit_code(self) -> int | None:
        """Negative: the number of the signal that ended it. None while it runs, or when it is not known."""
        return self._handle.exited.result() if self._handle and self._handle.exited.done() else None

    async def start(self) -> None:
        """Adopt the running process of this name, or have one started. Raises ChildNotReady."""
        self._handle = self._link.running(self.spec.name)
        self.is_adopted = self._handle is not None
        if self._handle is None:
            try:
                self._handle = await self._link.spawn(
                    self.spec.name,
                    stage=self._stage,
                    command=self.spec.command,
                    environment=self.spec.environment,
                    log_path=self._log_path,
                )
            except NotSpawned as exc:
                raise ChildNotReady(self.spec.name, str(exc).removeprefix(f"{self.spec.name} "), None) from exc
        if self._handle.percent:
            self.facts = {"recovering_percent": self._handle.percent}
        self._handle.on_progress = self._allow_more_time

    async def wait_ready(self) -> None:
        """Return when the child serves; raise ChildNotReady when it ends or takes too long."""
        assert self._handle is not None
        deadline = timeout(self.spec.ready_timeout_s)
        self._ready_deadline = deadline
        was_ready = self._handle.ready.done()  # an adopted process: its port was checked by an earlier supervisor
        try:
            async with deadline:
                if self.spec.says_ready:
                    self.facts = _facts_of(await self._or_exit(asyncio.shield(self._handle.ready)))
                else:
                    self.facts = {"listen": self.spec.address}
                if (listen := self.facts.get("listen")) and not was_ready:
                    await self._or_exit(_until_port_answers(listen))
        except TimeoutError:
            reason = f"did not serve within {self.spec.ready_timeout_s:g} s"
            raise ChildNotReady(self.spec.name, reason, None) from None
        finally:
            self._ready_deadline = None

    async def wait(self) -> int | None:
        """Return the exit code when the process has ended and all its output is in the log."""
        assert self._handle is not None
        return await asyncio.shield(self._handle.exited)

    def kill(self) -> None:
        """End it at once, with all that it started in its session."""
        if self._handle is not None:
            self._link.signal(self._handle, signal.SIGKILL, is_for_session=True)

    async def stop(self, grace_s: float) -> int | None:
        """Send SIGTERM, and SIGKILL after `grace_s` seconds."""
        if self._handle is None:
            return None
        self._link.signal(self._handle, signal.SIGTERM)
        try:
            async with timeout(grace_s):
                await self.wait()
        except TimeoutError:
            self.kill()
            await self.wait()
        return self.exit_code

    async def _or_exit(self, awaitable: Any) -> Any:
        """Return the result of `awaitable`; raise ChildNotReady when the process ends first."""
        wanted = asyncio.ensure_future(awaitable)
        exited = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait([wanted, exited], return_when=asyncio.FIRST_COMPLETED)
            if wanted.done():
                return wanted.result()
            raise ChildNotReady(self.spec.name, f"ended before it served ({ending(exited.result())})", exited.result())
        finally:
            wanted.cancel()
            exited.cancel()

    def _allow_more_time(self, percent: str) -> None:
        """Restart the ready timeout: the broker has reported progress of its recovery after a crash."""
        if self._handle is not None and not self._handle.ready.done():
            self.facts = {"recovering_percent": percent}
        if self._ready_deadline is not None and not self._ready_deadline.expired():
            self._ready_deadline.reschedule(asyncio.get_running_loop().time() + self.spec.ready_timeout_s)


def _facts_of(line: str) -> dict[str, Any]:
    try:
        facts = json.loads(line)
    except ValueError:
        return {}  # a READY line without facts still means ready
    return facts if isinstance(facts, dict) else {}


def ending(code: int | None) -> str:
    """Describe an exit code."""
    if code is None or code >= 0:
        return f"exit code {code}"
    if -code == signal.SIGBUS:
        return "killed by SIGBUS: a file of its store could not be read, for a disk error or since it was cut short"
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
            async with timeout(CONNECT_ATTEMPT_S):
                _, writer = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError) as exc:
            if isinstance(exc, OSError) and exc.errno in OUT_OF_FILES:
                return  # this process is out of descriptors; that says nothing about the one that reports READY
            await asyncio.sleep(CONNECT_PAUSE_S)
            continue
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return
