"""Spark's writers: every row becomes a message. At least once: a task that is repeated sends all of its rows again.

What must not count twice needs an id of its own: column `id` goes into a property, and consumers know a row by it.
A task sends in chunks, each answered before the next begins.

    topic          STRING, or option `topic`                body    BINARY or STRING; `value` will do as well
    keys           STRING or ARRAY<STRING>                  tags    STRING
    properties     MAP<STRING, STRING>                      sharding_key    STRING: equal keys, same queue, in order
    delay_level    INT      deliver_at    TIMESTAMP         id      STRING, into the property that `idProperty` names

Every column but the body may be missing or null.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from gantrymq.client.blocking.producer import SyncProducer
from gantrymq.client.produce.options import DEFAULT_GROUP
from gantrymq.contrib.spark.options import WRITING, Connection, Options, connection_of
from gantrymq.errors import ConfigError, GantryError, SendIncomplete
from gantrymq.message.compression import CompressType, check_compress_type
from gantrymq.message.model import Message
from gantrymq.message.topics import check_topic

CHUNK_MESSAGES = 1000
CHUNK_BYTES = 4 << 20
ID_PROPERTY = "SPARK_ROW_ID"
_TEXT, _TEXTS = ("string",), ("string", "array<string>")
_KINDS: dict[str, tuple[str, ...]] = {
    "topic": _TEXT,
    "body": ("binary", "string"),
    "value": ("binary", "string"),
    "keys": _TEXTS,
    "tags": _TEXT,
    "properties": ("map<string,string>",),
    "sharding_key": _TEXT,
    "delay_level": ("int", "bigint", "smallint", "tinyint"),
    "deliver_at": ("timestamp",),
    "id": _TEXT,
}


@dataclass(slots=True)
class Sent(WriterCommitMessage):
    """What a task says at its end."""

    messages: int


class _Writing:
    """What both writers do. Options and columns are checked by the planner, before a row is sent."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError('a topic can not be overwritten, messages only join it: mode("append")')
        self._options: WriteOptions = write_options(given)
        self._rows = RowMaker(schema, self._options)

    def _send(self, batches: Iterator[pa.RecordBatch]) -> Sent:
        context = TaskContext.get()
        task = f"partition {context.partitionId()}" if context is not None else "the task"
        return Sent(send_rows(self._rows, self._options, batches, task))


class GantryWriter(_Writing, DataSourceArrowWriter):
    """For `df.write`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows."""
        return self._send(iterator)


class GantryStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows."""
        return self._send(iterator)


class BadRow(GantryError):
    """A row that can't be a message; the text has its number."""


class RowsNotSent(GantryError):
    """Some rows were not sent; the text names the first of them and says how many were."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a writer."""

    connection: Connection
    topic: str
    group: str
    id_property: str
    messages_a_second: int | None
    timeout_ms: int
    compress_type: CompressType


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer. ConfigError names the one that is wrong."""
    options = Options(given, WRITING)
    if "namesrv" not in options:
        raise ConfigError('say where messages go: option("namesrv", "host:9876")')
    compress_type = options.text("compressType", "zlib")
    check_compress_type(compress_type)
    return WriteOptions(
        connection=connection_of(options),
        topic=options.text("topic"),
        group=options.text("group", DEFAULT_GROUP),
        id_property=options.text("idProperty", ID_PROPERTY),
        messages_a_second=options.number("maxMessagesPerSecond"),
        timeout_ms=options.number("sendTimeoutMs", 120_000) or 0,
        compress_type=cast(CompressType, compress_type),
    )


class Row(NamedTuple):
    """A message, its sharding key if it has one, and the number of its row in the task."""

    message: Message
    sharding_key: str | None
    number: int


class RowMaker:
    """Makes messages of rows. ConfigError when columns or their types are not the sink's."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        for field in schema.fields:
            kinds = _KINDS.get(field.name)
            if kinds is None:
                raise ConfigError(
                    f"column {field.name}: the sink knows {', '.join(_KINDS)}; select what it has to send"
                )
            if field.dataType.simpleString() not in kinds:
                raise ConfigError(f"column {field.name}: {field.dataType.simpleString()} is not {' or '.join(kinds)}")
        names = schema.fieldNames()
        self._body = "body" if "body" in names else "value"
        if self._body not in names or ("body" in names and "value" in names):
            raise ConfigError("one column has to be the body: `body` or `value`")
        if "topic" not in names and not options.topic:
            raise ConfigError("no topic: option topic, or a column of this name")
        self._topic = options.topic
        self._id_property = options.id_property

    def rows(self, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
        """The batch's messages; `first`: the number of its first row in the task. BadRow for what can't be one."""
        for number, row in enumerate(batch.to_pylist(), first):
            try:
                message = self._message(row)
            except (GantryError, ValueError) as wrong:
                raise BadRow(f"row {number} of the task can't be a message: {wrong}") from wrong
            yield Row(message, row.get("sharding_key"), number)

    def _message(self, row: dict[str, Any]) -> Message:
        body = row[self._body]
        topic = row.get("topic") or self._topic
        if body is None or not topic:
            raise ValueError(f"{self._body if body is None else 'topic'} is null")
        check_topic(topic)
        properties = dict(row.get("properties") or ())
        if row.get("id") is not None:
            properties[self._id_property] = row["id"]
        return Message(
            topic,
            body.encode() if isinstance(body, str) else body,
            tags=row.get("tags"),
            keys=row.get("keys") or (),
            properties=properties,
            delay_level=row.get("delay_level") or 0,
            deliver_at=row.get("deliver_at"),
        )


def send_rows(maker: RowMaker, options: WriteOptions, batches: Iterator[pa.RecordBatch], task: str) -> int:
    """Send the rows of all batches; return how many. RowsNotSent, ConnectError and what else a producer raises."""
    connection = options.connection
    with SyncProducer(
        connection.name_servers,
        group=options.group,
        credentials=connection.credentials(),
        tls=connection.tls,
        delivery_timeout_s=options.timeout_ms / 1000,
        compress_type=options.compress_type,
    ) as producer:
        pace = _Pace(options.messages_a_second)
        seen = 0
        try:
            for batch in batches:
                for chunk in _chunks(maker.rows(batch, seen), pace.chunk_messages):
                    pace.wait()
                    _send(producer, chunk, pace)
                seen += batch.num_rows
        except BadRow as some:
            raise RowsNotSent(
                f"{task}: {some}; {pace.sent} rows of it were stored, and a repeated task sends all of its rows again"
            ) from some
    return pace.sent


def _chunks(rows: Iterator[Row], most: int) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size_bytes = 0
    for row in rows:
        if chunk and (len(chunk) >= most or size_bytes + len(row.message.body) > CHUNK_BYTES):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(row)
        size_bytes += len(row.message.body)
    if chunk:
        yield chunk


def _send(producer: SyncProducer, chunk: list[Row], pace: _Pace) -> None:
    """Send a chunk: rows with a sharding key in their order, others as they come. BadRow names the first failure."""
    keys = {id(row.message): row.sharding_key for row in chunk if row.sharding_key}
    ordered = [row for row in chunk if row.sharding_key]
    for rows in ([row for row in chunk if not row.sharding_key], ordered):
        messages = [row.message for row in rows]
        try:
            if rows is ordered:
                producer.send_many(messages, sharding_key=lambda message: keys[id(message)] or "")
            else:
                producer.send_many(messages)
        except SendIncomplete as some:
            pace.sent += some.sent
            number, failure = rows[min(some.failures)].number, some.failures[min(some.failures)]
            raise BadRow(f"row {number} of the task, and {len(some.failures) - 1} more: {failure}") from some
        pace.sent += len(rows)


class _Pace:
    """Waits so that a task sends no more than so many messages a second, over its whole time."""

    def __init__(self, messages_a_second: int | None) -> None:
        self._rate = messages_a_second
        self._began = time.monotonic()
        self.sent = 0
        self.chunk_messages = CHUNK_MESSAGES if messages_a_second is None else min(CHUNK_MESSAGES, messages_a_second)

    def wait(self) -> None:
        """Until the next chunk is due."""
        if self._rate is not None:
            time.sleep(max(0.0, self._began + self.sent / self._rate - time.monotonic()))
