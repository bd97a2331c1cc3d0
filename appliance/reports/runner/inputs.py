"""What reports read, as DataFrames: messages of the lake, tables of samples, names on the brokers' lists."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from appliance.reports.catalogue import REPORTS
from appliance.reports.lake.lakes import MESSAGES, Lakes
from appliance.reports.lake.reader import read_table
from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.listed_names import NAMES_DDL, listed_names
from appliance.reports.runs import HOUR_MS, RunSpec

NAMES = "names"


def inputs(spark: SparkSession, spec: RunSpec) -> list[DataFrame]:
    """The tables that the run's report reads, in the catalogue's order."""
    return [_table(spark, spec, name) for name in REPORTS[spec.report].tables]


def read_from_ms(spec: RunSpec) -> int:
    """The store time from which the report reads."""
    return spec.begin_ms - REPORTS[spec.report].days_before * 24 * HOUR_MS


def lakes_of(spec: RunSpec) -> Lakes:
    return Lakes(Path(spec.data), spec.lake)


def _table(spark: SparkSession, spec: RunSpec, name: str) -> DataFrame:
    if name == NAMES:
        return spark.createDataFrame(listed_names(brokers_in(Path(spec.data))), NAMES_DDL)
    lakes, begin_ms = lakes_of(spec), read_from_ms(spec)
    if name == MESSAGES:
        return read_table(spark, lakes.messages, begin_ms, spec.end_ms)
    return read_table(spark, lakes.of_samples(name), begin_ms, spec.end_ms).withColumnRenamed("at", "at_ms")
