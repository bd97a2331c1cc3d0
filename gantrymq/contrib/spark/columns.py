"""The columns with their units, and the Arrow batches that Spark gets.

A query names the columns it wants (option `columns`, or `.schema(...)`), because Spark's API for Python sources does
not tell which of them it uses. Those in COMMON are cheap: header fields and the tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from gantrymq.contrib.arrow import columns as arrow
from gantrymq.contrib.arrow.record_blocks import RecordBlock
from gantrymq.contrib.spark.ranges import NOWHERE, Lost
from gantrymq.errors import ConfigError
from gantrymq.message import sysflag
from gantrymq.message.compression import decompress_body
from gantrymq.message.properties import decode_properties

BATCH_RECORDS = 1 << 14
BATCH_BODY_BYTES = 16 << 20  # unpacked bodies in one batch, or one body

LOST = "lost_messages"
_OF_BODIES = frozenset({"body", "stored_body"})


class Column(NamedTuple):
    """A column; `make` makes it of a block of records. Without `make` it is not made of the record alone."""

    name: str
    kind: DataType
    about: str
    unit: str = ""
    make: Callable[[RecordBlock], pa.Array] | None = None


def _keys(block: RecordBlock) -> pa.Array:
    values = arrow.property_values(block, "KEYS").to_pylist()
    return pa.array([value.split() if value else [] for value in values], pa.list_(pa.string()))


def _properties(block: RecordBlock) -> pa.Array:
    texts = arrow.pieces(block, block.properties_at, block.properties_bytes)
    pairs = [list(decode_properties(text).items()) for text in texts]
    return pa.array(pairs, pa.map_(pa.string(), pa.string()))


def _stored_bodies(block: RecordBlock) -> pa.Array:
    return arrow.binaries(arrow.pieces(block, block.body_at, block.body_bytes))


COMMON = (
    Column("topic", StringType(), "the topic", make=arrow.topics),
    Column("broker_name", StringType(), "the broker's name; of a store folder what option brokerName says, else null"),
    Column("queue_id", IntegerType(), "the queue", make=lambda block: arrow.int32(block.queue_id)),
    Column("queue_offset", LongType(), "the place in the queue", make=lambda block: pa.array(block.queue_offset)),
    Column(
        "store_timestamp", TimestampType(), "when the broker stored it, by the broker's clock",
        "microseconds, from milliseconds, UTC", lambda block: arrow.times(block.store_timestamp),
    ),
    Column(
        "born_timestamp", TimestampType(), "when it was sent, by the producer's clock",
        "microseconds, from milliseconds, UTC", lambda block: arrow.times(block.born_timestamp),
    ),
    Column("born_host", StringType(), "the producer's address", make=arrow.born_hosts),
    Column("tags", StringType(), "the tag, null without one", make=lambda block: arrow.property_values(block, "TAGS")),
    Column(
        "reconsume_times", IntegerType(), "how often its group failed before",
        make=lambda block: arrow.int32(block.reconsume_times),
    ),
    Column("size_bytes", IntegerType(), "the whole record", "bytes", lambda block: arrow.int32(block.size_bytes)),
    Column("body_bytes", IntegerType(), "the body as stored", "bytes", lambda block: arrow.int32(block.body_bytes)),
    Column(
        "physical_offset", LongType(), "the place in the broker's log", "bytes",
        lambda block: pa.array(block.physical_offset),
    ),
)  # fmt: skip
ON_DEMAND = (
    Column("sys_flag", IntegerType(), "bits: see gantrymq.message.sysflag", make=lambda b: arrow.int32(b.sys_flag)),
    Column("flag", IntegerType(), "the application's number", make=lambda block: arrow.int32(block.flag)),
    Column("store_host", StringType(), "the broker's address", make=arrow.store_hosts),
    Column("message_id", StringType(), "the producer's unique id, else the broker's", make=arrow.message_ids),
    Column("offset_message_id", StringType(), "the broker's id", make=arrow.offset_message_ids),
    Column("keys", ArrayType(StringType()), "the keys", make=_keys),
    Column("properties", MapType(StringType(), StringType()), "all properties", make=_properties),
    Column("body", BinaryType(), "the body as it was sent: unpacked", "bytes"),
    Column("stored_body", BinaryType(), "the body as stored, maybe packed", "bytes", _stored_bodies),
    Column(
        LOST, LongType(), "0; in a row of a gap how many messages, from queue_offset on, are deleted or damaged",
        "messages",
    ),
)  # fmt: skip
BY_NAME = {column.name: column for column in (*COMMON, *ON_DEMAND)}


def schema_of(names: Sequence[str]) -> StructType:
    """The schema of these columns; comment and unit are in the fields' metadata. ConfigError for unknown ones."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown or len(set(names)) < len(names):
        problem = f"no column {unknown[0]!r}" if unknown else "a column is named twice"
        raise ConfigError(f"columns: {problem}; there are {', '.join(BY_NAME)}")
    return StructType([_field(BY_NAME[name]) for name in names])


def _field(column: Column) -> StructField:
    about = f"{column.about} ({column.unit})" if column.unit else column.about
    metadata: dict[str, Any] = {"comment": about} | ({"unit": column.unit} if column.unit else {})
    return StructField(column.name, column.kind, True, metadata)


def check_schema(schema: StructType) -> None:
    """ConfigError unless a user's schema has our columns with our types."""
    wanted = schema_of(schema.fieldNames())
    for given, field in zip(schema.fields, wanted.fields, strict=True):
        if given.dataType.simpleString() != field.dataType.simpleString():
            raise ConfigError(
                f"column {field.name} is {field.dataType.simpleString()}, not {given.dataType.simpleString()}; cast it"
            )


class BatchMaker:
    """Makes the batches of one query: all have its columns in its order."""

    def __init__(self, schema: StructType, broker_name: str | None = None) -> None:
        self.names: list[str] = schema.fieldNames()
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._broker_name = broker_name

    def batches(self, block: RecordBlock, broker_name: str | None = None) -> Iterator[pa.RecordBatch]:
        """The records as batches of bounded size."""
        for begin in range(0, len(block), BATCH_RECORDS):
            part = block.take(slice(begin, begin + BATCH_RECORDS))
            if "body" in self.names:
                for rows, bodies in _unpacked(part):
                    yield self._batch(part.take(rows), broker_name, bodies)
            else:
                yield self._batch(part, broker_name, None)

    def gap(self, lost: Lost) -> pa.RecordBatch:
        """A row that tells of messages that are gone or damaged; its other columns are null."""
        item, queue = lost.range, lost.range.queue
        known = {"topic": queue.topic, "queue_id": queue.queue_id, "queue_offset": item.begin, LOST: len(item)}
        if lost.place not in (None, NOWHERE):
            known["physical_offset"] = lost.place
        known["broker_name"] = queue.broker_name or self._broker_name
        columns = [pa.array([known.get(field.name)], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    @property
    def tells_gaps(self) -> bool:
        """Whether the query wants rows of gaps."""
        return LOST in self.names

    @property
    def needs_bodies(self) -> bool:
        """Whether the query wants bodies. What it does not want is not checked: that would cost a third of its time."""
        return not _OF_BODIES.isdisjoint(self.names)

    def _batch(self, block: RecordBlock, broker_name: str | None, bodies: pa.Array | None) -> pa.RecordBatch:
        columns = []
        for field in self._schema:
            make = BY_NAME[field.name].make
            if make is not None:
                column = make(block)
            elif field.name == "body":
                column = bodies
            elif field.name == LOST:
                column = pa.array(np.zeros(len(block), dtype=np.int64))
            else:
                column = pa.repeat(pa.scalar(broker_name or self._broker_name, pa.string()), len(block))
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _unpacked(block: RecordBlock) -> Iterator[tuple[slice, pa.Array]]:
    """Bodies as they were sent, in runs of at most BATCH_BODY_BYTES: a small packed body may unpack to megabytes."""
    stored = arrow.pieces(block, block.body_at, block.body_bytes)
    packed = (block.sys_flag & sysflag.COMPRESSED) != 0
    if not packed.any():
        yield slice(0, len(block)), arrow.binaries(stored)
        return
    bodies: list[bytes] = []
    begin = size_bytes = 0
    for row, (body, flags) in enumerate(zip(stored, block.sys_flag.tolist(), strict=True)):
        plain = decompress_body(bytes(body), flags)
        if bodies and size_bytes + len(plain) > BATCH_BODY_BYTES:
            yield slice(begin, row), arrow.binaries(bodies)
            begin, size_bytes, bodies = row, 0, []
        bodies.append(plain)
        size_bytes += len(plain)
    yield slice(begin, len(block)), arrow.binaries(bodies)
