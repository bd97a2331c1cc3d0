"""The reports' numbers once more: from the same Parquet files, by DuckDB."""

from __future__ import annotations

from typing import Any

PERCENTILES = ", ".join(f"quantile_cont({{value}}, {share})" for share in (0.5, 0.9, 0.99))
LATENCY = "(store_timestamp - born_timestamp)"
ORDINARY = "topic NOT LIKE '\\%%' ESCAPE '\\' AND topic <> 'SCHEDULE_TOPIC_XXXX'"
LOCAL = "timezone('{zone}', to_timestamp(store_timestamp / 1000))"
QUERIES = {
    "days": "SELECT strftime(d, '%Y-%m-%d'), m, b, coalesce(lag1, 0), m / lag1 - 1, coalesce(lag7, 0), m / lag7 - 1 "
    "FROM (SELECT d, m, b, (SELECT m FROM days AS o WHERE o.d = days.d - 1) AS lag1, "
    "(SELECT m FROM days AS o WHERE o.d = days.d - 7) AS lag7 FROM days) ORDER BY 1",
    "months": f"SELECT strftime({LOCAL}, '%Y-%m') AS month, topic, CASE WHEN {ORDINARY} THEN 'normal' "
    "WHEN topic LIKE '\\%RETRY%' ESCAPE '\\' THEN 'retry' WHEN topic LIKE '\\%DLQ%' ESCAPE '\\' THEN 'dead letter' "
    "ELSE 'system' END, count(*), sum(size_bytes)::BIGINT, sum(body_bytes)::BIGINT FROM wanted GROUP BY ALL "
    "ORDER BY 1, 2",
    "producers": "SELECT born_host, count(*), sum(size_bytes)::BIGINT, count(DISTINCT topic), min(store_timestamp), "
    f"max(store_timestamp) FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 2 DESC, 1",
    "talkers": "SELECT born_host, topic, count(*), sum(size_bytes)::BIGINT AS b, b / sum(b) OVER () FROM wanted "
    f"WHERE {ORDINARY} GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2 LIMIT 100",
    "sizes": f"SELECT topic, count(*), min(body_bytes), {PERCENTILES.format(value='body_bytes')}, max(body_bytes) "
    f"FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 1",
    "latency": f"SELECT topic, count(*), {PERCENTILES.format(value=LATENCY)}, max{LATENCY}, "
    f"count(*) FILTER ({LATENCY} < 0) FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 1",
    "retries": f"SELECT strftime({LOCAL}, '%Y-%m-%d'), regexp_replace(topic, '^%(RETRY|DLQ)%', '') AS consumers, "
    "count(*) FILTER (topic LIKE '\\%RETRY%' ESCAPE '\\'), count(*) FILTER (topic LIKE '\\%DLQ%' ESCAPE '\\'), "
    "max(reconsume_times) FROM wanted WHERE topic LIKE '\\%%' ESCAPE '\\' GROUP BY 1, 2 ORDER BY 1, 2",
}


def counted(report: str, paths: list[str], begin_ms: int, end_ms: int, zone: str) -> list[tuple[Any, ...]]:
    """The rows of a report."""
    import duckdb

    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE stored AS SELECT * FROM read_parquet({paths}) WHERE store_timestamp < {end_ms}")
        connection.sql(f"CREATE VIEW wanted AS SELECT * FROM stored WHERE store_timestamp >= {begin_ms}")
        local = LOCAL.format(zone=zone)
        connection.sql(
            f"CREATE VIEW days AS SELECT {local}::DATE AS d, count(*) AS m, sum(size_bytes)::BIGINT AS b FROM stored "
            f"WHERE {ORDINARY} GROUP BY 1"
        )
        return connection.sql(QUERIES[report].replace("{zone}", zone)).fetchall()
