"""Requests of a client, said by hand over a real socket to a real broker."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from appliance.bench.frames import send_fields
from gantrymq.message.model import MessageExt
from gantrymq.message.record import decode_records
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S, until

GROUP = "readers"


class Caller:
    """Says the requests of a client by hand."""

    def __init__(self, cluster: ServingCluster, client: RemotingClient) -> None:
        self.cluster = cluster
        self._client = client

    async def ask(self, request: RemotingCommand) -> RemotingCommand:
        return await self._client.invoke(self.cluster.broker_address, request, timeout_s=WITHIN_S)

    async def send(
        self, topic: str, body: bytes, properties: str = "", *, serialize_type: int = 0, **changes: str
    ) -> RemotingCommand:
        fields = send_fields("producers", topic, 0, properties) | changes
        code = RequestCode.SEND_BATCH_MESSAGE if fields["m"] == "true" else RequestCode.SEND_MESSAGE_V2
        return await self.ask(RemotingCommand.request(code, fields, body, serialize_type=serialize_type))

    async def pull(self, topic: str, offset: int = 0, **changes: str) -> RemotingCommand:
        fields = {
            "consumerGroup": GROUP,
            "topic": topic,
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "60000",
            "subVersion": "0",
            "subscription": "*",
        } | changes
        return await self.ask(RemotingCommand.request(RequestCode.PULL_MESSAGE, fields))

    async def until_held(self) -> None:
        """Wait until a pull waits."""
        await until(lambda: bool(self.cluster.broker.hold.held_count))

    async def read(self, topic: str) -> list[MessageExt]:
        answer = await self.pull(topic)
        assert answer.code == 0, answer.remark
        return decode_records(answer.body)


@contextlib.asynccontextmanager
async def calling(
    folder: Path, *, broker: dict[str, Any] | None = None, store: dict[str, Any] | None = None
) -> AsyncIterator[Caller]:
    async with serving(folder, broker=broker, store=store) as cluster:
        client = RemotingClient()
        try:
            yield Caller(cluster, client)
        finally:
            await client.close()
