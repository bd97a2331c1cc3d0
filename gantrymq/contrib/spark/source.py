"""The data source `gantrymq`: what Spark asks for by name."""

from __future__ import annotations

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
from gantrymq.contrib.spark.interpreter import use_this_python
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
