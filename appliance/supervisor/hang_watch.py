"""Finds a worker that runs and answers nothing: stopped by a signal, or stuck for good.

It is asked something every few seconds, and any answer will do: a refusal, or the end of the connection. What counts as
silence is for HangTimer to say, so that a machine that is slow, full of work, or was asleep kills no healthy worker.
"""

from __future__ import annotations

import asyncio
import contextlib

from appliance.supervisor.hang_timer import TICK_S, CpuWait, HangTimer
from gantrymq.errors import GantryError
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.tls import TlsConfig

WILDCARDS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
ASK_EACH_S = 2.5
NO_CODE = 65_535  # no server has it: the refusal comes from the loop itself, before any queue
ASKED_ON_A_CONNECTION = 16  # who sends many such codes without an account is disconnected, and logged
ANSWER_TIMEOUT_S = 3600.0  # HangTimer ends the waiting, long before


class HangWatch:
    """Watches one process. `limit_s`: so long it may be silent while it could speak. speaks_http: etcd does, and a
    proxy, which ends a connection that is not HTTP/2: an answer, too."""

    def __init__(
        self, address: str, pid: int, *, limit_s: float, tls: TlsConfig | None = None, speaks_http: bool = False
    ) -> None:
        host, _, port = address.rpartition(":")
        self._address = f"{WILDCARDS.get(host, host)}:{port}"
        self._limit_s = limit_s
        self._tls = tls
        self._speaks_http = speaks_http
        self._waits = CpuWait(pid)

    async def until_hung(self) -> None:
        """Return when the process hangs. It may take for ever: end it by cancellation."""
        while True:
            client = RemotingClient(tls=self._tls, connect_timeout_s=ANSWER_TIMEOUT_S)
            try:
                for _ in range(ASKED_ON_A_CONNECTION):
                    if not await self._answers(client):
                        return
                    await asyncio.sleep(ASK_EACH_S)
            finally:
                await client.close()

    async def _answers(self, client: RemotingClient) -> bool:
        """Ask once; False when the process was silent for longer than the limit."""
        asking = asyncio.ensure_future(self._ask(client))
        timer, loop = HangTimer(TICK_S), asyncio.get_running_loop()
        try:
            while timer.silent_s <= self._limit_s:
                before = loop.time()
                await asyncio.wait({asking}, timeout=TICK_S)
                if asking.done():
                    return True
                elapsed_s = loop.time() - before
                timer.tick(elapsed_s, self._waits.since_last_s(elapsed_s))
            return False
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, client: RemotingClient) -> None:
        with contextlib.suppress(GantryError, OSError):  # a connection that is refused or closed: its end is alive
            if self._speaks_http:
                await _ask_by_http(self._address)
                return
            await client.invoke(self._address, RemotingCommand.request(NO_CODE), timeout_s=ANSWER_TIMEOUT_S)


async def _ask_by_http(address: str) -> None:
    """Return when something was answered, or the connection was ended."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        writer.write(b"GET /version HTTP/1.0\r\n\r\n")
        await reader.read(1)
    finally:
        writer.close()
