"""A port that closes while connections are on their way, on both event loops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from appliance.remoting.acceptor import PlainListener
from appliance.remoting.tls import ServerTls
from appliance.remoting.tls_listener import TlsListener
from appliance.settings.tls import TlsSettings
from gantrymq.remoting.tls import ClientTls
from gantrymq.timeouts import timeout
from tests.appliance.loops import on_both_loops
from tests.certificates import server_fields, trusting
from tests.waiting import until

ENDS_S = 60


class Closing(asyncio.Protocol):
    """Has the port closed in the very turn of the loop in which it hears of its connection."""

    def __init__(self, close: Callable[[], asyncio.Task[None]]) -> None:
        self._close = close
        self.closing: asyncio.Task[None] | None = None
        self.is_lost = False

    def connection_made(self, _transport: asyncio.BaseTransport) -> None:
        self.closing = self._close()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.is_lost = True


@on_both_loops
@pytest.mark.parametrize("kind", ["plain", "plain where TLS may be", "TLS"])
async def test_who_is_handed_over_while_the_port_closes_hears_of_the_end(kind: str) -> None:
    made: list[Closing] = []

    def make() -> Closing:
        made.append(Closing(lambda: asyncio.create_task(listener.close())))
        return made[-1]

    if kind == "plain":
        listener = PlainListener(make, host="127.0.0.1", port=0, backlog=10)
    else:
        listener = TlsListener(make, ServerTls(TlsSettings(**server_fields())), host="127.0.0.1", port=0, backlog=10)
    port = await listener.open()
    listener.accept()
    context = ClientTls(trusting()).context() if kind == "TLS" else None
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"x")
        await until(lambda: bool(made and made[0].closing))
        with contextlib.suppress(OSError):
            async with timeout(ENDS_S):
                await reader.read()
        writer.close()
    await until(lambda: bool(made and made[0].closing))
    assert made[0].closing is not None
    async with timeout(ENDS_S):
        await made[0].closing
    await until(lambda: made[0].is_lost)
