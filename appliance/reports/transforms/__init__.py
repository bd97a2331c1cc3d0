"""Reports as pure functions, DataFrame to DataFrame, with a `select` as schema at each end.

Built-in functions only: executors need no Python for a report, and topic names are bound values, never SQL text.
Input is the lake (see record_columns.SCHEMA) with the column `broker_name`, or the tables that the catalogue names.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from appliance.reports.transforms.forecast import forecast
from appliance.reports.transforms.groups import lag_history
from appliance.reports.transforms.messages import (
    bytes_by_topic_and_month,
    produce_latency,
    producers_by_host,
    retries_and_dead_letters,
    sizes_of_bodies,
    top_talkers,
    traffic_per_day,
    traffic_per_topic_and_hour,
)
from appliance.reports.transforms.outcomes import delays, transactions
from appliance.reports.transforms.samples import broker_history, slaves_behind
from appliance.reports.transforms.scope import Scope
from appliance.reports.transforms.unused import unused


def _traffic(messages: DataFrame, scope: Scope) -> DataFrame:
    return traffic_per_topic_and_hour(messages, scope.begin_ms, scope.end_ms, scope.topics)


# By the names of the catalogue; each takes the tables that the catalogue names, in that order, and the scope.
TRANSFORMS: dict[str, Callable[..., DataFrame]] = {
    "traffic": _traffic,
    "days": traffic_per_day,
    "months": bytes_by_topic_and_month,
    "producers": producers_by_host,
    "talkers": top_talkers,
    "sizes": sizes_of_bodies,
    "latency": produce_latency,
    "retries": retries_and_dead_letters,
    "delays": delays,
    "transactions": transactions,
    "forecast": forecast,
    "slaves": slaves_behind,
    "lag": lag_history,
    "brokers": broker_history,
    "unused": unused,
}
