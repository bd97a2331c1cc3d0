"""Converts record blocks to Arrow record batches, the columns of the lake, without a Python object for each record.

Message bodies are not copied to the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gantrymq.contrib.arrow.columns import TIME, born_hosts, int32, property_values, times, topics
from gantrymq.contrib.arrow.record_blocks import RecordBlock
from gantrymq.message.properties import (
    CONSUME_ERROR,
    TAGS,
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
)
from gantrymq.message.topics import TRANS_HALF_TOPIC

SCHEMA = pa.schema(
    [
        pa.field("broker_name", pa.string()),
        pa.field("physical_offset", pa.int64()),  # where the record stands in the commit log: unique in one broker
        pa.field("size_bytes", pa.int32()),  # the whole record
        pa.field("topic", pa.string()),
        pa.field("queue_id", pa.int32()),
        pa.field("queue_offset", pa.int64()),
        pa.field("sys_flag", pa.int32()),
        pa.field("born_timestamp", TIME),  # the producer's clock
        pa.field("born_host", pa.string()),  # the producer's address, without its port
        pa.field("store_timestamp", TIME),  # the broker's clock
        pa.field("reconsume_times", pa.int32()),
        pa.field("body_bytes", pa.int32()),  # as stored, so still compressed
        pa.field("tags", pa.string()),  # null without a tag
        # Why a group failed, of what it sent back or gave up; null when no client told.
        pa.field("cause", pa.string()),
        # Of a half message that was stored again: how often its producer was asked. Null of the first, and of others.
        pa.field("check_times", pa.int32()),
    ]
)
BATCH_RECORDS = 1 << 15

_HALF_TOPIC = np.frombuffer(TRANS_HALF_TOPIC.encode(), dtype=np.uint8)
_GROUPS_OWN = ord("%")  # %RETRY% and %DLQ% begin with it


def record_batches(block: RecordBlock, broker_name: str) -> Iterator[pa.RecordBatch]:
    """The block's records as batches of at most BATCH_RECORDS."""
    for begin in range(0, len(block), BATCH_RECORDS):
        yield _batch(block.take(slice(begin, begin + BATCH_RECORDS)), broker_name)


def _batch(block: RecordBlock, broker_name: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(broker_name, pa.string()), len(block)),
            pa.array(block.physical_offset),
            int32(block.size_bytes),
            topics(block),
            int32(block.queue_id),
            pa.array(block.queue_offset),
            int32(block.sys_flag),
            times(block.born_timestamp),
            born_hosts(block),
            times(block.store_timestamp),
            int32(block.reconsume_times),
            int32(block.body_bytes),
            property_values(block, TAGS),
            _causes(block),
            _check_times(block),
        ],
        schema=SCHEMA,
    )


def _causes(block: RecordBlock) -> pa.Array:
    """Why a group failed, for the records of groups' own topics: others are not looked at, which costs nothing then."""
    is_own = block.buffer[block.topic_at] == _GROUPS_OWN
    if not is_own.any():
        return pa.nulls(len(is_own), pa.string())
    return property_values(block, CONSUME_ERROR, lengths=np.where(is_own, block.properties_bytes, 0))


def _check_times(block: RecordBlock) -> pa.Array:
    """Of half messages that the broker stored again. One that it kept back, before a producer was asked, has 0."""
    rows = np.flatnonzero(block.topic_bytes == len(_HALF_TOPIC))
    names = block.buffer[block.topic_at[rows][:, None] + np.arange(len(_HALF_TOPIC))]
    rows = rows[(names == _HALF_TOPIC).all(axis=1)]
    if not len(rows):
        return pa.nulls(len(block), pa.int32())
    lengths = np.zeros(len(block), dtype=np.int64)
    lengths[rows] = block.properties_bytes[rows]
    times = property_values(block, TRANSACTION_CHECK_TIMES, lengths=lengths)
    kept_back = property_values(block, TRAN_PREPARED_QUEUE_OFFSET, lengths=lengths)
    zero, none = pa.scalar("0"), pa.scalar(None, pa.string())
    times = pc.if_else(pc.match_substring_regex(times, r"^[0-9]{1,9}$"), times, zero)
    return pc.coalesce(times, pc.if_else(pc.is_valid(kept_back), zero, none)).cast(pa.int32())
