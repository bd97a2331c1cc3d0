"""The three shapes of a registration body."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path

import pytest

from gantrymq.errors import BodyError
from gantrymq.remoting.admin_bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.registration import TOPICS_A_PART, body_crc32, plain_parts, reading_registration
from tests.gantrymq.remoting.registrations import compress_registration, read_registration

FRAMES = Path(__file__).parents[2] / "golden" / "frames" / "namesrv.jsonl.gz"


def captured(*, compressed: bool) -> list[RemotingCommand]:
    exchanges = map(json.loads, gzip.decompress(FRAMES.read_bytes()).splitlines())
    requests = [RemotingCommand.decode(bytes.fromhex(exchange["request"])[4:]) for exchange in exchanges]
    wanted = str(compressed).lower()
    return [
        request
        for request in requests
        if request.code == RequestCode.REGISTER_BROKER and request.ext_fields["compressed"] == wanted
    ]


def test_compressed_bodies_of_a_real_broker_are_read_and_written_to_the_byte() -> None:
    requests = captured(compressed=True)
    assert requests
    for request in requests:
        registration = read_registration(request.body, version=request.version, compressed=True)
        assert registration.topic_config_serialize_wrapper.topic_config_table["TBW102"].write_queue_nums == 8
        assert zlib.decompress(compress_registration(registration)) == zlib.decompress(request.body)
        assert body_crc32(request.body) == int(request.ext_fields["bodyCrc32"])


def test_plain_bodies_of_a_real_broker_mean_the_same_after_a_round_trip() -> None:
    for request in captured(compressed=False)[:5]:
        registration = read_registration(request.body, version=request.version, compressed=False)
        assert json.loads(registration.to_json()) == json.loads(request.body)


def test_a_broker_older_than_3_0_11_sends_the_topic_table_alone() -> None:
    wrapper = TopicConfigSerializeWrapper({"T": TopicConfig("T", 2, 2)}, DataVersion(1, 1))
    registration = read_registration(wrapper.to_json(), version=36, compressed=False)
    assert registration == RegisterBrokerBody(wrapper)


def test_no_body_is_no_topics() -> None:
    assert read_registration(b"", version=401, compressed=True) == RegisterBrokerBody()


WHOLE = zlib.decompress(compress_registration(RegisterBrokerBody(TopicConfigSerializeWrapper({"T": TopicConfig("T")}))))


@pytest.mark.parametrize(
    "body",
    [
        b"not zlib",
        *(zlib.compress(WHOLE[:end]) for end in range(0, len(WHOLE), 7)),
        zlib.compress(WHOLE.replace(b"T 16 16", b"T16 16 ")),
        zlib.compress(struct.pack(">i", -5) + WHOLE[4:]),
        zlib.compress(b"\0" * (70 << 20), 1),
    ],
    ids=lambda body: f"{len(body)} B",
)
def test_damage_is_a_body_error(body: bytes) -> None:
    with pytest.raises(BodyError):
        read_registration(body, version=401, compressed=True)


@pytest.mark.parametrize("compressed", [False, True])
def test_thousands_of_topics_are_read_in_parts(compressed: bool) -> None:
    names = [f"T{number}" for number in range(10 * TOPICS_A_PART + 5)]
    table = {name: TopicConfig(name, 3, 4, 6) for name in names}
    whole = RegisterBrokerBody(TopicConfigSerializeWrapper(table, DataVersion(7, 8)), ["10.0.0.9:1"])
    body = compress_registration(whole) if compressed else whole.to_json()
    assert len(list(reading_registration(body, version=401, compressed=compressed))) == 10
    assert read_registration(body, version=401, compressed=compressed) == whole


def test_the_usual_shape_is_written_as_a_whole_one() -> None:
    table = {f"T{number}": TopicConfig(f"T{number}") for number in range(2 * TOPICS_A_PART + 1)}
    whole = RegisterBrokerBody(TopicConfigSerializeWrapper(table, DataVersion(7, 8)))
    entries = [f'"{name}":{topic.to_json().decode()}' for name, topic in table.items()]
    assert b"".join(plain_parts(entries, DataVersion(7, 8).to_json())) == whole.to_json()
    assert b"".join(plain_parts([], DataVersion().to_json())) == RegisterBrokerBody().to_json()
