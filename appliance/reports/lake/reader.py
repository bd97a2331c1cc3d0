"""The lake's tables as DataFrames: Spark reads the Parquet files that Delta lists, and needs no jar of Delta's.

Spark reads folders and HDFS by itself, and S3 when it has Hadoop's module for it (hadoop-aws), which pip's Spark has
not. Without it the files are read by Python tasks, as they were written: no further package is needed, and rows cross
into the JVM, which costs more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from appliance.reports.lake.place import Place
from appliance.reports.lake.table import Table
from appliance.settings.lake_place import StoreAddress

FORMAT = "gantry_lake_files"


def read_table(spark: SparkSession, table: Table, begin_ms: int, end_ms: int) -> DataFrame:
    """The rows of [begin_ms, end_ms), with times in ms."""
    schema = from_arrow_schema(table.schema)
    paths = [file.path for file in table.files(begin_ms, end_ms)]
    rows = _read(spark, table.place, paths, schema) if paths else spark.createDataFrame([], schema)
    at = F.col(table.time)
    rows = rows.where((at >= F.timestamp_millis(F.lit(begin_ms))) & (at < F.timestamp_millis(F.lit(end_ms))))
    times = [column.name for column in table.schema if pa.types.is_timestamp(column.type)]
    return rows.withColumns({name: F.unix_millis(name) for name in times})


def _read(spark: SparkSession, place: Place, paths: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of these files; columns that a file lacks are null."""
    folder = place.folder
    if isinstance(folder, Path) or _is_known(spark, place):
        read = spark.read.schema(schema).options(**_hadoop_options(place))
        return read.parquet(*map(place.spark_url, paths))
    spark.dataSource.register(FilesDataSource)
    options = {"address": folder.address, "query": folder.options, "files": json.dumps(list(paths))}
    return spark.read.format(FORMAT).schema(schema).options(**options).load()


def _is_known(spark: SparkSession, place: Place) -> bool:
    """Whether Spark has a file system of Hadoop for the place."""
    scheme = place.spark_url("").partition(":")[0]
    context = spark.sparkContext
    try:
        assert context._jvm is not None
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
    except Py4JJavaError:
        return False
    return True


def _hadoop_options(place: Place) -> dict[str, str]:
    """Hadoop's words for the options of an S3 place. Keys it finds where we do: in the environment, in the role."""
    if not place.is_s3:
        return {}
    assert isinstance(place.folder, StoreAddress)
    given = {name: values[-1] for name, values in parse_qs(place.folder.options).items()}
    options = {"fs.s3a.endpoint.region": given["region"]} if "region" in given else {}
    if "endpoint_override" in given:
        options["fs.s3a.endpoint"] = f"{given.get('scheme', 'https')}://{given['endpoint_override']}"
        options["fs.s3a.path.style.access"] = "true"
    return options


class FilesDataSource(DataSource):
    """The files that the options name. Its schema is given by who reads."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        place = Place(StoreAddress(self.options["address"], self.options.get("query", "")))
        return _FilesReader(place, json.loads(self.options["files"]), schema)


class _File(InputPartition):
    def __init__(self, path: str) -> None:
        super().__init__(None)
        self.path = path


class _FilesReader(DataSourceReader):
    """A partition for each file."""

    def __init__(self, place: Place, paths: list[str], schema: StructType) -> None:
        self._place = place
        self._paths = paths
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> Sequence[InputPartition]:
        return [_File(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        pa.set_cpu_count(1)
        table = self._place.read(partition.path)
        columns = [
            table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
            for field in self._schema
        ]
        yield from pa.Table.from_arrays(columns, schema=self._schema).to_batches()
