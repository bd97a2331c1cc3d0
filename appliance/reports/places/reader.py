"""Parquet files of a lake as a DataFrame, also where Spark itself knows no way to them.

Spark reads folders and HDFS by itself, and S3 when it has Hadoop's module for it (hadoop-aws), which pip's Spark has
not. Without it the files are read by Python tasks, as they were written: no further package is needed, and rows cross
into the JVM, which costs more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from urllib.parse import parse_qs

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from appliance.reports.lake_files import FolderFiles
from appliance.reports.manifest import Lake
from appliance.reports.places.object_store import StoreFiles
from appliance.settings.lake_place import StoreAddress

FORMAT = "gantry_lake_files"
_ARROW = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def read_files(spark: SparkSession, lake: Lake, paths: Sequence[str], ddl: str) -> DataFrame:
    """The rows of these files of the lake; columns that a file lacks are null."""
    place = lake.place
    if isinstance(place, FolderFiles) or (isinstance(place, StoreFiles) and _is_known(spark, place)):
        read = spark.read.schema(ddl).option("basePath", place.url("data"))
        for name, value in _hadoop_options(place).items():
            read = read.option(name, value)
        return read.parquet(*map(place.url, paths))
    assert isinstance(place, StoreFiles)
    spark.dataSource.register(FilesDataSource)
    options = {"address": place.place.address, "query": place.place.options, "folder": place.folder}
    return spark.read.format(FORMAT).schema(ddl).options(**options, files=json.dumps(list(paths))).load()


def _is_known(spark: SparkSession, place: StoreFiles) -> bool:
    """Whether Spark has a file system of Hadoop for the place."""
    scheme = place.url("").partition(":")[0]
    context = spark.sparkContext
    try:
        assert context._jvm is not None
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
    except Py4JJavaError:
        return False
    return True


def _hadoop_options(place: FolderFiles | StoreFiles) -> dict[str, str]:
    """Hadoop's words for the options of an S3 place. Keys it finds where we do: in the environment, in the role."""
    if isinstance(place, FolderFiles) or place.place.scheme != "s3":
        return {}
    given = {name: values[-1] for name, values in parse_qs(place.place.options).items()}
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
        place = StoreFiles(StoreAddress(self.options["address"], self.options.get("query", "")), self.options["folder"])
        return _FilesReader(place, json.loads(self.options["files"]), schema)


class _File(InputPartition):
    def __init__(self, path: str) -> None:
        super().__init__(None)
        self.path = path


class _FilesReader(DataSourceReader):
    """A partition for each file."""

    def __init__(self, place: StoreFiles, paths: list[str], schema: StructType) -> None:
        self._place = place
        self._paths = paths
        self._schema = [(field.name, _ARROW[field.dataType.typeName()]) for field in schema.fields]

    def partitions(self) -> Sequence[InputPartition]:
        return [_File(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        pa.set_cpu_count(1)
        table = self._place.read(partition.path)
        columns = [
            table[name].cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
            for name, kind in self._schema
        ]
        yield from pa.Table.from_arrays(columns, schema=pa.schema(self._schema)).to_batches()
