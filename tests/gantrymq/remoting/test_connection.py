"""ClientConnection over a transport that keeps what is written: what goes into one write, and when."""

from __future__ import annotations

import asyncio

from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import ClientConnection


class Transport(asyncio.Transport):
    """Keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def is_closing(self) -> bool:
        return False


def receive(connection: ClientConnection, data: bytes) -> None:
    connection.get_buffer(len(data))[: len(data)] = data
    connection.buffer_updated(len(data))


async def test_what_answers_lead_to_is_written_together_and_a_turn_later() -> None:
    transport = Transport()
    connection = ClientConnection("host:1", lambda connection, command: None)
    connection.connection_made(transport)
    requests = [RemotingCommand.request(10) for _ in range(6)]
    first = [connection.submit(request, 600) for request in requests[:3]]
    await asyncio.sleep(0)
    transport.writes.clear()

    async def go_on(answer: asyncio.Future[RemotingCommand], request: RemotingCommand) -> None:
        await answer
        await connection.submit(request, 600)

    going = [asyncio.create_task(go_on(*pair)) for pair in zip(first[:2], requests[3:5], strict=True)]
    await asyncio.sleep(0)
    receive(connection, requests[0].reply().encode() + requests[1].reply().encode())
    assert transport.writes == []
    await asyncio.sleep(0)
    assert transport.writes == [requests[3].encode() + requests[4].encode()]
    for request in (requests[2], *requests[3:5]):
        receive(connection, request.reply().encode())
    await asyncio.gather(*going, first[2])
    await asyncio.sleep(0)
    assert len(transport.writes) == 1


async def test_a_request_alone_on_its_way_is_written_at_once() -> None:
    transport = Transport()
    connection = ClientConnection("host:1", lambda connection, command: None)
    connection.connection_made(transport)
    for _ in range(2):
        request = RemotingCommand.request(10)
        answer = connection.submit(request, 600)
        assert transport.writes == [request.encode()]
        receive(connection, request.reply().encode())
        assert (await answer).opaque == request.opaque
        transport.writes.clear()
