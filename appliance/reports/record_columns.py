"""Converts record blocks to Arrow record batches, the columns of the lake, without a Python object for each record.

Texts are gathered with one index array (`_flat`) and passed to Arrow as offsets and bytes. Arrow does not check that
they are UTF-8, so each column is validated, and an invalid one is decoded again, slowly, with replacement characters.
Message bodies are not copied to the lake.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from appliance.reports.record_blocks import BORN_HOST_V6, Bytes, Ints, RecordBlock
from gantrymq.message.properties import CONSUME_ERROR, TAGS

# The same columns for Spark; a test compares the two.
SCHEMA_DDL = (
    "physical_offset BIGINT, size_bytes INT, topic STRING, queue_id INT, queue_offset BIGINT, sys_flag INT, "
    "born_timestamp BIGINT, born_host STRING, store_timestamp BIGINT, reconsume_times INT, body_bytes INT, "
    "tags STRING, cause STRING"
)
SCHEMA = pa.schema(
    [
        pa.field("physical_offset", pa.int64()),  # where the record stands in the commit log: unique in one broker
        pa.field("size_bytes", pa.int32()),  # the whole record
        pa.field("topic", pa.string()),
        pa.field("queue_id", pa.int32()),
        pa.field("queue_offset", pa.int64()),
        pa.field("sys_flag", pa.int32()),
        pa.field("born_timestamp", pa.int64()),  # ms, the producer's clock
        pa.field("born_host", pa.string()),  # the producer's address, without its port
        pa.field("store_timestamp", pa.int64()),  # ms, the broker's clock
        pa.field("reconsume_times", pa.int32()),
        pa.field("body_bytes", pa.int32()),  # as stored, so still compressed
        pa.field("tags", pa.string()),  # null without a tag
        # Why a group failed, of what it sent back or gave up; null when no client told. Older files lack the column.
        pa.field("cause", pa.string()),
    ]
)
BATCH_RECORDS = 1 << 15

_KEY_END, _PAIR_END = 1, 2  # properties text: key 0x01 value 0x02 key 0x01 value
_TAGS = np.frombuffer(TAGS.encode(), dtype=np.uint8)
_CAUSE = np.frombuffer(CONSUME_ERROR.encode(), dtype=np.uint8)
_GROUPS_OWN = ord("%")  # %RETRY% and %DLQ% begin with it


def record_batches(block: RecordBlock) -> Iterator[pa.RecordBatch]:
    """The block's records as batches of at most BATCH_RECORDS."""
    for begin in range(0, len(block), BATCH_RECORDS):
        yield _batch(block, slice(begin, begin + BATCH_RECORDS))


def _batch(block: RecordBlock, rows: slice) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(block.physical_offset[rows]),
            _int32(block.size_bytes[rows]),
            _texts(block.buffer, block.topic_at[rows], block.topic_bytes[rows]),
            _int32(block.queue_id[rows]),
            pa.array(block.queue_offset[rows]),
            _int32(block.sys_flag[rows]),
            pa.array(block.born_timestamp[rows]),
            _born_hosts(block.buffer, block.positions[rows] + 48, block.sys_flag[rows]),
            pa.array(block.store_timestamp[rows]),
            _int32(block.reconsume_times[rows]),
            _int32(block.body_bytes[rows]),
            _property(block.buffer, block.properties_at[rows], block.properties_bytes[rows], _TAGS),
            _causes(block, rows),
        ],
        schema=SCHEMA,
    )


def _int32(values: Ints) -> pa.Array:
    return pa.array(values.astype(np.int32))


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
        pieces = array.cast(pa.binary()).to_pylist()
        return pa.array([None if piece is None else piece.decode(errors="replace") for piece in pieces], pa.string())
    return array


def _born_hosts(buffer: Bytes, positions: Ints, sys_flag: Ints) -> pa.Array:
    """The producers' addresses as texts. There are few different ones, so each is formatted once."""
    is_v6 = (sys_flag & BORN_HOST_V6) != 0
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


def _causes(block: RecordBlock, rows: slice) -> pa.Array:
    """Why a group failed, for the records of groups' own topics: others are not looked at, which costs nothing then."""
    is_own = block.buffer[block.topic_at[rows]] == _GROUPS_OWN
    if not is_own.any():
        return pa.nulls(len(is_own), pa.string())
    lengths = np.where(is_own, block.properties_bytes[rows], 0)
    return _property(block.buffer, block.properties_at[rows], lengths, _CAUSE)


def _property(buffer: Bytes, starts: Ints, lengths: Ints, name: Bytes) -> pa.Array:
    """The value of a property, null without one; of several the last one, as in RocketMQ."""
    flat, offsets = _flat(buffer, starts, lengths)
    value_at = np.zeros(len(starts), dtype=np.int64)
    value_bytes = np.zeros(len(starts), dtype=np.int64)
    key_ends = np.flatnonzero(flat == _KEY_END)
    key_ends = key_ends[key_ends >= len(name)]
    key_ends = key_ends[(flat[key_ends[:, None] + np.arange(-len(name), 0)] == name).all(axis=1)]
    if len(key_ends):
        record = np.searchsorted(offsets, key_ends, side="right") - 1
        # The name may also be the end of another key or of a value: a key starts the properties or follows a pair.
        key_at = key_ends - len(name)
        whole_key = (key_at == offsets[record]) | ((key_at > offsets[record]) & (flat[key_at - 1] == _PAIR_END))
        key_ends, record = key_ends[whole_key], record[whole_key]
        pair_ends = np.append(np.flatnonzero(flat == _PAIR_END), len(flat))
        value_end = np.minimum(pair_ends[np.searchsorted(pair_ends, key_ends)], offsets[record + 1])
        filled = value_end > key_ends + 1  # a pair with an empty value counts as absent
        record, key_ends, value_end = record[filled], key_ends[filled], value_end[filled]
        value_at[record] = key_ends + 1
        value_bytes[record] = value_end - key_ends - 1
    return _texts(flat, value_at, value_bytes, present=value_bytes > 0)
