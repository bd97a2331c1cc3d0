"""The columns: their units, and what a user may ask of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from gantrymq.contrib.spark import GantrySource
from gantrymq.contrib.spark import columns as columns_module
from gantrymq.errors import ConfigError
from gantrymq.message.compression import compress_body
from tests.appliance.reports.stores import Record
from tests.gantrymq.contrib.spark.stores import write_store


def test_columns_are_named_by_the_user_or_the_common_ones() -> None:
    assert "body" not in GantrySource({"path": "/store"}).schema().fieldNames()
    assert GantrySource({"path": "/store", "columns": "body, topic"}).schema().fieldNames() == ["body", "topic"]
    assert len(GantrySource({"path": "/store", "columns": "*"}).schema()) == len(columns_module.BY_NAME)
    with pytest.raises(ConfigError, match="no column 'colour'; there are topic, broker_name"):
        GantrySource({"path": "/store", "columns": "topic,colour"}).schema()


def test_times_and_sizes_tell_their_units() -> None:
    schema = GantrySource({"path": "/store"}).schema()
    assert schema["store_timestamp"].metadata["unit"] == "microseconds, from milliseconds, UTC"
    assert schema["size_bytes"].metadata["unit"] == "bytes"
    assert "producer's clock" in schema["born_timestamp"].metadata["comment"]


def test_a_schema_of_the_user_has_our_types(tmp_path: Path) -> None:
    write_store(tmp_path, [Record()] * 3)
    source = GantrySource({"path": str(tmp_path)})
    wanted = StructType().add("queue_offset", LongType()).add("topic", StringType())
    reader = source.reader(wanted)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows[0] == {"queue_offset": 0, "topic": "orders"}
    with pytest.raises(ConfigError, match="column queue_offset is bigint, not int; cast it"):
        source.reader(StructType().add("queue_offset", IntegerType()))


def test_bodies_that_unpack_to_much_come_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "BATCH_BODY_BYTES", 250_000)
    packed = compress_body(bytes(100_000), "zlib", 9)
    write_store(tmp_path, [Record(body=packed, sys_flag=1)] * 7)
    source = GantrySource({"path": str(tmp_path), "columns": "queue_offset,body"})
    reader = source.reader(source.schema())
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [batch.num_rows for batch in batches] == [2, 2, 2, 1]
    assert [row["queue_offset"] for batch in batches for row in batch.to_pylist()] == [*range(7)]
    assert all(row["body"] == bytes(100_000) for batch in batches for row in batch.to_pylist())
