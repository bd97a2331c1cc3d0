"""The data source in Spark itself: queries, streams with their checkpoints, and the sink, at one running broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from gantrymq import Message, SyncProducer
from gantrymq.contrib.spark import GantrySource
from tests.appliance.reports.conftest import java as java
from tests.appliance.reports.with_spark.conftest import spark as spark
from tests.docs.pages import ROOT, blocks
from tests.gantrymq.contrib.spark.stores import rows_of
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PLACE = "topic,queue_id,queue_offset"
NOT_STARTED = "Python worker failed to connect back"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> None:
    spark.dataSource.register(GantrySource)


def send(cluster: LocalCluster, topic: str, bodies: list[bytes]) -> None:
    with SyncProducer(cluster.namesrv_address) as producer:
        producer.send_many([Message(topic, body, tags=f"t{len(body)}", keys="k") for body in bodies])


def load(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("gantrymq").options(**options).load()


def in_files(cluster: LocalCluster, topic: str, count: int) -> None:
    """Wait until the queues' files have what was sent: the broker writes them each second."""
    source = GantrySource({"path": str(cluster.store), "subscribe": topic, "columns": "topic"})
    wait_until(lambda: _count(source) == count)


def _count(source: GantrySource) -> int:
    try:
        return len(rows_of(source.reader(source.schema())))
    except ValueError:
        return 0  # the topic has no folder yet


def test_folder_and_cluster_count_as_duckdb_does(spark: SparkSession, cluster: LocalCluster, tmp_path: Path) -> None:
    send(cluster, "orders", [b"x" * (n % 5 + 1) for n in range(3000)])
    in_files(cluster, "orders", 3000)
    for number, place in enumerate(({"path": str(cluster.store)}, {"namesrv": cluster.namesrv_address})):
        frame = load(spark, subscribe="orders", columns="*", **place)
        counted = {(row["tags"], row["count"]) for row in frame.groupBy("tags").count().collect()}
        assert counted == {(f"t{n}", 600) for n in range(1, 6)}
        frame.write.parquet(str(tmp_path / str(number)))
    one, other = (f"'{tmp_path}/{number}/*.parquet'" for number in range(2))
    shared = "topic, queue_id, queue_offset, tags, born_timestamp, store_timestamp, message_id, keys, body, flag"
    difference = f"(SELECT {shared} FROM {one}) EXCEPT ALL (SELECT {shared} FROM {other})"
    assert duckdb.sql(difference).fetchall() == []
    distinct = duckdb.sql(
        f"SELECT count(*), count(DISTINCT (queue_id, queue_offset)), sum(octet_length(body)) FROM {one}"
    )
    assert distinct.fetchall() == [(3000, 3000, 9000)]


def test_sql_a_schema_and_partitions(spark: SparkSession, cluster: LocalCluster) -> None:
    send(cluster, "parts", [b"%d" % n for n in range(400)])
    where = {"namesrv": cluster.namesrv_address, "subscribe": "parts"}
    assert load(spark, minPartitions="7", **where).rdd.getNumPartitions() >= 7
    chosen = spark.read.format("gantrymq").schema("queue_offset BIGINT, body BINARY").options(**where).load()
    chosen.createOrReplaceTempView("parts")
    query = "SELECT sum(CAST(CAST(body AS STRING) AS INT)) AS total, max(queue_offset) AS most FROM parts"
    assert spark.sql(query).collect()[0].asDict() == {"total": sum(range(400)), "most": 99}


def test_conditions_are_right_however_often_a_frame_is_used(spark: SparkSession, cluster: LocalCluster) -> None:
    """Spark 4.2 would keep what was pushed first for all later queries; so there is nothing to push to."""
    send(cluster, "pushed", [b"%d" % n for n in range(400)])
    where = {"namesrv": cluster.namesrv_address, "columns": PLACE}
    condition = "topic = 'pushed' AND queue_id IN (1, 2) AND queue_offset >= 90"
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = load(spark, **where)
        everything = frame.count()
        assert (frame.where(condition).count(), frame.count()) == (20, everything)
        assert frame.where("topic = 'pushed' AND queue_id = 0").count() == 100
    finally:
        spark.conf.unset(PUSHDOWN)
    with pytest.raises(Exception, match="option pushfilters: unknown here"):
        load(spark, pushFilters="true", **where).count()


def test_plans_and_errors_hold_no_secret(
    spark: SparkSession, cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    where = {"namesrv": cluster.namesrv_address, "subscribe": "secrets", "accessKey": "AKEY1", "secretKey": "SKEY1"}
    send(cluster, "secrets", [b"x"])
    frame = load(spark, **where)
    frame.explain(True)
    assert "gantrymq" in (plan := capsys.readouterr().out) and "KEY1" not in plan
    with pytest.raises(Exception, match="no name server knows this topic") as failure:
        load(spark, **where | {"subscribe": "nowhere"}).count()
    assert "KEY1" not in str(failure.value)


def with_a_worker(run: Callable[[], object]) -> None:
    """Run a stream; again if its Python process took more than ten seconds to start, which Spark has no setting for."""
    ends_at = time.monotonic() + WITHIN_S
    while True:
        try:
            run()
            return
        except Exception as exc:
            if NOT_STARTED not in str(exc) or time.monotonic() > ends_at:
                raise


def run_stream(
    spark: SparkSession, folder: Path, *, batches: list[int] | None = None, die_after: int | None = None, **options: str
) -> int:
    """Run a stream to its end into Parquet files; `die_after`: let it fail after so many batches. Returns its rows."""

    def write(frame: DataFrame, number: int) -> None:
        frame.write.mode("overwrite").parquet(str(folder / "out" / f"{number}"))
        if batches is not None:
            batches.append(number)
        if die_after is not None and number >= die_after:
            raise RuntimeError("killed in the middle")

    stream = spark.readStream.format("gantrymq").options(**options).load()
    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True)
    try:
        with_a_worker(lambda: writer.start().awaitTermination())
    except Exception:
        if die_after is None:
            raise
    found = duckdb.sql(f"SELECT count(*), count(DISTINCT (queue_id, queue_offset)) FROM '{folder}/out/*/*.parquet'")
    ((rows, distinct),) = found.fetchall()
    assert rows == distinct, "a message was read twice"
    return int(rows)


@pytest.mark.parametrize("kind", ["path", "namesrv"])
def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, cluster: LocalCluster, tmp_path: Path, kind: str
) -> None:
    topic = f"stream-{kind}"
    place = {"path": str(cluster.store)} if kind == "path" else {"namesrv": cluster.namesrv_address}
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "300", **place}
    send(cluster, topic, [b"x"] * 1000)
    in_files(cluster, topic, 1000)
    batches: list[int] = []
    assert run_stream(spark, tmp_path, batches=batches, die_after=1, **options) == 600
    assert batches == [0, 1]
    assert run_stream(spark, tmp_path, batches=batches, **options) == 1000
    assert batches[2:] == [1, 2, 3]  # the batch that failed came again, with the same messages
    send(cluster, topic, [b"x"] * 50)
    in_files(cluster, topic, 1050)
    # The checkpoint goes before the option.
    assert run_stream(spark, tmp_path, **options | {"startingOffsets": "latest"}) == 1050


def test_rows_become_messages(spark: SparkSession, cluster: LocalCluster) -> None:
    rows = spark.range(2000).selectExpr(
        "CAST(id AS STRING) AS body", "concat('k', id, ' other') AS keys", "IF(id % 2 = 0, 'even', NULL) AS tags",
        "map('price', CAST(id AS STRING)) AS properties", "CAST(id % 7 AS STRING) AS sharding_key",
        "concat('row-', id) AS id",
    )  # fmt: skip
    sink = {"namesrv": cluster.namesrv_address, "topic": "sunk", "idProperty": "ROW"}
    rows.write.format("gantrymq").options(**sink).mode("append").save()
    back = load(spark, namesrv=cluster.namesrv_address, subscribe="sunk", columns="*").collect()
    assert sorted(int(row.body) for row in back) == [*range(2000)]
    for row in back:
        number = int(row.body)
        assert (row.tags, row["keys"]) == (None if number % 2 else "even", [f"k{number}", "other"])
        assert (row.properties["price"], row.properties["ROW"]) == (str(number), f"row-{number}")
    queues: dict[int, set[int]] = {}
    for row in back:
        queues.setdefault(int(row.body) % 7, set()).add(row.queue_id)
    assert all(len(found) == 1 for found in queues.values())


def test_a_row_that_can_not_be_sent_is_named(spark: SparkSession, cluster: LocalCluster) -> None:
    def save(sql: str, **options: str) -> None:
        where = {"namesrv": cluster.namesrv_address, "topic": "bad"} | options
        spark.sql(sql).coalesce(1).write.format("gantrymq").options(**where).mode("append").save()

    with pytest.raises(Exception, match="row 3 of the task can't be a message: body is null; 0 rows of it were stored"):
        save("SELECT IF(id = 3, NULL, 'x') AS body FROM range(5)")
    with pytest.raises(Exception, match=r"row 2 of the task can't be a message: .*illegal characters"):
        save("SELECT 'x' AS body, IF(id = 2, 'no topic!', 'bad') AS topic FROM range(5)")
    with pytest.raises(Exception, match="column price: the sink knows topic, body"):
        save("SELECT 'x' AS body, 1 AS price")
    with pytest.raises(Exception, match="a topic can not be overwritten"):
        spark.sql("SELECT 'x' AS body").write.format("gantrymq").options(
            namesrv=cluster.namesrv_address, topic="bad"
        ).mode("overwrite").save()


def test_a_stream_of_rows_becomes_messages(spark: SparkSession, cluster: LocalCluster, tmp_path: Path) -> None:
    send(cluster, "from", [b"%d" % n for n in range(500)])
    where = {"namesrv": cluster.namesrv_address}
    stream = spark.readStream.format("gantrymq").options(
        subscribe="from", startingOffsets="earliest", columns="body", maxOffsetsPerTrigger="200", **where
    )
    writer = stream.load().writeStream.format("gantrymq").options(topic="to", maxMessagesPerSecond="100000", **where)
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with_a_worker(lambda: writer.start().awaitTermination())
    arrived = load(spark, subscribe="to", columns="body", **where).collect()
    assert sorted(int(row.body) for row in arrived) == [*range(500)]


def test_the_notebook_lines_of_the_page_work(spark: SparkSession, cluster: LocalCluster, tmp_path: Path) -> None:
    send(cluster, "orders", [b"x"])
    in_files(cluster, "orders", _count(GantrySource({"namesrv": cluster.namesrv_address, "subscribe": "orders"})))
    programs = [block for block in blocks(ROOT / "docs" / "spark.md") if block.language == "py"]
    assert len(programs) >= 4
    names: dict[str, Any] = {"spark": spark}
    for block in programs:
        code = block.code.replace("/tmp/", f"{tmp_path}/").replace("127.0.0.1:9876", cluster.namesrv_address)
        code = code.replace("/data/brokers/broker-a/store", str(cluster.store))
        with_a_worker(partial(exec, compile(code, str(block), "exec"), names))
