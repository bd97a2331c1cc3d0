"""Arrow arrays from the fields of a block of records, a value for each record.

Texts are gathered with one index array (`_flat`) and passed to Arrow as offsets and bytes. Arrow does not check that
they are UTF-8, so each column is validated, and an invalid one is decoded again, slowly, with replacement characters.
"""

from __future__ import annotations

import socket

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gantrymq.contrib.arrow.record_blocks import BORN_HOST_V6, STORE_HOST_V6, Bytes, Ints, RecordBlock

TIME = pa.timestamp("us", "UTC")  # of whole ms
_KEY_END, _PAIR_END = 1, 2  # properties text: key 0x01 value 0x02 key 0x01 value
_BORN_HOST_AT = 48
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999
_HEX = np.frombuffer(b"".join(b"%02X" % value for value in range(256)), dtype=np.uint8).reshape(256, 2)


def int32(values: Ints) -> pa.Array:
    """Numbers that fit into 32 bits."""
    return pa.array(values.astype(np.int32))


def times(values: Ints) -> pa.Array:
    """Times in ms since 1970, which clients may have made up: what no calendar has is its first or last moment."""
    return pa.array(np.clip(values, _FIRST_MS, _LAST_MS) * 1000).view(TIME)


def topics(block: RecordBlock) -> pa.Array:
    """The topics' names."""
    return _texts(block.buffer, block.topic_at, block.topic_bytes)


def born_hosts(block: RecordBlock) -> pa.Array:
    """The producers' addresses, without ports."""
    return _addresses(block.buffer, block.positions + _BORN_HOST_AT, (block.sys_flag & BORN_HOST_V6) != 0)


def store_hosts(block: RecordBlock) -> pa.Array:
    """The brokers' addresses, without ports."""
    return _addresses(block.buffer, block.store_host_at, (block.sys_flag & STORE_HOST_V6) != 0)


def property_values(block: RecordBlock, name: str, *, lengths: Ints | None = None) -> pa.Array:
    """The value of one property as text, null without it; of several the last one, as in RocketMQ.

    lengths: how many bytes of each record's properties are looked at, 0 for none; None: all of them.
    """
    wanted = np.frombuffer(name.encode(), dtype=np.uint8)
    starts = block.properties_at
    flat, offsets = _flat(block.buffer, starts, block.properties_bytes if lengths is None else lengths)
    value_at = np.zeros(len(starts), dtype=np.int64)
    value_bytes = np.zeros(len(starts), dtype=np.int64)
    key_ends = np.flatnonzero(flat == _KEY_END)
    key_ends = key_ends[key_ends >= len(wanted)]
    key_ends = key_ends[(flat[key_ends[:, None] + np.arange(-len(wanted), 0)] == wanted).all(axis=1)]
    if len(key_ends):
        record = np.searchsorted(offsets, key_ends, side="right") - 1
        # The name may also be the end of another key or of a value: a key starts the properties or follows a pair.
        key_at = key_ends - len(wanted)
        whole_key = (key_at == offsets[record]) | ((key_at > offsets[record]) & (flat[key_at - 1] == _PAIR_END))
        key_ends, record = key_ends[whole_key], record[whole_key]
        pair_ends = np.append(np.flatnonzero(flat == _PAIR_END), len(flat))
        value_end = np.minimum(pair_ends[np.searchsorted(pair_ends, key_ends)], offsets[record + 1])
        filled = value_end > key_ends + 1  # a pair with an empty value counts as absent
        record, key_ends, value_end = record[filled], key_ends[filled], value_end[filled]
        value_at[record] = key_ends + 1
        value_bytes[record] = value_end - key_ends - 1
    return _texts(flat, value_at, value_bytes, present=value_bytes > 0)


def offset_message_ids(block: RecordBlock) -> pa.Array:
    """The brokers' ids, as in gantrymq.message.ids: upper-case hex of the store host and the physical offset."""
    is_v6 = (block.sys_flag & STORE_HOST_V6) != 0
    host_bytes = np.where(is_v6, 20, 8).astype(np.int64)
    offsets = np.zeros(len(block) + 1, dtype=np.int64)
    np.cumsum((host_bytes + 8) * 2, out=offsets[1:])
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    places = block.physical_offset.astype(">i8").view(np.uint8).reshape(-1, 8)
    for width, rows in ((8, ~is_v6), (20, is_v6)):
        if rows.any():
            hosts = block.buffer[block.store_host_at[rows][:, None] + np.arange(width)]
            raw = np.concatenate([hosts, places[rows]], axis=1)
            text[offsets[:-1][rows][:, None] + np.arange((width + 8) * 2)] = _HEX[raw].reshape(len(raw), -1)
    return pa.StringArray.from_buffers(len(block), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))


def message_ids(block: RecordBlock) -> pa.Array:
    """The producers' unique ids; of messages without one, the brokers'."""
    return pc.coalesce(property_values(block, "UNIQ_KEY"), offset_message_ids(block))


def pieces(block: RecordBlock, starts: Ints, lengths: Ints) -> list[memoryview]:
    """Parts of the buffer, without a copy."""
    data = block.buffer.data
    return [data[at : at + size] for at, size in zip(starts.tolist(), lengths.tolist(), strict=True)]


def binaries(values: list[memoryview] | list[bytes]) -> pa.Array:
    """Byte strings; all together at most 2 GiB."""
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, values), dtype=np.int32, count=len(values)), out=offsets[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
    )


def _flat(buffer: Bytes, starts: Ints, lengths: Ints) -> tuple[Bytes, Ints]:
    """Concatenate the pieces; return the bytes and the offsets of the pieces (one more than pieces)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    index = np.arange(offsets[-1], dtype=np.int64)
    index += np.repeat(starts - offsets[:-1], lengths)
    return buffer[index], offsets


def _texts(buffer: Bytes, starts: Ints, lengths: Ints, present: NDArray[np.bool_] | None = None) -> pa.Array:
    """A string array; `present` says which entries are not null."""
    flat, offsets = _flat(buffer, starts, lengths)
    nulls = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    array = pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(flat)), nulls
    )
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        parts = array.cast(pa.binary()).to_pylist()
        return pa.array([None if part is None else part.decode(errors="replace") for part in parts], pa.string())
    return array


def _addresses(buffer: Bytes, positions: Ints, is_v6: NDArray[np.bool_]) -> pa.Array:
    """Addresses as texts. There are few different ones, so each is formatted once."""
    codes = np.zeros(len(positions), dtype=np.int32)
    names: list[str] = []
    for family, address_bytes, mask in ((socket.AF_INET, 4, ~is_v6), (socket.AF_INET6, 16, is_v6)):
        if not mask.any():
            continue
        raw = buffer[positions[mask][:, None] + np.arange(address_bytes)].view(f"S{address_bytes}")[:, 0]
        # numpy's S type drops trailing zeros when it makes bytes objects, so the length is put back
        different, inverse = np.unique(raw, return_inverse=True)
        codes[mask] = inverse + len(names)
        names += [socket.inet_ntop(family, bytes(name).ljust(address_bytes, b"\0")) for name in different]
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string())).dictionary_decode()
