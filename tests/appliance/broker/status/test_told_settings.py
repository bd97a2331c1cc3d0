"""Every setting of RocketMQ's broker is in the answer to 26, with what it amounts to here."""

from __future__ import annotations

import csv
from pathlib import Path

from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, Message, Producer
from tests.harness import serving

GOLDEN = Path(__file__).parents[3] / "golden" / "settings_of_rocketmq_4.9.csv"
OBJECTS = ("broker", "store", "netty-server", "netty-client")  # of which RocketMQ's broker tells every field


async def test_each_of_rocketmqs_settings_is_told(tmp_path: Path) -> None:
    with GOLDEN.open(encoding="utf-8") as file:
        expected = {row["key"] for row in csv.DictReader(file) if row["component"] in OBJECTS}
    assert len(expected) > 180
    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        told = await admin.brokers.config(cluster.broker_address)
    assert expected - told.keys() == set()


async def test_what_follows_from_others_is_told_as_what_it_came_out_as(tmp_path: Path) -> None:
    store = {"commit_interval_ms": 333}
    async with serving(tmp_path, store=store) as cluster, AdminClient(cluster.namesrv_address) as admin:
        told = await admin.brokers.config(cluster.broker_address)
        async with Producer(cluster.namesrv_address) as producer:
            await producer.send(Message("orders", b"x"))
        log = Path(told["storePathCommitLog"])
        assert any(log.iterdir()) and log.parent == Path(told["storePathRootDir"])
        assert f"{told['brokerIP1']}:{told['listenPort']}".startswith("127.0.0.1:") and told["brokerIP2"] == "127.0.0.1"
        assert told["commitCommitLogThoroughInterval"] == "333"
        assert int(told["bitMapLengthConsumeQueueExt"]) == cluster.broker.filters.bloom.bit_count
        assert told["sendMessageThreadPoolNums"] == "1"
        assert told["rmqAddressServerDomain"] == BrokerConfig().address_server_domain


async def test_all_of_it_sent_back_changes_nothing_and_what_does_nothing_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        address, before = cluster.broker_address, cluster.broker.config
        told = await admin.brokers.config(address)
        assert await admin.brokers.update_config(address, told) is None
        assert await admin.brokers.config(address) == told and cluster.broker.config == before
        remark = await admin.brokers.update_config(address, {"sendMessageThreadPoolNums": "8"})
        assert remark is not None and "sendMessageThreadPoolNums (one event loop serves all requests" in remark
        assert (await admin.brokers.config(address))["sendMessageThreadPoolNums"] == "1"
