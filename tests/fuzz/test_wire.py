"""Frames, headers, bodies: what anybody who reaches the port may send."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from appliance.remoting.header_fields import FieldError
from appliance.remoting.pull_request import PullFields, PullRequest
from appliance.remoting.request_decoder import decode_request, decode_request_with_fields
from appliance.remoting.send_request import SendFields, SendRequest
from gantrymq.errors import BodyError, FrameError, RecordError
from gantrymq.message.batch import FIXED_BYTES, encode_batch
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import Message, MessageQueue
from gantrymq.remoting import admin_bodies, bodies, fastjson
from gantrymq.remoting.admin_bodies import (
    Body,
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from tests.appliance.code_examples import BROKER, NAMESRV
from tests.fuzz.fuzzing import Fuzz, documents, near, texts, with_changed_members
from tests.gantrymq.message.batches import iter_batch
from tests.gantrymq.remoting.golden import captured
from tests.gantrymq.remoting.registrations import compress_registration, read_registration

FRAMES = [bytes.fromhex(record["hex"]) for name in ("java_json", "java_rocketmq", "go") for record in captured(name)]
FRAMES = sorted({frame for frame in FRAMES if len(frame) < 2000}, key=lambda frame: (len(frame), frame))[::11]
BODIES = [row.body for row in BROKER + NAMESRV if row.body_reader == "json"]
KINDS = [
    kind
    for kind in (vars(bodies) | vars(admin_bodies)).values()
    if isinstance(kind, type) and issubclass(kind, Body) and kind is not Body
]
QUEUE = MessageQueue("T", "b", 0)
DIALECT = [
    fastjson.dumps({"offsetTable": {QUEUE: 1}}),
    b'{offsetTable:{"T@g":{0:1,1:2}},a:[1,{2:"x"}],b:null}',
    b'{"table":{{"brokerName":"b","queueId":0,"topic":"T"}:{"x":1}}}',
]


@st.composite
def pieces(draw: Any) -> list[bytes]:
    """A stream of a few frames, damaged perhaps, in pieces of any size."""
    stream = b"".join(draw(st.lists(near(FRAMES), max_size=4)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def commands(chunks: list[bytes]) -> list[RemotingCommand | str]:
    protocol = RemotingProtocol(frame_bytes_max=1 << 20)
    found: list[RemotingCommand | str] = []
    try:
        for chunk in chunks:
            protocol.receive_data(chunk)
            while (command := protocol.next_command()) is not None:
                found.append(command)
            assert 0 <= protocol.pending_bytes <= sum(map(len, chunks))
    except FrameError:
        found.append("lost")
    return found


def test_streams(fuzz: Fuzz) -> None:
    def target(chunks: list[bytes]) -> None:
        found = commands(chunks)
        assert repr(found) == repr(commands([b"".join(chunks)])), "it must not matter how it arrives"

    fuzz(pieces(), target)


def test_headers(fuzz: Fuzz) -> None:
    def target(data: bytes) -> None:
        try:
            command = RemotingCommand.decode(data)
        except FrameError:
            return
        assert all(isinstance(key, str) and isinstance(value, str) for key, value in command.ext_fields.items())
        assert isinstance(command.code | command.opaque | command.flag | command.version, int)
        remark = command.remark if isinstance(command.remark, str) else None
        command.reply(29, remark, dict(command.ext_fields)).encode()

    frames = [frame[4:] for frame in FRAMES]
    heads = [len(frame).to_bytes(4) for frame in (b"", b"x")]
    fuzz(
        near(frames)
        | st.builds(lambda a, b, c: a + b + c, st.sampled_from(heads), st.binary(max_size=60), near(frames)),
        target,
    )


def header_of(code: int) -> dict[str, Any]:
    example = next(row for row in BROKER if row.code == code)
    fields = {name: item.value for name, item in example.fields.items()}
    about = {"flag": 0, "language": "JAVA", "opaque": 7, "serializeTypeCurrentRPC": "JSON", "version": 401}
    return {"code": code, "extFields": fields, **about}


@pytest.mark.parametrize(("code", "fields_of"), [(310, SendFields.of), (11, PullFields.of)], ids=["send", "pull"])
def test_all_ways_to_read_a_hot_request_agree(fuzz: Fuzz, code: int, fields_of: Callable[[Any], Any]) -> None:
    def target(header: Any) -> None:
        if not isinstance(header, dict):
            return
        text = json.dumps({"code": code} | header, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        data = (JSON << 24 | len(text)).to_bytes(4) + text + b"body"
        decoders = decode_request, decode_request_with_fields, RemotingCommand.decode_at
        outcomes = [outcome(decode, data, code, fields_of) for decode in decoders]
        assert outcomes[0] == outcomes[1] == outcomes[2]

    fuzz(with_changed_members([header_of(code)]), target)


def outcome(decode: Any, data: bytes, code: int, fields_of: Callable[[Any], Any]) -> Any:
    """(opaque, flag, fields) of a request, or why there is none."""
    try:
        request = decode(data, 0, len(data))
    except FrameError:
        return "no frame"
    if request.code != code:
        return "another code"
    try:
        is_typed = isinstance(request, SendRequest | PullRequest)
        fields = request.fields if is_typed else fields_of(request.ext_fields)
    except FieldError as exc:
        return "refused" if "header field" in str(exc) else str(exc)
    assert request.body == b"body", "whatever the header says"
    return request.opaque, request.flag, msgspec.to_builtins(fields)


def test_binary_headers_say_what_was_written(fuzz: Fuzz) -> None:
    def target(value: tuple[dict[str, str], str | None, int, bytes]) -> None:
        fields, remark, opaque, body = value
        command = RemotingCommand(310, fields, body, remark, opaque, 0, "JAVA", 401, ROCKETMQ)
        try:
            frame = command.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no decoder ever returns
            return
        read = RemotingCommand.decode(frame[4:])
        assert read.ext_fields == {key: text for key, text in fields.items() if text}
        assert (read.remark or "", read.opaque, read.body) == (remark or "", opaque, body)

    fields = st.dictionaries(texts, texts, max_size=5)
    opaques = st.integers(-(1 << 31), (1 << 31) - 1)
    fuzz(st.tuples(fields, st.none() | texts, opaques, st.binary(max_size=40)), target)


def test_bodies(fuzz: Fuzz) -> None:
    shapes = [fastjson.loads(body) for body in BODIES] + [
        json.loads(kind().to_json()) for kind in KINDS if kind().to_dict()
    ]

    def target(value: tuple[Any, type[Body]]) -> None:
        document, kind = value
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        try:
            body = kind.from_json(data)
        except BodyError:
            return
        again = body.to_json()
        assert kind.from_json(again).to_json() == again

    inputs = near(BODIES + DIALECT) | with_changed_members(shapes) | documents
    fuzz(st.tuples(inputs, st.sampled_from(KINDS)), target)


def test_fastjsons_dialect(fuzz: Fuzz) -> None:
    def target(data: bytes) -> None:
        try:
            document = fastjson.loads(data)
        except BodyError:
            return
        fastjson.loads(fastjson.dumps(document))

    fuzz(near(DIALECT + BODIES), target)


def test_registrations(fuzz: Fuzz) -> None:
    table = {name: TopicConfig(name, 4, 4) for name in ("A", "B")}
    whole = RegisterBrokerBody(TopicConfigSerializeWrapper(table, DataVersion(1, 2)), ["10.0.0.1:1"])

    def target(value: tuple[bytes, int, bool]) -> None:
        body, version, compressed = value
        try:
            read_registration(body, version=version, compressed=compressed)
        except BodyError:
            return

    bodies_ = near([compress_registration(whole), whole.to_json()])
    fuzz(st.tuples(bodies_, st.sampled_from((0, 36, 401)), st.booleans()), target)


def test_batches_and_message_ids(fuzz: Fuzz) -> None:
    batch = encode_batch([Message("T", b"abc", properties={"KEYS": "v1"}), Message("T", b"")])

    def target(data: bytes) -> None:
        with contextlib.suppress(RecordError):
            assert sum(FIXED_BYTES + len(body) + len(text) for _, body, text in iter_batch(data)) == len(data)
        try:
            decode_offset_message_id(data.decode(errors="replace"))
        except ValueError:
            return

    fuzz(near([batch, b"7F00000100002A9F0000000000000000"]), target)
