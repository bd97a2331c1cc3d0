"""The body of REGISTER_BROKER (103) in its three shapes.

JSON is the usual one (RegisterBrokerBody). With `compressedRegister` a broker sends one zlib stream of length-prefixed
parts: dataVersion JSON, number of topics, a line of text a topic, filter servers as a JSON array; the line has no room
for `order` and `topicSysFlag`. Brokers older than V3_0_11 send the topic table alone.
"""

from __future__ import annotations

import struct
import zlib

from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper

VERSION_WITH_FILTER_SERVERS = 37  # MQVersion ordinal of V3_0_11
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
    parts = [_sized(wrapper.data_version.to_json()), _INT.pack(len(wrapper.topic_config_table))]
    parts += [_sized(_topic_line(topic).encode()) for topic in wrapper.topic_config_table.values()]
    parts.append(_sized(fastjson.dumps(registration.filter_server_list)))
    return zlib.compress(b"".join(parts), 9)


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
