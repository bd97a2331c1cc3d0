"""The requests of a plan are those of clients, and the places that are patched are what they are said to be."""

from __future__ import annotations

import re
from typing import Any

import pytest

from appliance.bench.generator.drive import plan_of
from appliance.bench.load_spec import LoadSpec
from gantrymq.errors import ConfigError
from gantrymq.message.properties import decode_properties
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import SIGNATURE
from tests.gantrymq.remoting.signatures import calculate_signature


def read(**given: Any) -> tuple[dict[str, str], list[str], list[bytes]]:
    """The named values of a plan, its numbers, its frames."""
    plan = plan_of(LoadSpec(address="127.0.0.1:10911", topic="T", **given))
    text, counts, rest = re.split(rb"^(frames \d+ \d+)\n", plan, maxsplit=1, flags=re.MULTILINE)
    count, size = map(int, counts.split()[1:])
    assert len(rest) == count * size
    lines = text.decode().splitlines()
    values = dict(line.split(" ", 1) for line in lines if not line.startswith("number "))
    numbers = [line.removeprefix("number ") for line in lines if line.startswith("number ")]
    return values, numbers, [rest[at : at + size] for at in range(0, len(rest), size)]


def patched(frame: bytes, at: int, digits: bytes) -> bytes:
    return frame[:at] + digits + frame[at + len(digits) :]


@pytest.mark.parametrize("binary_headers", [False, True])
def test_a_send_has_its_opaque_and_its_key_where_the_plan_says(binary_headers: bool) -> None:
    values, (number,), frames = read(kind="send", binary_headers=binary_headers, queue_count=4)
    assert len(frames) == 4
    at, width, add, divisor, modulus = map(int, number.split())
    assert (width, add, divisor, modulus) == (10, 0, 1, 10**10)
    opaque = (1_234_567_891).to_bytes(4, "big") if binary_headers else b"1234567891"
    frame = patched(patched(frames[2], int(values["opaque_at"]), opaque), at, b"0000000042")
    command = RemotingCommand.decode(frame[4:])
    assert (command.code, command.opaque, command.flag) == (RequestCode.SEND_MESSAGE_V2, 1_234_567_891, 0)
    assert command.serialize_type == int(binary_headers) == int(values["binary_header"])
    assert command.ext_fields["e"] == "2" and len(command.body) == 1024
    assert decode_properties(command.ext_fields["i"])["UNIQ_KEY"].endswith("0000000042")


def test_each_message_of_a_batch_has_a_number_of_its_own() -> None:
    values, numbers, frames = read(kind="batch", batch=3, body_bytes=10)
    assert values["kind"] == "send" and values["messages_per_frame"] == "3"
    assert [number.split()[2] for number in numbers] == ["0", "1", "2"]
    for number in numbers:
        at = int(number.split()[0])
        assert frames[0][at : at + 10] == b"#" * 10


@pytest.mark.parametrize("binary_headers", [False, True])
def test_one_byte_makes_a_one_way_request_one_that_is_answered(binary_headers: bool) -> None:
    values, _, frames = read(kind="send", one_way=True, binary_headers=binary_headers)
    assert RemotingCommand.decode(frames[0][4:]).is_oneway
    answered = patched(frames[0], int(values["flag_at"]), bytes([int(values["flag_answered"])]))
    assert RemotingCommand.decode(answered[4:]).flag == 0


def test_signed_requests_are_signed_with_the_keys_they_keep() -> None:
    _, numbers, frames = read(kind="send", access_key="someKey", secret_key="someSecret")
    assert numbers == []
    commands = [RemotingCommand.decode(frame[4:]) for frame in frames]
    keys = {decode_properties(command.ext_fields["i"])["UNIQ_KEY"] for command in commands}
    assert len(keys) == len(frames) > 100
    for command in commands[:3]:
        wanted = calculate_signature(command.ext_fields, command.body, "someSecret")
        assert command.ext_fields[SIGNATURE] == wanted


def test_many_topics_are_numbered() -> None:
    _, numbers, (frame,) = read(kind="send", topic_count=100, queue_count=8)
    _, topic, queue = numbers
    at, *rest = map(int, topic.split())
    assert rest == [5, 0, 1, 100]
    frame = patched(frame, at, b"00042")
    at, *rest = map(int, queue.split())
    assert rest == [1, 0, 100, 8]
    command = RemotingCommand.decode(patched(frame, at, b"7")[4:])
    assert command.ext_fields["b"] == "T00042" and command.ext_fields["e"] == "7"


@pytest.mark.parametrize("binary_headers", [False, True])
def test_a_pull_has_its_queue_offset_where_the_plan_says(binary_headers: bool) -> None:
    values, numbers, frames = read(kind="pull", binary_headers=binary_headers)
    assert numbers == [] and len(frames) == 8
    command = RemotingCommand.decode(patched(frames[3], int(values["offset_at"]), b"0000000064")[4:])
    assert command.code == RequestCode.PULL_MESSAGE
    assert int(command.ext_fields["queueOffset"]) == 64 and command.ext_fields["queueId"] == "3"


@pytest.mark.parametrize(
    "given", [{"kind": "latency"}, {"kind": "pull", "one_way": True}, {"kind": "send", "queue_count": 11}]
)
def test_what_it_cannot_do_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read(**given)
