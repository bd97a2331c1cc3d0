"""The reports' numbers once more: from the same Parquet files, by DuckDB."""

from __future__ import annotations

import math
from typing import Any

PERCENTILES = ", ".join(f"quantile_cont({{value}}, {share})" for share in (0.5, 0.9, 0.99))
LATENCY = "(store_timestamp - born_timestamp)"
ORDINARY = (
    "topic NOT LIKE '\\%%' ESCAPE '\\' AND topic <> 'SCHEDULE_TOPIC_XXXX' AND topic NOT LIKE '%TRANS\\_%' ESCAPE '\\'"
)
LOCAL = "timezone('{zone}', to_timestamp(store_timestamp / 1000))"
COMMITTED = f"({ORDINARY} AND sys_flag & 12 = 8)"
QUERIES = {
    "days": "SELECT strftime(d, '%Y-%m-%d'), m, b, coalesce(lag1, 0), m / lag1 - 1, coalesce(lag7, 0), m / lag7 - 1 "
    "FROM (SELECT d, m, b, (SELECT m FROM days AS o WHERE o.d = days.d - 1) AS lag1, "
    "(SELECT m FROM days AS o WHERE o.d = days.d - 7) AS lag7 FROM days) ORDER BY 1",
    "months": f"SELECT strftime({LOCAL}, '%Y-%m') AS month, topic, CASE WHEN {ORDINARY} THEN 'normal' "
    "WHEN topic LIKE '\\%RETRY%' ESCAPE '\\' THEN 'retry' WHEN topic LIKE '\\%DLQ%' ESCAPE '\\' THEN 'dead letter' "
    "ELSE 'system' END, count(*), sum(size_bytes)::BIGINT, sum(body_bytes)::BIGINT FROM wanted GROUP BY ALL "
    "ORDER BY 1, 5 DESC, 2",
    "producers": "SELECT born_host, count(*), sum(size_bytes)::BIGINT, count(DISTINCT topic), min(store_timestamp), "
    f"max(store_timestamp) FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 2 DESC, 1",
    "talkers": "SELECT born_host, topic, count(*), sum(size_bytes)::BIGINT AS b, b / sum(b) OVER () FROM wanted "
    f"WHERE {ORDINARY} GROUP BY 1, 2 ORDER BY 4 DESC, 1, 2 LIMIT 100",
    "sizes": f"SELECT topic, count(*), min(body_bytes), {PERCENTILES.format(value='body_bytes')}, max(body_bytes) "
    f"FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 1",
    "latency": f"SELECT topic, count(*), {PERCENTILES.format(value=LATENCY)}, max{LATENCY}, "
    f"count(*) FILTER ({LATENCY} < 0) FROM wanted WHERE {ORDINARY} GROUP BY 1 ORDER BY 1",
    "retries": f"SELECT strftime({LOCAL}, '%Y-%m-%d'), regexp_replace(topic, '^%(RETRY|DLQ)%', '') AS consumers, "
    "coalesce(cause, 'no cause reported') AS why, "
    "count(*) FILTER (topic LIKE '\\%RETRY%' ESCAPE '\\'), count(*) FILTER (topic LIKE '\\%DLQ%' ESCAPE '\\'), "
    "max(reconsume_times) FROM wanted WHERE topic LIKE '\\%%' ESCAPE '\\' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "delays": f"SELECT strftime({LOCAL}, '%Y-%m-%d'), printf('level %02d', queue_id + 1), "
    "count(*) FILTER (reconsume_times = 0), count(*) FILTER (reconsume_times > 0), sum(size_bytes)::BIGINT FROM wanted "
    "WHERE topic = 'SCHEDULE_TOPIC_XXXX' GROUP BY 1, 2 ORDER BY 1, 2",
    "transactions": f"SELECT strftime({LOCAL}, '%Y-%m-%d'), "
    "count(*) FILTER (topic = 'RMQ_SYS_TRANS_HALF_TOPIC' AND check_times IS NULL), "
    f"count(*) FILTER ({COMMITTED}), greatest(count(*) FILTER (topic = 'RMQ_SYS_TRANS_OP_HALF_TOPIC') - "
    f"count(*) FILTER ({COMMITTED}), 0), count(*) FILTER (topic = 'TRANS_CHECK_MAX_TIME_TOPIC') FROM wanted "
    f"WHERE topic LIKE '%TRANS\\_%' ESCAPE '\\' OR {COMMITTED} GROUP BY 1 ORDER BY 1",
    "forecast": "WITH whole AS (SELECT d, coalesce((SELECT b FROM every_day AS e WHERE e.d = calendar.d), 0) AS b, "
    "row_number() OVER (ORDER BY d) - 1 AS x FROM calendar), line AS (SELECT regr_slope(b, x) AS slope, "
    "regr_intercept(b, x) AS at0, avg(x) AS mean, regr_sxx(b, x) AS sxx, count(*) AS n, max(d) AS last, "
    "sqrt((regr_syy(b, x) - regr_slope(b, x) ** 2 * regr_sxx(b, x)) / (count(*) - 2)) AS s FROM whole), "
    "ahead AS (SELECT last + step AS d, at0 + slope * (n - 1 + step) AS b, "
    "{student} * s * sqrt(1 + 1 / n + (n - 1 + step - mean) ** 2 / sxx) AS reach "
    "FROM line, (SELECT unnest(range(1, 15))::INT AS step)) "
    "SELECT 'broker-a', strftime(d, '%Y-%m-%d'), 'stored', b, NULL, NULL FROM whole UNION ALL "
    "SELECT 'broker-a', strftime(d, '%Y-%m-%d'), 'forecast', greatest(round(b), 0)::BIGINT, "
    "greatest(round(b - reach), 0)::BIGINT, greatest(round(b + reach), 0)::BIGINT FROM ahead ORDER BY 2",
}


def counted(report: str, paths: list[str], begin_ms: int, end_ms: int, zone: str) -> list[tuple[Any, ...]]:
    """The rows of a report."""
    import duckdb

    with duckdb.connect() as connection:
        connection.sql(
            "CREATE TABLE stored AS SELECT * REPLACE (epoch_ms(store_timestamp) AS store_timestamp, "
            f"epoch_ms(born_timestamp) AS born_timestamp) FROM read_parquet({paths}) "
            f"WHERE store_timestamp < make_timestamptz({end_ms} * 1000)"
        )
        connection.sql(f"CREATE VIEW wanted AS SELECT * FROM stored WHERE store_timestamp >= {begin_ms}")
        local = LOCAL.format(zone=zone)
        connection.sql(
            f"CREATE VIEW days AS SELECT {local}::DATE AS d, count(*) AS m, sum(size_bytes)::BIGINT AS b FROM stored "
            f"WHERE {ORDINARY} GROUP BY 1"
        )
        connection.sql(
            f"CREATE VIEW every_day AS SELECT {local}::DATE AS d, sum(size_bytes)::BIGINT AS b FROM stored GROUP BY 1"
        )
        connection.sql(
            "CREATE VIEW calendar AS SELECT unnest(generate_series((SELECT min(d) + 1 FROM every_day), "
            f"timezone('{zone}', to_timestamp({end_ms} / 1000))::DATE - 1, INTERVAL 1 DAY))::DATE AS d"
        )
        days = connection.sql("SELECT count(*) FROM calendar").fetchall()[0][0]
        query = QUERIES[report].replace("{zone}", zone).replace("{student}", str(student_quantile(days - 2)))
        return connection.sql(query).fetchall()


def student_quantile(freedom: int, share: float = 0.9) -> float:
    """Below which `share` of Student's distribution lies: its density, summed from 0 on in narrow strips."""
    top = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    area, at, width = 0.5, 0.0, 1e-5
    while area < share:
        middle = at + width / 2
        area += width * math.exp(top - (freedom + 1) / 2 * math.log1p(middle * middle / freedom))
        at += width
    return at


CLOCK = "strftime(timezone('{{zone}}', to_timestamp({at_ms} / 1000)), '{form}')"
NAME, BEFORE, AFTER = (
    CLOCK.format(at_ms=f"(at_ms + {step})", form="%Y-%m-%d %H:00") for step in (0, -3_600_000, 3_600_000)
)
EAST = "epoch_ms(timezone('{zone}', to_timestamp(at_ms / 1000))) - at_ms"
HOUR = (
    f"{NAME} || if({NAME} IN ({BEFORE}, {AFTER}), printf(' +%02d:%02d', ({EAST}) // 3600000, ({EAST}) // 60000 % 60), "
    "'') AS hour"
)
WANTED = (
    'FROM (SELECT *, epoch_ms("at") AS at_ms FROM read_parquet({paths})) '
    "WHERE at_ms >= {begin_ms} AND at_ms < {end_ms} GROUP BY ALL ORDER BY min(at_ms) // 3600000, 2"
)
PER_SECOND = "sum({0}) / (60 * sum(counted_minutes) FILTER ({0} IS NOT NULL))"
OF_SAMPLES = {
    "slaves": f"SELECT {HOUR}, slave, max(behind_bytes), max(behind_messages), max(behind_seconds), count(*), "
    f"count(*) FILTER (in_sync) / count(*), sum(bytes_per_second * seconds) / sum(seconds) {WANTED}",
    "lag": f'SELECT {HOUR}, "group", max(behind_seconds), if("group" = \'mail\', 40.5, 20.0)::DOUBLE, '
    "count(*) FILTER (behind_seconds > if(\"group\" = 'mail', 40.5, 20.0)), count(*), max(lag), "
    f"{PER_SECOND.format('stored')}, {PER_SECOND.format('consumed')} {WANTED}",
    "brokers": f"SELECT {HOUR}, broker, sum(in_rate * seconds) / sum(seconds), max(in_rate), "
    "sum(out_rate * seconds) / sum(seconds), max(out_rate), max(disk_ratio), "
    f"max(commit_log_bytes), count(*) {WANTED}",
}


def counted_samples(report: str, paths: list[str], begin_ms: int, end_ms: int, zone: str) -> list[tuple[Any, ...]]:
    """The rows of a report of samples; that of lag with promises of 40.5 s for `mail` and 20 s for others."""
    import duckdb

    query = OF_SAMPLES[report].format(paths=paths, begin_ms=begin_ms, end_ms=end_ms, zone=zone)
    with duckdb.connect() as connection:
        return connection.sql(query).fetchall()


def counted_last_use(paths: list[str], topics: list[str], end_ms: int) -> list[tuple[Any, ...]]:
    """When each of the topics was used last."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute(
            "SELECT name, (SELECT epoch_ms(max(store_timestamp)) FROM read_parquet($2) WHERE topic = name "
            "AND epoch_ms(store_timestamp) < $3) AS last FROM (SELECT unnest($1) AS name) "
            "ORDER BY last NULLS FIRST, name",
            [topics, paths, end_ms],
        ).fetchall()
