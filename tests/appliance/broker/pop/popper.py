"""A client that pops, as RocketMQ 5's do: requests over the wire, handles made of the answers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from gantrymq.message.model import MessageExt
from gantrymq.message.record import decode_records
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import BatchAck, BatchAckRequest

BROKER_NAME = "broker-a"


@dataclass
class Delivered:
    """A message and its handle. topic, queue_id, offset: where it is leased."""

    message: MessageExt
    handle: str
    group: str
    topic: str

    @property
    def body(self) -> bytes:
        return self.message.body

    def fields(self) -> dict[str, str]:
        words = self.handle.split(" ")
        topic = f"%RETRY%{self.group}_{self.topic}" if words[4] == "1" else self.topic
        return {
            "consumerGroup": self.group,
            "topic": topic,
            "queueId": words[6],
            "offset": words[7],
            "extraInfo": self.handle,
        }


@dataclass
class Popper:
    """One connection to one broker, for one group and topic."""

    client: RemotingClient
    address: str
    group: str = "g"
    topic: str = "orders"

    async def ask(self, code: int, fields: dict[str, Any], body: bytes = b"", timeout_s: float = 60) -> RemotingCommand:
        texts = {name: str(value) for name, value in fields.items() if value is not None}
        return await self.client.invoke(self.address, RemotingCommand.request(code, texts, body), timeout_s=timeout_s)

    async def pop_answer(self, **fields: Any) -> RemotingCommand:
        wanted = {
            "consumerGroup": self.group,
            "topic": self.topic,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 60_000,
            "pollTime": 0,
            "bornTime": 0,
            "initMode": 0,
            "order": "false",
        }
        return await self.ask(RequestCode.POP_MESSAGE, wanted | fields)

    async def pop(self, **fields: Any) -> list[Delivered]:
        """What came; nothing for 209 and 210."""
        return self.delivered(await self.pop_answer(**fields))

    def delivered(self, answer: RemotingCommand) -> list[Delivered]:
        if answer.code in (209, 210):
            return []
        assert answer.code == 0, answer
        head = answer.ext_fields
        starts = {tuple(part.split(" ")[:2]): part.split(" ")[2] for part in head["startOffsetInfo"].split(";")}
        found = []
        for message in decode_records(answer.body):
            kind = "0"
            handle = message.properties.get("POP_CK") or " ".join(
                (
                    starts[kind, str(message.queue_id)], head["popTime"], head["invisibleTime"], head["reviveQid"],
                    kind, BROKER_NAME, str(message.queue_id), str(message.queue_offset),
                )
            )  # fmt: skip
            found.append(Delivered(message, handle, self.group, self.topic))
        return found

    async def ack(self, delivered: Delivered) -> int:
        return (await self.ask(RequestCode.ACK_MESSAGE, delivered.fields())).code

    async def change(self, delivered: Delivered, invisible_ms: int) -> RemotingCommand:
        fields = delivered.fields() | {"invisibleTime": invisible_ms}
        return await self.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, fields)

    async def ack_all(self, delivered: list[Delivered]) -> int:
        """In one request."""
        acks: dict[tuple[str, ...], tuple[BatchAck, list[int]]] = {}
        for each in delivered:
            start, pop_ms, invisible_ms, revive, kind, _broker, queue_id, offset = each.handle.split(" ")
            ack = BatchAck(
                self.group, self.topic, kind, int(start), int(queue_id), int(revive), int(pop_ms), int(invisible_ms)
            )
            acks.setdefault((start, pop_ms, kind, queue_id), (ack, []))[1].append(int(offset))
        request = BatchAckRequest(BROKER_NAME, [ack.with_offsets(offsets) for ack, offsets in acks.values()])
        return (await self.ask(RequestCode.BATCH_ACK_MESSAGE, {}, request.to_json())).code

    async def send(self, body: bytes, *, topic: str | None = None, queue_id: int = 0, **properties: str) -> None:
        text = "\x02".join(f"{name}\x01{value}" for name, value in properties.items())
        fields = {
            "producerGroup": "p", "topic": topic or self.topic, "defaultTopic": "TBW102", "defaultTopicQueueNums": 2,
            "queueId": queue_id, "sysFlag": 0, "bornTimestamp": 1, "flag": 0, "properties": text, "reconsumeTimes": 0,
        }  # fmt: skip
        answer = await self.ask(RequestCode.SEND_MESSAGE, fields, body)
        assert answer.code == 0, answer


@contextlib.asynccontextmanager
async def popping(address: str, **fields: str) -> AsyncIterator[Popper]:
    client = RemotingClient()
    try:
        yield Popper(client, address, **fields)
    finally:
        await client.close()
