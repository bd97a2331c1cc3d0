"""The body of REGISTER_BROKER (103) in its three shapes.

JSON is the usual one (RegisterBrokerBody). With `compressedRegister` a broker sends one zlib stream of length-prefixed
parts: dataVersion JSON, number of topics, a line of text a topic, filter servers as a JSON array; the line has no room
for `order` and `topicSysFlag`. Brokers older than V3_0_11 send the topic table alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import DataVersion, RegisterBrokerBody, TopicConfig, TopicConfigSerializeWrapper
from gantrymq.remoting.json_body import key_text

VERSION_WITH_FILTER_SERVERS = 37  # MQVersion ordinal of V3_0_11
TOPICS_A_PART = 128  # of what is read or written in parts: half a millisecond
_INFLATED_BYTES_MAX = 64 * 1024 * 1024  # a hundred thousand topics fit in a tenth of it; a zip bomb does not

_INT = struct.Struct(">i")

_Result = TypeVar("_Result")


class LaterEpoch(NamedTuple):
    """What a name server of GantryMQ says when it refuses a master: another one serves, in a later epoch."""

    epoch: int
    master: str
    id: str = ""

    def to_fields(self) -> dict[str, str]:
        return {"laterEpoch": str(self.epoch), "laterEpochId": self.id, "masterAddr": self.master}

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> LaterEpoch | None:
        """None when the refusal has another reason."""
        epoch = fields.get("laterEpoch", "")
        known = epoch.isdecimal()
        return cls(int(epoch), fields.get("masterAddr", ""), fields.get("laterEpochId", "")) if known else None


def body_crc32(body: bytes) -> int:
    """The check sum of the body as sent (after compression); 0 in the header means unchecked."""
    return zlib.crc32(body) & 0x7FFFFFFF


def reading_registration(body: bytes, *, version: int, compressed: bool) -> Generator[None, None, RegisterBrokerBody]:
    """Read a body of 103 from a broker of that MQVersion, TOPICS_A_PART at a time: there may be a hundred thousand.

    Raises BodyError.
    """
    if not body:
        return RegisterBrokerBody()
    if compressed and version >= VERSION_WITH_FILTER_SERVERS:
        return (yield from _inflating(body))
    document = fastjson.loads(body)
    if version < VERSION_WITH_FILTER_SERVERS:
        return RegisterBrokerBody((yield from _reading_table(document)))
    wrapper = document.get("topicConfigSerializeWrapper") if isinstance(document, dict) else None
    if wrapper is None:
        return RegisterBrokerBody.from_dict(document)
    read = yield from _reading_table(wrapper)
    registration = RegisterBrokerBody.from_dict(document | {"topicConfigSerializeWrapper": {}})
    registration.topic_config_serialize_wrapper = read
    return registration


def _reading_table(wrapper: Any) -> Generator[None, None, TopicConfigSerializeWrapper]:
    """What TopicConfigSerializeWrapper.from_dict does. Raises BodyError."""
    table = wrapper.get("topicConfigTable") if isinstance(wrapper, dict) else None
    if not isinstance(table, dict):
        return TopicConfigSerializeWrapper.from_dict(wrapper)
    read = TopicConfigSerializeWrapper.from_dict(wrapper | {"topicConfigTable": {}})
    for number, (name, members) in enumerate(table.items(), 1):
        read.topic_config_table[key_text(name)] = TopicConfig.from_dict(members)
        if not number % TOPICS_A_PART:
            yield
    return read


def finished(steps: Generator[None, None, _Result]) -> _Result:
    """Make all steps at once; return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's own result


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


def _inflating(body: bytes) -> Generator[None, None, RegisterBrokerBody]:
    decompressor = zlib.decompressobj()
    try:
        data = decompressor.decompress(body, _INFLATED_BYTES_MAX)
        if decompressor.unconsumed_tail:
            raise BodyError(f"compressed registration is larger than {_INFLATED_BYTES_MAX} bytes")
        return (yield from _reading_parts(data))
    except (zlib.error, struct.error, ValueError, TypeError) as exc:
        raise BodyError(f"compressed registration: {exc}") from exc


def _reading_parts(data: bytes) -> Generator[None, None, RegisterBrokerBody]:
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
    table: dict[str, TopicConfig] = {}
    for count in range(1, number() + 1):
        topic = _read_topic_line(part().decode())
        table[topic.topic_name] = topic
        if not count % TOPICS_A_PART:
            yield
    filter_servers = fastjson.loads(part())
    return RegisterBrokerBody(TopicConfigSerializeWrapper(table, data_version), list(filter_servers))


def _read_topic_line(line: str) -> TopicConfig:
    name, read_queue_nums, write_queue_nums, perm, filter_type = line.split(" ")
    return TopicConfig(name, int(read_queue_nums), int(write_queue_nums), int(perm), filter_type)
