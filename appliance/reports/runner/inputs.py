"""What reports read, as DataFrames: messages of the lake, tables of samples, names on the brokers' lists."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from appliance.reports.catalogue import REPORTS
from appliance.reports.lake.lakes import MESSAGES, Lakes
from appliance.reports.lake.reader import read_table
from appliance.reports.runner.broker_folders import BrokerFolder, brokers_in
from appliance.reports.runs import HOUR_MS, RunSpec
from gantrymq.message.topics import REPLY_TOPIC_POSTFIX, SYSTEM_GROUP_PREFIX, topic_kind

logger = logging.getLogger(__name__)

NAMES_DDL = "kind STRING, name STRING"
_LISTS = (("topic", "topics.json", "topicConfigTable"), ("group", "subscriptionGroup.json", "subscriptionGroupTable"))


def listed_names(brokers: Iterable[BrokerFolder]) -> list[tuple[str, str]]:
    """(kind, name) of applications' topics and groups, each once, in order. A list that can't be read is empty."""
    brokers = list(brokers)
    own_names = {name for broker in brokers for name in (broker.broker_name, broker.cluster_name)}
    own_names |= {f"{broker.cluster_name}_{REPLY_TOPIC_POSTFIX}" for broker in brokers}
    found = {
        (kind, name)
        for broker in brokers
        for kind, file, table in _LISTS
        for name in _names(broker.store_folder / "config" / file, table)
        if (topic_kind(name, own_names) == "normal" if kind == "topic" else not name.startswith(SYSTEM_GROUP_PREFIX))
    }
    return sorted(found)


def _names(path: Path, table: str) -> list[str]:
    try:
        return [str(name) for name in json.loads(path.read_bytes()).get(table, {})]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, AttributeError, TypeError) as wrong:
        facts = {"event": "report_names_unreadable", "path": str(path), "error": repr(wrong)}
        logger.warning("list of names not read", extra=facts)
        return []


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
