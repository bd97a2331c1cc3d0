"""Messages packed for the wire, and answers to sends."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from gantrymq.client.connection import send_codec
from gantrymq.client.connection.compression import Compression
from gantrymq.client.connection.received_messages import read_messages
from gantrymq.client.results import SendStatus
from gantrymq.errors import MessageRejected, ProtocolError, ResponseError
from gantrymq.message.model import Message, MessageQueue
from gantrymq.message.properties import decode_properties
from gantrymq.message.record import encode_record
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.messages import stored
from tests.gantrymq.message.batches import iter_batch

T = TypeVar("T")


def test_a_request_has_the_fields_of_javas_clients() -> None:
    outgoing = send_codec.pack(
        Message("T", b"hello", tags="TagA", keys=["k1", "k2"], properties={"p": "v"}, flag=3, delay_level=2)
    )
    request = send_codec.send_request(outgoing, "PG", 5)
    fields = dict(request.ext_fields)
    assert int(fields.pop("g")) > 1_600_000_000_000
    properties = decode_properties(fields.pop("i"))
    assert len(properties.pop("UNIQ_KEY")) in (32, 56)
    assert properties == {"p": "v", "KEYS": "k1 k2", "TAGS": "TagA", "DELAY": "2"}
    assert fields == {
        "a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "5", "f": "0", "h": "3", "j": "0", "k": "false", "m": "false"
    }  # fmt: skip
    assert (request.code, request.body) == (310, b"hello")


def test_bodies_from_4096_bytes_on_are_compressed_and_say_so() -> None:
    small, large = send_codec.pack(Message("T", b"x" * 4095)), send_codec.pack(Message("T", b"x" * 4096))
    assert (small.body, small.sys_flag) == (b"x" * 4095, 0)
    assert (zlib.decompress(large.body), large.sys_flag) == (b"x" * 4096, 0x301)


def test_a_unique_id_of_the_callers_own_is_kept() -> None:
    outgoing = send_codec.pack(Message("T", b"x", properties={"UNIQ_KEY": "MINE"}))
    assert outgoing.msg_id == "MINE"
    assert outgoing.properties.count("UNIQ_KEY") == 1


def test_sending_leaves_the_message_as_it_was() -> None:
    message = Message("T", b"x" * 5000)
    send_codec.pack(message)
    send_codec.pack_batch([message])
    assert message == Message("T", b"x" * 5000)


@pytest.mark.parametrize(
    "message",
    [
        Message("T", b""),
        Message("T", b"x" * (send_codec.MESSAGE_BYTES_MAX + 1)),
        Message("T", b"x", properties={"p": "v" * 32768}),
        Message("T", b"x", properties={"p": "ü" * 16384}),
    ],
    ids=["empty", "too large", "long properties", "long in bytes"],
)
def test_what_no_broker_takes_is_rejected_before_sending(message: Message) -> None:
    with pytest.raises(MessageRejected):
        send_codec.pack(message)


def test_a_batch_holds_each_message_with_an_id_of_its_own() -> None:
    outgoing = send_codec.pack_batch([Message("T", b"one", tags="A"), Message("T", b"two", keys="k", flag=9)])
    items = [(flag, body, decode_properties(properties)) for flag, body, properties in iter_batch(outgoing.body)]
    assert [(flag, body) for flag, body, _ in items] == [(0, b"one"), (9, b"two")]
    assert ",".join(properties["UNIQ_KEY"] for *_, properties in items) == outgoing.msg_id
    request = send_codec.send_request(outgoing, "PG", 0)
    assert (request.code, request.ext_fields["m"], request.ext_fields["i"]) == (320, "true", "WAIT\x01true")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message("T", b"x"), Message("U", b"x")],
        [Message("T", b"x", delay_level=1)],
        [Message("T", b"x", properties={"DELAY": "1"})],
        [Message("%RETRY%g", b"x")],
        [Message("T", b"x"), Message("T", b"x", properties={"WAIT": "false"})],
        [Message("T", b"x" * (send_codec.MESSAGE_BYTES_MAX // 2))] * 2,
        [Message("T", b"x"), Message("T", b"")],
    ],
    ids=["none", "two topics", "delayed", "delayed by property", "retry topic", "two WAITs", "too large", "empty body"],
)
def test_messages_that_cannot_travel_together_are_rejected(messages: list[Message]) -> None:
    with pytest.raises(MessageRejected):
        send_codec.pack_batch(messages)


def answer(code: int, **fields: str) -> RemotingCommand:
    return RemotingCommand.request(310).reply(code, "why", fields)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, SendStatus.SEND_OK),
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
def test_stored_messages_are_results_also_when_a_promise_was_not_kept(code: int, status: SendStatus) -> None:
    outgoing = send_codec.pack(Message("T", b"x"))
    result = send_codec.send_result(
        answer(code, msgId="ID", queueId="3", queueOffset="17"), outgoing, MessageQueue("T", "b", 0), "host:1"
    )
    assert (result.status, result.msg_id, result.offset_msg_id) == (status, outgoing.msg_id, "ID")
    assert (result.queue, result.queue_offset) == (MessageQueue("T", "b", 3), 17)


@pytest.mark.parametrize("code", [1, 2, 3, 13, 14, 16, 17])
def test_other_answers_are_errors_with_the_brokers_words(code: int) -> None:
    with pytest.raises(ResponseError) as caught:
        send_codec.send_result(answer(code), send_codec.pack(Message("T", b"x")), MessageQueue("T", "b", 0), "host:1")
    assert (caught.value.code, caught.value.remark, caught.value.address) == (code, "why", "host:1")


def test_a_success_that_does_not_say_where_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        send_codec.send_result(answer(0), send_codec.pack(Message("T", b"x")), MessageQueue("T", "b", 0), "host:1")


def test_a_body_that_would_grow_travels_as_it_is() -> None:
    noise = random.Random(7).randbytes(5000)
    assert (send_codec.pack(Message("T", noise)).body, send_codec.pack(Message("T", noise)).sys_flag) == (noise, 0)
    text = b"the same again " * 1000
    sizes = [len(send_codec.pack(Message("T", text), Compression(level=level)).body) for level in (1, 9)]
    assert sizes[1] < sizes[0] < len(text)


async def turns_during(work: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """What the work returns, and how often the loop came to something else meanwhile."""
    turns = 0
    task = asyncio.create_task(work)
    while not task.done():
        await asyncio.sleep(0)
        turns += not task.done()
    return await task, turns


async def test_the_loop_goes_on_while_a_large_body_is_packed_and_unpacked() -> None:
    body = b"the same again " * 100_000
    outgoing, turns = await turns_during(send_codec.pack_aside(Message("T", body)))
    assert (zlib.decompress(outgoing.body), outgoing.sys_flag) == (body, 0x301)
    assert turns > 0
    noise = random.Random(7).randbytes(50_000) * 2
    packed = replace(stored(0, zlib.compress(noise)), sys_flag=0x301)
    (message,), turns = await turns_during(read_messages(encode_record(packed), "broker"))
    assert (message.body, message.sys_flag, message.broker_name) == (noise, 0, "broker")
    assert turns > 0


async def test_small_bodies_are_not_handed_to_a_thread() -> None:
    _, turns = await turns_during(send_codec.pack_aside(Message("T", b"the same again " * 1000)))
    assert turns == 0
