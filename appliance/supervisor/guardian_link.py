"""The web process's end of the connection to the guardian: it requests processes and gets their events.

The guardian is the parent and reaps its children, so the pid of a process that it has not reported as ended can't have
been reused. When the guardian is killed, there are no more reports: then the processes are checked by pid and start
time until they are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from appliance.process.process_identity import is_same, kill_same
from appliance.settings.variables import GUARDIAN_VARIABLE
from appliance.supervisor.link_messages import MESSAGE_BYTES_MAX, decode, encode
from gantrymq.errors import GantryError

logger = logging.getLogger(__name__)

BEAT_S = 0.5
UNREAD_BYTES_MAX = 65_536  # above it no beats are sent: the guardian does not read
LOOK_S = 0.05


class NotSpawned(GantryError):
    """The guardian could not start the process, or is gone."""


class WorkerHandle:
    """One run of one process that the guardian started."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.name = str(facts["name"])
        self.pid = int(facts["pid"])
        self.started_at = float(facts["started_at"])
        self.started_ticks: int | None = facts["started_ticks"]
        self.starts = int(facts["starts"])  # under this name, including this one
        self.last_exit_code: int | None = facts["exit_code"]  # of the run before
        self.percent = str(facts["percent"])
        self.on_progress: Callable[[str], None] | None = None
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[str] = loop.create_future()  # the text after READY
        self.exited: asyncio.Future[int | None] = loop.create_future()  # None: unknown, since the guardian is gone
        if facts["ready"] is not None:
            self.ready.set_result(facts["ready"])


class GuardianLink:
    """`open` first, then `run` for as long as the process lives."""

    def __init__(self, connection: socket.socket) -> None:
        self.gone = asyncio.Event()  # the guardian has ended
        self.guardian_pid = 0
        self.web_starts = 1
        self.is_resumed = False  # an earlier web process has served, so workers may run already
        self.endings: list[dict[str, Any]] = []  # of earlier web processes: at, reason, lived_s
        self._connection = connection
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._handles: dict[str, WorkerHandle] = {}
        self._ended: dict[str, Mapping[str, Any]] = {}  # by name: processes that ended before this one started
        self._asked: dict[str, asyncio.Future[WorkerHandle]] = {}

    @classmethod
    def from_environment(cls) -> GuardianLink:
        """Use the inherited socket of the guardian, and keep it from processes that this one starts."""
        descriptor = int(os.environ.pop(GUARDIAN_VARIABLE))
        os.set_inheritable(descriptor, False)
        return cls(socket.socket(fileno=descriptor))

    async def open(self) -> None:
        """Connect, and read the list of processes that run already."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._connection, limit=MESSAGE_BYTES_MAX)
        hello = decode(await self._reader.readline())
        self.guardian_pid, self.web_starts = hello["guardian"], hello["web_starts"]
        self.is_resumed, self.endings = hello["has_served"], hello["endings"]
        for facts in hello["children"]:
            if facts["pid"] is None:
                self._ended[facts["name"]] = facts
            else:
                self._handles[facts["name"]] = WorkerHandle(facts)

    async def run(self) -> None:
        """Send beats and handle events until the guardian is gone; then watch the remaining processes."""
        assert self._reader is not None
        beating = asyncio.create_task(self._beat(), name="heartbeat")
        try:
            while line := await self._reader.readline():
                self._take(decode(line))
        except OSError as exc:
            logger.warning("connection to the guardian lost", extra={"event": "guardian_lost", "reason": str(exc)})
        finally:
            beating.cancel()
        await self._outlive_guardian()

    def running(self, name: str) -> WorkerHandle | None:
        """The process that runs under this name now."""
        handle = self._handles.get(name)
        return handle if handle is not None and not handle.exited.done() else None

    def ended_unseen(self, name: str) -> Mapping[str, Any] | None:
        """What is known of a process that ended while no web process ran. Returned once."""
        return self._ended.pop(name, None)

    async def spawn(
        self, name: str, *, stage: int, command: tuple[str, ...], environment: Mapping[str, str], log_path: Path
    ) -> WorkerHandle:
        """Have the process started. Raises NotSpawned."""
        if self.gone.is_set():
            raise NotSpawned(f"{name} can't be started: the guardian is gone")
        answer: asyncio.Future[WorkerHandle] = asyncio.get_running_loop().create_future()
        self._asked[name] = answer
        request = {"do": "spawn", "name": name, "stage": stage, "command": command, "log_path": str(log_path)}
        self._say({**request, "environment": dict(environment)})
        return await answer

    def signal(self, handle: WorkerHandle, number: signal.Signals, *, is_for_session: bool = False) -> None:
        """Send a signal to the process, or to its whole session."""
        if handle.exited.done():
            return
        if self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                kill_same(handle.pid, handle.started_ticks, number, is_for_session=is_for_session)
            return
        facts = {"name": handle.name, "pid": handle.pid, "number": int(number), "is_for_session": is_for_session}
        self._say({"do": "signal", **facts})

    def tell_serving(self) -> None:
        self._say({"do": "serving"})

    async def finish(self, code: int) -> None:
        """Tell the guardian that everything is stopped and that it may end with this exit code."""
        self._say({"do": "finish", "code": code})
        if self._writer is not None:
            with contextlib.suppress(OSError):
                await self._writer.drain()

    def _say(self, request: Mapping[str, Any]) -> None:
        if self._writer is not None and not self.gone.is_set():
            self._writer.write(encode(request))

    async def _beat(self) -> None:
        assert self._writer is not None
        while True:
            if self._writer.transport.get_write_buffer_size() < UNREAD_BYTES_MAX:
                self._say({"do": "beat"})
            await asyncio.sleep(BEAT_S)

    def _take(self, event: Mapping[str, Any]) -> None:
        name = str(event["name"])
        handle = self._handles.get(name)
        match event["event"]:
            case "spawned":
                self._handles[name] = handle = WorkerHandle(event)
                self._answer(name, handle)
            case "not_spawned":
                self._answer(name, NotSpawned(f"{name} {event['reason']}"))
            case "progress" if handle is not None and handle.pid == event["pid"]:
                handle.percent = str(event["percent"])
                if handle.on_progress is not None:
                    handle.on_progress(handle.percent)
            case "ready" if handle is not None and handle.pid == event["pid"] and not handle.ready.done():
                handle.ready.set_result(str(event["line"]))
            case "ended" if handle is not None and handle.pid == event["pid"] and not handle.exited.done():
                handle.exited.set_result(int(event["exit_code"]))

    def _answer(self, name: str, outcome: WorkerHandle | NotSpawned) -> None:
        answer = self._asked.pop(name, None)
        if answer is None or answer.done():  # the caller was cancelled meanwhile
            return
        if isinstance(outcome, NotSpawned):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    async def _outlive_guardian(self) -> None:
        self.gone.set()
        for name in list(self._asked):
            self._answer(name, NotSpawned(f"{name} can't be started: the guardian is gone"))
        living = [handle for handle in self._handles.values() if not handle.exited.done()]
        while living:
            for handle in living:
                if not is_same(handle.pid, handle.started_ticks):
                    handle.exited.set_result(None)
            living = [handle for handle in living if not handle.exited.done()]
            await asyncio.sleep(LOOK_S)
