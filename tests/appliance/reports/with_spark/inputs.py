"""What the tests of reports with a real Spark read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.appliance.reports.stores import HOUR_MS, NOON, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_ingest(spark: SparkSession, log: Path, lake: Any, **options: Any) -> Any:
    from appliance.reports.runner.ingest import ingest

    return ingest(spark, [log], lake, **options)


def small_ranges(range_bytes: int) -> Any:
    from appliance.reports.runner.ingest import IngestLimits

    return IngestLimits(cores=lambda: 2, range_bytes=range_bytes, range_bytes_min=range_bytes)


def day_of_records(count: int, body_bytes: int = 400) -> list[Record]:
    """Records of three topics over several hours and two days, tags and address families mixed."""
    topics = itertools.cycle(["orders", "mail", "%RETRY%billing", "orders"])
    return [
        Record(
            topic=next(topics),
            body=bytes(body_bytes),
            stored_at=NOON + index * 15 * HOUR_MS // count,
            properties={"TAGS": "t"} if index % 3 else {},
            born_ip="2001:db8::1" if index % 5 == 0 else "10.0.0.1",
            is_v2=index % 7 == 0,
        )
        for index in range(count)
    ]


def samples_ddl(kind: str) -> str:
    """The columns of samples as reports get them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from appliance.reports.samples.schemas import SCHEMAS

    columns = from_arrow_schema(SCHEMAS[kind]).fields
    return ", ".join(
        "at_ms BIGINT" if column.name == "at" else f"`{column.name}` {column.dataType.simpleString()}"
        for column in columns
    )


def frame(spark: SparkSession, rows: Iterable[tuple[str, int, int, int]]) -> Any:
    from pyspark.sql import functions as F

    from appliance.reports.lake.record_columns import SCHEMA

    wanted = spark.createDataFrame(list(rows), "topic STRING, store_timestamp BIGINT, size_bytes INT, body_bytes INT")
    return wanted.select(*(F.col(name) if name in wanted.columns else F.lit(None).alias(name) for name in SCHEMA.names))
