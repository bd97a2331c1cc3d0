"""A supervisor's other half for tests: the guardian's spawner, and a line to it as the web process has one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from typing import Any, Self

from appliance.supervisor.guardian_link import GuardianLink
from appliance.supervisor.link_messages import decode, encode
from appliance.supervisor.spawner import Spawner


class Guarded:
    """`async with Guarded() as guarded:` has `guarded.link`; `follow` makes the next web process's.

    Real processes, real pipes, a real socket pair; only the web process at its end is this one.
    """

    def __init__(self) -> None:
        self.spawner = Spawner(self._tell)
        self.link: GuardianLink
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._starts = 0

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)
        self.link = await self._connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.spawner.stop_all(10.0)
        await self.lose()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    async def follow(self) -> GuardianLink:
        """The web process is gone; another one comes."""
        await self.lose()
        self.link = await self._connect()
        return self.link

    async def lose(self, supervision: asyncio.Task[None] | None = None) -> None:
        """Nobody is there at the other end; a supervisor that was there has no word left to say."""
        for handle in self.link._handles.values():
            if not handle.exited.done():
                handle.exited.set_result(None)
        tasks = [*self._tasks, *([supervision] if supervision else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def hang_up(self) -> None:
        """As when the guardian is killed."""
        assert self._writer is not None
        self._writer.close()
        self._writer = None

    async def _connect(self) -> GuardianLink:
        ours, theirs = socket.socketpair()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        self._starts += 1
        hello = {"guardian": os.getpid(), "web_starts": self._starts, "has_served": self._starts > 1, "endings": []}
        self._tell({"event": "hello", **hello, "children": self.spawner.facts()})
        link = GuardianLink(theirs)
        await link.open()
        self._tasks = [asyncio.create_task(self._serve(reader)), asyncio.create_task(link.run())]
        return link

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            request = decode(line)
            if request["do"] in ("spawn", "signal"):
                getattr(self.spawner, request["do"])(request)

    def _tell(self, event: Any) -> None:
        if self._writer is not None:
            self._writer.write(encode(event))

    def _reap(self) -> None:
        """Only what the spawner started: other children of this process are the tests' own."""
        for facts in self.spawner.facts():
            if facts["pid"] is not None:
                with contextlib.suppress(ChildProcessError):
                    pid, status = os.waitpid(facts["pid"], os.WNOHANG)
                    if pid:
                        self.spawner.reaped(pid, os.waitstatus_to_exitcode(status))
