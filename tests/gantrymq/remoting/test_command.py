"""Both header encodings, against frames of official clients and servers."""

from __future__ import annotations

import json

import pytest

from gantrymq.errors import FrameError
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from tests.gantrymq.remoting.golden import captured


def raw_header(frame: bytes) -> dict[str, object]:
    header_bytes = int.from_bytes(frame[4:8]) & 0xFFFFFF
    return dict(json.loads(frame[8 : 8 + header_bytes]))


@pytest.mark.parametrize("capture", ["java_json", "java_rocketmq", "go", "ali_ons", "acl"])
def test_captured_frames_decode_to_what_was_captured(capture: str) -> None:
    for record in captured(capture):
        command = RemotingCommand.decode(bytes.fromhex(record["hex"])[4:])
        assert (command.code, command.flag, command.opaque) == (record["code"], record["flag"], record["opaque"])
        assert command.serialize_type == record["serialize"]


@pytest.mark.parametrize("capture", ["java_json", "java_rocketmq", "go", "acl"])
def test_encoding_a_decoded_frame_gives_the_same_fields_again(capture: str) -> None:
    for record in captured(capture):
        if record["client"] == "ali-ons":
            continue  # sends numbers, which we send back as text
        frame = bytes.fromhex(record["hex"])
        command = RemotingCommand.decode(frame[4:])
        encoded = command.encode()
        if command.serialize_type == ROCKETMQ:
            assert RemotingCommand.decode(encoded[4:]) == command
            assert len(encoded) <= len(frame)  # Java writes some fields of a signed request twice
            continue
        written, captured_header = raw_header(encoded), raw_header(frame)
        for header in (written, captured_header):
            header.pop("serializeTypeCurrentRPC", None)  # Go does not write it
            for name in ("remark", "extFields"):
                if not header.get(name):
                    header.pop(name, None)
        assert written == captured_header
        assert encoded.endswith(command.body)


def test_values_that_are_no_text_are_read_as_java_would_read_them() -> None:
    header = b'{"code":10,"extFields":{"a":0,"b":true,"c":null,"d":"x","e":1.5},"flag":0,"opaque":1}'
    command = RemotingCommand.decode(len(header).to_bytes(4) + header)
    assert command.ext_fields == {"a": "0", "b": "true", "d": "x", "e": "1.5"}


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\0",
        b"\0\0\0\5{}",  # the header is longer than the frame
        b"\2\0\0\2{}",  # no such encoding
        b"\0\0\0\2[]",
        b"\0\0\0\3{]}",
        b"\0\0\0\14" + b'{"code":"x"}',
        b"\1\0\0\3abc",
        b"\1\0\0\x15" + b"\0" * 17 + b"\0\0\0\5",  # ext fields run past the header
    ],
)
def test_a_frame_that_makes_no_sense_is_a_frame_error(frame: bytes) -> None:
    with pytest.raises(FrameError):
        RemotingCommand.decode(frame)


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
def test_an_answer_carries_the_requests_number_and_encoding(serialize_type: int) -> None:
    request = RemotingCommand.request(105, {"topic": "T"}, serialize_type=serialize_type)
    answer = RemotingCommand.decode(request.reply(17, "no such topic", {"k": "ü"}, b"body").encode()[4:])
    assert (answer.opaque, answer.serialize_type, answer.is_response) == (request.opaque, serialize_type, True)
    assert (answer.code, answer.remark, answer.ext_fields, answer.body) == (17, "no such topic", {"k": "ü"}, b"body")


def test_every_request_has_a_number_of_its_own() -> None:
    assert len({RemotingCommand.request(10).opaque for _ in range(100)}) == 100
