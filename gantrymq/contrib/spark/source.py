"""The data source `gantrymq`: what Spark asks for by name."""

from __future__ import annotations

import os
import sys

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from gantrymq.contrib.spark.batch import GantryReader
from gantrymq.contrib.spark.columns import check_schema, schema_of
from gantrymq.contrib.spark.options import read_options
from gantrymq.contrib.spark.stream import GantryStreamReader


class GantrySource(DataSource):
    """Topics of GantryMQ or Apache RocketMQ 4.9 as DataFrames: `spark.dataSource.register(GantrySource)`, then
    `spark.read`, `spark.readStream`, `df.write` and `df.writeStream` with `.format("gantrymq")`. docs/spark.md has the
    options and the columns."""

    @classmethod
    def name(cls) -> str:
        """What stands in `.format(...)`. Spark asks when the source is registered, before it notes in which Python its
        tasks run."""
        use_this_python()
        return "gantrymq"

    def schema(self) -> StructType:
        """The columns that option `columns` names, or the common ones."""
        return schema_of(read_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        check_schema(schema)
        return GantryReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        check_schema(schema)
        return GantryStreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`."""
        from gantrymq.contrib.spark.sink import GantryWriter  # needs the client, and orjson

        return GantryWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """For `df.writeStream`."""
        from gantrymq.contrib.spark.sink import GantryStreamWriter

        return GantryStreamWriter(self.options, schema, overwrite)


def use_this_python() -> None:
    """Have tasks on this machine run in the program's own Python. Does nothing outside a driver, on a cluster, whose
    machines may have it elsewhere, and where PYSPARK_PYTHON names one.

    PySpark takes `python3` of PATH. That is the system's when a program runs in a virtual environment that is not
    activated, and the first query ends with ModuleNotFoundError in the middle of Java's stack.
    """
    session = SparkSession.getActiveSession()
    context = getattr(session, "sparkContext", None) if session is not None else None
    if (
        isinstance(context, SparkContext)
        and (context.master or "").startswith("local")
        and not os.environ.get("PYSPARK_PYTHON")
    ):
        context.pythonExec = sys.executable
