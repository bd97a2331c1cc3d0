"""A cluster as a place: pulls give what the store folder has, and say what is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from gantrymq import (
    AdminClient,
    Credentials,
    Message,
    MessageExt,
    Producer,
    TlsConfig,
    TopicConfig,
    TransactionListener,
    TransactionProducer,
    TransactionState,
)
from gantrymq.contrib.spark.batch import GantryReader
from gantrymq.contrib.spark.columns import COMMON, ON_DEMAND, schema_of
from gantrymq.contrib.spark.errors import MessagesLost
from gantrymq.contrib.spark.ranges import Partition, Queue, QueueRange
from gantrymq.contrib.spark.stream import GantryStreamReader
from gantrymq.errors import ConfigError, GantryError, ResponseError, RouteNotFound
from tests.appliance.acl.cluster import PLAIN_ACL, accounts_file
from tests.appliance.reports.stores import unpack_golden
from tests.certificates import authority, server_fields
from tests.gantrymq.contrib.spark.stores import rows_of
from tests.harness import ServingCluster, serving
from tests.waiting import until

PLACE = ["topic", "broker_name", "queue_id", "queue_offset"]
EVERYTHING = [column.name for column in (*COMMON, *ON_DEMAND)]


def reader(namesrv: str, columns: list[str] = PLACE, **options: str) -> GantryReader:
    return GantryReader({"namesrv": namesrv} | options, schema_of(columns))


async def read(made: GantryReader) -> list[dict[str, Any]]:
    """All rows; the broker runs on this loop, so the reader has a thread."""
    return await asyncio.to_thread(rows_of, made)


async def fill(cluster: ServingCluster, count: int) -> None:
    async with Producer(cluster.namesrv_address, compress_from_bytes=500) as producer:
        messages = [
            Message("orders", b"%d" % n * (300 if n % 7 == 0 else 3), tags="a" if n % 2 else None, keys=f"k{n}")
            for n in range(count)
        ]
        await producer.send_many(messages)
        await producer.send_batch([Message("mail", b"%d" % n) for n in range(20)])
        await producer.send(Message("orders", b"later", delay_level=18))


def without_broker(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [{name: value for name, value in row.items() if name != "broker_name"} for row in rows]
    return sorted(rows, key=lambda row: (row["topic"], row["queue_id"], row["queue_offset"]))


async def test_pulls_give_what_the_store_folder_has(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        await fill(cluster, 3000)
        pulled = await read(reader(cluster.namesrv_address, EVERYTHING, minPartitions="9"))
    stored = rows_of(GantryReader({"path": str(tmp_path / "store")}, schema_of(EVERYTHING)))
    assert len(pulled) == 3020
    assert {row["broker_name"] for row in pulled} == {cluster.broker.config.broker_name}
    assert without_broker(pulled) == without_broker(stored)
    assert {row["body"] for row in pulled if row["topic"] == "mail"} == {b"%d" % n for n in range(20)}


class Commits(TransactionListener):
    """Leaves half messages and ends of transactions."""

    def execute(self, message: Message, argument: Any, /) -> TransactionState:
        return TransactionState.COMMIT

    def check(self, message: MessageExt, /) -> TransactionState:
        return TransactionState.COMMIT


async def test_internal_topics_are_the_same_by_name_server_and_in_the_folder(tmp_path: Path) -> None:
    held = {"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"}
    async with serving(tmp_path) as cluster:
        await fill(cluster, 30)
        async with TransactionProducer(cluster.namesrv_address, listener=Commits(), group="shop") as producer:
            await producer.send_in_transaction(Message("orders", b"half"))
        await until(lambda: held <= set(cluster.namesrv.routes.topics()))
        pulled = await read(reader(cluster.namesrv_address, includeInternal="true"))
        consumers_view = await read(reader(cluster.namesrv_address))
    folder = {"path": str(tmp_path / "store")}
    stored = rows_of(GantryReader(folder | {"includeInternal": "true"}, schema_of(PLACE)))
    assert without_broker(pulled) == without_broker(stored)
    assert held <= {row["topic"] for row in stored}
    assert without_broker(consumers_view) == without_broker(rows_of(GantryReader(folder, schema_of(PLACE))))


async def test_times_queues_and_offsets_choose(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        await fill(cluster, 300)
        address = cluster.namesrv_address
        rows = await read(reader(address, [*PLACE, "store_timestamp"], subscribe="orders"))
        times = sorted(row["store_timestamp"] for row in rows)
        moment = times[len(times) // 2]
        moment_ms = str(int(moment.timestamp() * 1000))
        since = await read(reader(address, subscribe="orders", startingTimestamp=moment_ms))
        before = await read(reader(address, subscribe="orders", endingTimestamp=moment_ms))
        assert len(since) == sum(time >= moment for time in times)
        assert len(before) == sum(time < moment for time in times)
        assert {row["queue_id"] for row in await read(reader(address, assign='{"orders": [1]}'))} == {1}
        label = f"{cluster.broker.config.broker_name}:2"
        exact = f'{{"orders": {{"{label}": 5}}}}'
        chosen = await read(reader(address, assign=f'{{"orders": ["{label}"]}}', startingOffsets=exact))
        assert [row["queue_offset"] for row in chosen] == [*range(5, 5 + len(chosen))] and chosen
        with pytest.raises(RouteNotFound, match="ordres: no name server knows this topic"):
            await read(reader(address, subscribe="ordres"))
        with pytest.raises(ConfigError, match="queue 99: there is no such queue"):
            await read(reader(address, assign='{"orders": [99]}'))
        assert {row["topic"] for row in await read(reader(address, subscribePattern="m.*"))} == {"mail"}


async def test_what_the_queue_has_not_any_more_is_told(tmp_path: Path) -> None:
    unpack_golden("rolled_preblank", tmp_path)  # its queue begins at 581
    (path,) = [found.parent for found in tmp_path.glob("*/commitlog")]
    path.rename(tmp_path / "store")
    sizes = {
        "commit_log_file_bytes": next((tmp_path / "store/commitlog").iterdir()).stat().st_size,
        "consume_queue_file_bytes": next((tmp_path / "store/consumequeue").glob("*/*/*")).stat().st_size,
    }
    async with serving(tmp_path, store=sizes) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin:  # the folder came without its topics
            await admin.topics.create(TopicConfig("T1", read_queue_nums=1, write_queue_nums=1))
        strict = reader(cluster.namesrv_address)
        (first,) = await asyncio.to_thread(strict.partitions)
        assert isinstance(first, Partition)
        (whole,) = first.ranges
        assert whole.begin == 581
        before = Partition([QueueRange(whole.queue, 500, 590)])
        with pytest.raises(MessagesLost, match=r"queue 0 of .*: offsets 500 to 580 \(81 messages\)"):
            await asyncio.to_thread(lambda: list(strict.read(before)))
        going_on = reader(cluster.namesrv_address, ["queue_offset", "lost_messages"], failOnDataLoss="false")
        batches = await asyncio.to_thread(lambda: list(going_on.read(before)))
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert rows[0] == {"queue_offset": 500, "lost_messages": 81}
        assert rows[1:] == [{"queue_offset": offset, "lost_messages": 0} for offset in range(581, 590)]


async def test_accounts_and_tls(tmp_path: Path) -> None:
    accounts_file(tmp_path, PLAIN_ACL)
    fields = server_fields()
    guarded = fields | {"acl_enable": True, "rocketmq_home": tmp_path}
    async with serving(tmp_path, broker=guarded, namesrv=fields) as cluster:
        secure = {"tlsTrustCert": str(authority() / "ca.pem"), "subscribe": "TopicX", "requestTimeoutMs": "1"}
        account = {"accessKey": "rightKey1", "secretKey": "rightSecret1", "group": "GroupX"}
        async with Producer(
            cluster.namesrv_address,
            credentials=Credentials("rightKey1", "rightSecret1"),
            tls=TlsConfig(trust_cert=authority() / "ca.pem"),
        ) as producer:
            await producer.send_many([Message("TopicX", b"%d" % n) for n in range(50)])
        assert len(await read(reader(cluster.namesrv_address, **secure, **account))) == 50
        with pytest.raises(GantryError) as refused:
            await read(reader(cluster.namesrv_address, **secure, **account | {"secretKey": "wrongSecret1"}))
        assert "wrongSecret1" not in str(refused.value)
        with pytest.raises(ResponseError, match="NO_PERMISSION"):
            await read(reader(cluster.namesrv_address, **secure))


async def test_a_stream_waits_for_its_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        options = {"namesrv": cluster.namesrv_address, "subscribe": "mail"}
        stream = GantryStreamReader(options, schema_of(PLACE))
        assert await asyncio.to_thread(stream.initialOffset) == {}
        await fill(cluster, 1)
        end = await asyncio.to_thread(stream.latestOffset, {}, ReadAllAvailable())
        parts = await asyncio.to_thread(stream.partitions, {}, end)
        batches = await asyncio.to_thread(lambda: [batch for part in parts for batch in stream.read(part)])
        assert sum(batch.num_rows for batch in batches) == 20
        assert Queue("mail", cluster.broker.config.broker_name, 0).label in end["mail"]
