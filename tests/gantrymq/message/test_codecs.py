"""Properties of the codecs, for any input: what is written reads back, what is damaged is refused, and that is all.
The models are as plain as can be: a dictionary for properties, Java's loop for the hash, a list for batches. The
body of a batch send.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gantrymq.errors import MessageRejected, RecordError
from gantrymq.message import batch, ids, properties, record, sysflag
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message, MessageExt
from tests.bounded import bounded
from tests.gantrymq.message.batches import iter_batch

i32 = st.integers(-(1 << 31), (1 << 31) - 1)
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
separators = {"\x01", "\x02"}
words = st.text(st.characters(exclude_characters=separators, exclude_categories=("Cs",)), min_size=1, max_size=20)
tables = st.dictionaries(words, words, max_size=6)
hosts = st.tuples(
    st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).filter(
        lambda ip: ip.version == 4 or ip.ipv4_mapped is None  # stored as IPv4, as Java does
    ),
    st.integers(0, 65535),
).map(lambda host: (str(host[0]), host[1]))
bodies = st.binary(max_size=300)
property_texts = st.lists(
    st.sampled_from(["A", "B", "AB", "\x01", "\x02", "x", "é", "\x02A\x01", "\x02B\x01"]), max_size=14
).map("".join)


@st.composite
def messages(draw: st.DrawFn) -> MessageExt:
    body = draw(bodies)
    return MessageExt(
        topic=draw(words), body=body, flag=draw(i32), properties=draw(tables), queue_id=draw(i32),
        queue_offset=draw(i64), physical_offset=draw(i64), store_size=0,
        sys_flag=draw(i32) & ~(sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6), born_timestamp=draw(i64),
        born_host=draw(hosts), store_timestamp=draw(i64), store_host=draw(hosts), reconsume_times=draw(i32),
        prepared_transaction_offset=draw(i64), body_crc=record.body_crc(body),
    )  # fmt: skip


def same_message(message: MessageExt, decoded: MessageExt, size: int) -> bool:
    """What encoding adds: the size, and the two flags that say how wide the hosts are."""
    message.store_size = size
    message.sys_flag |= sysflag.BORN_HOST_V6 if ":" in message.born_host[0] else 0
    message.sys_flag |= sysflag.STORE_HOST_V6 if ":" in message.store_host[0] else 0
    return decoded == message


@given(messages(), st.binary(max_size=20), st.binary(max_size=20))
@bounded(300)
def test_a_record_reads_back_from_anywhere_in_a_buffer(message: MessageExt, before: bytes, behind: bytes) -> None:
    assume(len(message.topic.encode()) <= 127)
    raw = record.encode_record(message)
    decoded = record.decode_record(before + raw + behind, len(before))
    assert same_message(message, decoded, len(raw))
    assert record.encode_record(decoded) == raw


@given(messages(), st.data())
@bounded(300)
def test_a_damaged_record_is_refused_or_differs_beyond_the_checksums(message: MessageExt, data: st.DataObject) -> None:
    """A flipped bit in the body or a length is always seen; elsewhere it may change a field, never the body."""
    assume(len(message.topic.encode()) <= 127)
    raw = bytearray(record.encode_record(message))
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        decoded = record.decode_record(bytes(raw))
    except RecordError:
        return
    assert (decoded.store_size, decoded.body) == (len(raw), message.body)


@given(messages(), st.data())
@bounded(150)
def test_a_torn_record_is_refused(message: MessageExt, data: st.DataObject) -> None:
    assume(len(message.topic.encode()) <= 127)
    raw = record.encode_record(message)
    with pytest.raises(RecordError):
        record.decode_record(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(st.lists(st.tuples(bodies, tables, i32), max_size=8))
@bounded(150)
def test_a_batch_reads_back(parts: list[tuple[bytes, dict[str, str], int]]) -> None:
    raw = batch.encode_batch([Message("T", body, properties=table, flag=flag) for body, table, flag in parts])
    read = [(body, properties.decode_properties(text), flag) for flag, body, text in iter_batch(raw)]
    assert read == parts


@given(tables)
@bounded(200)
def test_properties_read_back(table: dict[str, str]) -> None:
    text = properties.encode_properties(table)
    assert properties.decode_properties(text) == properties.decode_properties(text.encode()) == table


@given(property_texts)
@example("A\x01\x02A\x01x")
@example("A\x01x\x02A\x01")
@bounded(500)
def test_finding_one_property_agrees_with_reading_all(text: str) -> None:
    table = properties.decode_properties(text)
    for name in ("A", "B", "AB", "x", "é"):
        found = properties.find_property(text.encode(), name.encode())
        assert (found.decode() if found is not None else None) == table.get(name)


@given(tables, st.dictionaries(words, st.none() | words, max_size=4))
@bounded(200)
def test_replacing_properties_is_updating_a_dictionary(table: dict[str, str], changes: dict[str, str | None]) -> None:
    encoded = {name.encode(): value.encode() if value is not None else None for name, value in changes.items()}
    text = properties.replace_properties(properties.encode_properties(table).encode(), encoded)
    expected: dict[str, Any] = {**table, **changes}
    assert properties.decode_properties(text) == {name: value for name, value in expected.items() if value is not None}


@given(st.text(st.characters(), max_size=40))
@bounded(300)
def test_the_hash_is_javas_loop_over_utf16_units(text: str) -> None:
    code = 0
    raw = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(raw), 2):
        code = (31 * code + int.from_bytes(raw[index : index + 2], "big")) % (1 << 32)
    assert properties.string_hash_code(text) == (code if code < 1 << 31 else code - (1 << 32))


@pytest.mark.parametrize("length", [511, 512, 513, 1024, 100_000])
def test_the_hash_of_a_long_text_is_the_same(length: int) -> None:
    text = ("RocketMQ" * length)[:length]
    code = 0
    for character in text:
        code = (31 * code + ord(character)) % (1 << 32)
    assert properties.hash_of_ascii(text.encode()) == code


@given(hosts, st.integers(0, (1 << 63) - 1))
@bounded(150)
def test_an_offset_message_id_reads_back(host: tuple[str, int], physical_offset: int) -> None:
    packed = ids.encode_host(*host)
    assert ids.decode_host(packed) == host
    assert ids.decode_offset_message_id(ids.offset_message_id(packed, physical_offset)) == (*host, physical_offset)


@pytest.mark.parametrize("cut", [1, 19, 21, -1])
def test_a_batch_that_ends_too_early_is_an_error(cut: int) -> None:
    body = encode_batch([Message("T", b"one", tags="A")])
    with pytest.raises(RecordError):
        list(iter_batch(body[:cut]))


def test_properties_longer_than_their_length_field_are_refused() -> None:
    with pytest.raises(MessageRejected):
        encode_batch([Message("T", b"", properties={"A": "x" * 32767})])
