"""Converts record blocks to Arrow record batches, the columns of the lake, without a Python object for each record.

Message bodies are not copied to the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gantrymq.contrib.arrow.columns import born_hosts, int32, property_values, topics
from gantrymq.contrib.arrow.record_blocks import RecordBlock
from gantrymq.message.properties import CONSUME_ERROR, TAGS

# The same columns for Spark's reader of Parquet; a test compares the two.
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

_GROUPS_OWN = ord("%")  # %RETRY% and %DLQ% begin with it


def record_batches(block: RecordBlock) -> Iterator[pa.RecordBatch]:
    """The block's records as batches of at most BATCH_RECORDS."""
    for begin in range(0, len(block), BATCH_RECORDS):
        yield _batch(block.take(slice(begin, begin + BATCH_RECORDS)))


def _batch(block: RecordBlock) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(block.physical_offset),
            int32(block.size_bytes),
            topics(block),
            int32(block.queue_id),
            pa.array(block.queue_offset),
            int32(block.sys_flag),
            pa.array(block.born_timestamp),
            born_hosts(block),
            pa.array(block.store_timestamp),
            int32(block.reconsume_times),
            int32(block.body_bytes),
            property_values(block, TAGS),
            _causes(block),
        ],
        schema=SCHEMA,
    )


def _causes(block: RecordBlock) -> pa.Array:
    """Why a group failed, for the records of groups' own topics: others are not looked at, which costs nothing then."""
    is_own = block.buffer[block.topic_at] == _GROUPS_OWN
    if not is_own.any():
        return pa.nulls(len(is_own), pa.string())
    return property_values(block, CONSUME_ERROR, lengths=np.where(is_own, block.properties_bytes, 0))
