"""The body of REGISTER_BROKER (103) in its three shapes.

JSON is the usual one (RegisterBrokerBody). With `compressedRegister` a broker sends one zlib stream of length-prefixed
parts: dataVersion JSON, number of topics, a line of text a topic, filter servers as a JSON array; the line has no room
for `order` and `topicSysFlag`. Brokers older than V3_0_11 send the topic table alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper

VERSION_WITH_FILTER_SERVERS = 37  # MQVersion ordinal of V3_0_11
TOPICS_A_PART = 128  # of what is written in parts: about a millisecond when compressed
_INFLATED_BYTES_MAX = 64 * 1024 * 1024  # a hundred thousand topics fit in a tenth of it; a zip bomb does not

_INT = struct.Struct(">i")


def body_crc32(body: bytes) -> int:
    """The check sum of the body as sent (after compression); 0 in the header means unchecked."""
    return zlib.crc32(body) & 0x7FFFFFFF


def read_registration(body: bytes, *, version: int, compressed: bool) -> RegisterBrokerBody:
    """Read a body of 103 from a broker of that MQVersion. Raises BodyError."""
    if not body:
        return RegisterBrokerBody()
    if version < VERSION_WITH_FILTER_SERVERS:
        return RegisterBrokerBody(TopicConfigSerializeWrapper.from_json(body))
    return _inflate(body) if compressed else RegisterBrokerBody.from_json(body)


def compress_registration(registration: RegisterBrokerBody) -> bytes:
    """Write the compressed shape."""
    wrapper = registration.topic_config_serialize_wrapper
    topics = list(wrapper.topic_config_table.values())
    return b"".join(compressed_parts(topics, wrapper.data_version.to_json(), registration.filter_server_list))


def plain_parts(entries: Sequence[str], data_version: bytes) -> Iterator[bytes]:
    """Write the usual shape, without filter servers, TOPICS_A_PART at a time. entries: topics as `"name":{...}`."""
    yield b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":%b,"topicConfigTable":{' % data_version
    for start in range(0, len(entries), TOPICS_A_PART):
        yield (("," if start else "") + ",".join(entries[start : start + TOPICS_A_PART])).encode()
    yield b"}}}"


def compressed_parts(
    topics: Sequence[TopicConfig], data_version: bytes, filter_servers: Sequence[str] = ()
) -> Iterator[bytes]:
    """Write the compressed shape, TOPICS_A_PART at a time."""
    compressor = zlib.compressobj(9)
    yield compressor.compress(_sized(data_version) + _INT.pack(len(topics)))
    for start in range(0, len(topics), TOPICS_A_PART):
        lines = [_sized(_topic_line(topic).encode()) for topic in topics[start : start + TOPICS_A_PART]]
        yield compressor.compress(b"".join(lines))
    yield compressor.compress(_sized(fastjson.dumps(list(filter_servers)))) + compressor.flush()


def _sized(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _topic_line(topic: TopicConfig) -> str:
    sizes = f"{topic.read_queue_nums} {topic.write_queue_nums} {topic.perm}"
    return f"{topic.topic_name} {sizes} {topic.topic_filter_type}"


def _inflate(body: bytes) -> RegisterBrokerBody:
    decompressor = zlib.decompressobj()
    try:
        data = decompressor.decompress(body, _INFLATED_BYTES_MAX)
        if decompressor.unconsumed_tail:
            raise BodyError(f"compressed registration is larger than {_INFLATED_BYTES_MAX} bytes")
        return _read_parts(data)
    except (zlib.error, struct.error, ValueError, TypeError) as exc:
        raise BodyError(f"compressed registration: {exc}") from exc


def _read_parts(data: bytes) -> RegisterBrokerBody:
    position = 0

    def number() -> int:
        nonlocal position
        (value,) = _INT.unpack_from(data, position)
        position += _INT.size
        return int(value)

    def part() -> bytes:
        nonlocal position
        size = number()
        if size < 0 or position + size > len(data):
            raise ValueError(f"a part of {size} bytes runs past the end")
        position += size
        return data[position - size : position]

    data_version = DataVersion.from_json(part())
    topics = [_read_topic_line(part().decode()) for _ in range(number())]
    filter_servers = fastjson.loads(part())
    table = {topic.topic_name: topic for topic in topics}
    return RegisterBrokerBody(TopicConfigSerializeWrapper(table, data_version), list(filter_servers))


def _read_topic_line(line: str) -> TopicConfig:
    name, read_queue_nums, write_queue_nums, perm, filter_type = line.split(" ")
    return TopicConfig(name, int(read_queue_nums), int(write_queue_nums), int(perm), filter_type)
