"""What reports read, as DataFrames: messages of the lakes, tables of samples, names on the brokers' lists."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from appliance.reports.catalogue import REPORTS
from appliance.reports.manifest import Lake
from appliance.reports.places.lakes import Lakes
from appliance.reports.places.reader import read_files
from appliance.reports.record_columns import SCHEMA_DDL
from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.listed_names import NAMES_DDL, listed_names
from appliance.reports.runner.sample_table import SAMPLES_DDL
from appliance.reports.runs import HOUR_MS, RunSpec

MESSAGES, NAMES = "messages", "names"


def inputs(spark: SparkSession, spec: RunSpec) -> list[DataFrame]:
    """The tables that the run's report reads, in the catalogue's order. Rows may lie outside of its range."""
    return [_table(spark, spec, name) for name in REPORTS[spec.report].tables]


def read_from_ms(spec: RunSpec) -> int:
    """The store time from which the report reads."""
    return spec.begin_ms - REPORTS[spec.report].days_before * 24 * HOUR_MS


def lake_messages(spark: SparkSession, lakes: list[Lake], begin_ms: int, end_ms: int) -> DataFrame:
    """All rows that may be in the range, with their broker. Only files listed in the manifest are read."""
    frames = []
    for lake in lakes:
        paths = [file.path for file in lake.files(begin_ms, end_ms)]
        if paths:
            read = read_files(spark, lake, paths, SCHEMA_DDL)
            frames.append(read.withColumn("broker_name", F.lit(lake.broker_name)))
    if not frames:
        return spark.createDataFrame([], SCHEMA_DDL + ", broker_name STRING")
    return reduce(DataFrame.unionByName, frames)


def lakes_of(spec: RunSpec) -> Lakes:
    return Lakes(Path(spec.data), spec.lake, spec.lake_table)


def _table(spark: SparkSession, spec: RunSpec, name: str) -> DataFrame:
    begin_ms = read_from_ms(spec)
    if name == MESSAGES:
        return lake_messages(spark, lakes_of(spec).of_brokers(), begin_ms, spec.end_ms)
    if name == NAMES:
        return spark.createDataFrame(listed_names(brokers_in(Path(spec.data))), NAMES_DDL)
    table = lakes_of(spec).of_samples(name)
    paths = [file.path for file in table.files(begin_ms, spec.end_ms)]
    if not paths:
        return spark.createDataFrame([], SAMPLES_DDL[name])
    return read_files(spark, table, paths, SAMPLES_DDL[name])
