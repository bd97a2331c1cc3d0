"""gantrymq/client/connection/pull_reader.py: messages are handed on when their bytes are there."""

from __future__ import annotations

import asyncio
import random
import zlib
from dataclasses import replace

import pytest

from gantrymq.client.connection.pull_reader import PullReader
from gantrymq.client.results import PullResult, PullStatus
from gantrymq.errors import ConnectError, ProtocolError, RecordError, ResponseError
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import Namespace
from gantrymq.message.record import encode_record
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.messages import stored

OFFSETS = {"nextBeginOffset": "8", "minOffset": "0", "maxOffset": "9", "suggestWhichBrokerId": "0"}


class Reading:
    """A reader, and what it has handed on."""

    def __init__(self) -> None:
        self.taken: list[PullResult] = []
        self.reader = PullReader("host:1", MessageQueue("T", "broker", 0), 0, Namespace("ns"), self.taken.append)

    def answer(self, code: int = 0, body: bytes = b"", offsets: dict[str, str] = OFFSETS) -> None:
        self.reader.set_result(RemotingCommand.request(11).reply(code, "a remark", offsets, body))


def record(body: bytes, sys_flag: int = 0, queue_offset: int = 7) -> bytes:
    return encode_record(replace(stored(queue_offset, body, topic="ns%T"), sys_flag=sys_flag))


async def test_messages_are_handed_on_before_the_task_that_pulls_goes_on() -> None:
    reading = Reading()
    pulling = asyncio.create_task(reading.reader.result())
    await asyncio.sleep(0)
    reading.answer(body=record(b"one", queue_offset=6) + record(zlib.compress(b"two"), 0x301))
    (result,) = reading.taken
    assert not pulling.done()
    assert [(message.topic, message.body, message.broker_name) for message in result.messages] == [
        ("T", b"one", "broker"),
        ("T", b"two", "broker"),
    ]
    assert (result.status, result.next_offset) == (PullStatus.FOUND, 8)
    assert await pulling is result
    assert len(reading.taken) == 1


async def test_large_bodies_are_unpacked_before_they_are_handed_on() -> None:
    noise = random.Random(7).randbytes(50_000)
    reading = Reading()
    reading.answer(body=record(zlib.compress(noise), 0x301))
    assert reading.taken == []
    result = await reading.reader.result()
    assert reading.taken == [result]
    assert [message.body for message in result.messages] == [noise]


async def test_an_answer_without_messages_is_handed_on_too() -> None:
    reading = Reading()
    reading.answer(code=19)
    assert [(result.status, result.messages) for result in reading.taken] == [(PullStatus.NO_NEW_MESSAGE, [])]


@pytest.mark.parametrize(
    ("code", "body", "offsets", "failure"),
    [(1, b"", OFFSETS, ResponseError), (0, record(b"torn")[:-1], OFFSETS, RecordError), (19, b"", {}, ProtocolError)],
)
async def test_what_is_wrong_with_an_answer_is_for_the_task_that_pulls(
    code: int, body: bytes, offsets: dict[str, str], failure: type[Exception]
) -> None:
    reading = Reading()
    reading.answer(code, body, offsets)
    with pytest.raises(failure):
        await reading.reader.result()
    assert reading.taken == []


async def test_a_lost_connection_is_for_the_task_that_pulls() -> None:
    reading = Reading()
    reading.reader.set_exception(ConnectError("host:1", "gone"))
    assert reading.reader.done() and isinstance(reading.reader.exception(), ConnectError)
    with pytest.raises(ConnectError, match="gone"):
        await reading.reader.result()
