"""A bare client for tests: frames out, frames in, nothing clever between."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from gantrymq.remoting.admin_bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.waiting import WITHIN_S

VERSION_1 = DataVersion(1_700_000_000_000, 1)


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._told: deque[RemotingCommand] = deque()  # what the server said on its own while an answer was awaited

    @classmethod
    async def connect(cls, port: int) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def write(self, frame: bytes) -> None:
        self._writer.write(frame)

    async def read(self) -> RemotingCommand:
        """The next frame; first those that came before an answer."""
        return self._told.popleft() if self._told else await self._next()

    async def _next(self) -> RemotingCommand:
        async with asyncio.timeout(WITHIN_S):
            size_bytes = int.from_bytes(await self._reader.readexactly(4), "big")
            return RemotingCommand.decode(await self._reader.readexactly(size_bytes))

    async def ask(self, code: int, ext_fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
        request = RemotingCommand.request(code, ext_fields, body)
        self.write(request.encode())
        while not (answer := await self._next()).is_response:
            self._told.append(answer)
        assert answer.opaque == request.opaque
        return answer

    async def register(self, address: str, **changes: object) -> RemotingCommand:
        """Register a broker at `address`; see registration()."""
        ext_fields, body = registration(address, **changes)  # type: ignore[arg-type]
        return await self.ask(RequestCode.REGISTER_BROKER, ext_fields, body)

    async def until_closed(self) -> bytes:
        """Until the server has closed it; what it said before that."""
        async with asyncio.timeout(WITHIN_S):
            return await self._reader.read()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def registration(
    address: str,
    *,
    name: str = "broker-a",
    cluster: str = "DefaultCluster",
    broker_id: int = 0,
    topics: tuple[str, ...] = ("T",),
    data_version: DataVersion = VERSION_1,
) -> tuple[dict[str, str], bytes]:
    """Header and body of a broker's registration."""
    table = {topic: TopicConfig(topic, 4, 4) for topic in topics}
    ext_fields = {
        "brokerName": name,
        "brokerAddr": address,
        "clusterName": cluster,
        "haServerAddr": f"{address}9",
        "brokerId": str(broker_id),
    }
    return ext_fields, RegisterBrokerBody(TopicConfigSerializeWrapper(table, data_version)).to_json()


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Peer]:
    peer = await Peer.connect(port)
    try:
        yield peer
    finally:
        await peer.close()
