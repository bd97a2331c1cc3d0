"""What a slave serves, what it refuses, and what it takes over from its master every ten seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.controller import BrokerController
from appliance.settings.loader import load_broker_config
from gantrymq.errors import ConfigError
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.acl.cluster import ADMIN, guarded, sent, signed_peer
from tests.appliance.broker.replication.pair import MASTER, PULL, STORE, TOPIC, caught_up, follower_of, send, slave_of
from tests.appliance.peer import Peer, connected
from tests.harness import SMALL_STORE, serving
from tests.waiting import until


async def has_topic(slave: BrokerController) -> None:
    await until(lambda: slave.topics.get(TOPIC) is not None)


async def test_a_slave_takes_over_topics_groups_offsets_and_delay_offsets(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, connected(cluster.broker.port) as peer:
        master = cluster.broker
        await send(cluster, 3)
        assert (await peer.ask(RequestCode.SEND_MESSAGE_V2, delayed(), b"later")).code == 0
        group = SubscriptionGroupConfig("G", retry_max_times=7)
        await peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.to_json())
        master.offsets.commit("G", TOPIC, 0, 2)
        await until(lambda: master.schedule.offsets.get(1) == 1)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            slave.offsets.commit("Own", TOPIC, 1, 1)
            await until(lambda: follower_of(slave).synchronize.complete_at > 0)
            assert slave.topics.data_version == master.topics.data_version
            assert slave.topics.configs == master.topics.configs
            assert slave.groups.configs["G"].retry_max_times == 7
            assert slave.groups.data_version == master.groups.data_version
            delays = slave.store_config.root / "config" / "delayOffset.json"
            await until(delays.exists)  # a state came, and was written
            assert slave.offsets.query("G", TOPIC, 0) == 2
            assert slave.offsets.query("Own", TOPIC, 1) == 1, "what the master does not have stays, as in RocketMQ"
            assert json.loads(delays.read_text())["offsetTable"]["1"] == 1
            await caught_up(slave, master)
            assert slave.store.max_offset("Later", 0) == 1, "the slave itself delivers nothing"


def delayed() -> dict[str, str]:
    fields: dict[str, str] = send_fields("G", "Later", 0, "")
    return fields | {"i": fields.get("i", "") + "DELAY\x011\x02"}


async def test_a_slave_serves_pulls_and_holds_those_that_are_ahead_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        await send(cluster, 3)
        async with slave_of(cluster, tmp_path / "slave") as slave, connected(slave.port) as peer:
            await has_topic(slave)
            await caught_up(slave, cluster.broker)
            found = await peer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "0"})
            assert (found.code, found.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "3")
            held = await asked(peer, "5")
            await send(cluster, 3)
            answer = await held.read()
            assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "6")


async def asked(peer: Peer, offset: str) -> Peer:
    peer.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": offset}).encode())
    return peer


async def test_what_only_a_master_may_do_is_refused(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave") as slave,
        connected(slave.port) as peer,
    ):
        for code, refusal in {
            RequestCode.SEND_MESSAGE_V2: ResponseCode.SERVICE_NOT_AVAILABLE,
            RequestCode.END_TRANSACTION: ResponseCode.SLAVE_NOT_AVAILABLE,
            RequestCode.UPDATE_AND_CREATE_TOPIC: ResponseCode.SYSTEM_ERROR,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: ResponseCode.SYSTEM_ERROR,
        }.items():
            answer = await peer.ask(code, send_fields("G", TOPIC, 0, ""), b"x")
            assert (answer.code, "slave" in (answer.remark or "")) == (refusal, True)
        assert slave.topics.get(TOPIC) is None, "a refused send creates no topic"


async def test_a_guarded_master_wants_its_slaves_signature(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    account = tmp_path / "slave.yml"
    account.write_text(f"accessKey: {ADMIN.access_key}\nsecretKey: {ADMIN.secret_key}\n")
    account.chmod(0o600)
    files = {"commit_log_file_bytes": SMALL_STORE["commit_log_file_bytes"]}
    async with guarded(tmp_path, slaves_enable=True) as cluster, signed_peer(cluster.broker.port) as peer:
        await sent(peer, ADMIN, "TopicX")
        async with slave_of(cluster, tmp_path / "unsigned", store=files) as slave:
            await until(lambda: any(getattr(each, "event", "") == "slave_sync_failed" for each in caplog.records))
            assert slave.topics.get("TopicX") is None
        async with slave_of(cluster, tmp_path / "signed", store=files, credentials_file=account) as slave:
            await until(lambda: follower_of(slave).synchronize.complete_at > 0)
            assert slave.topics.get("TopicX") is not None
            await caught_up(slave, cluster.broker)


async def test_the_name_server_knows_both_and_a_slave_that_goes_leaves_its_master_there(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, connected(cluster.namesrv.port) as peer:
        await send(cluster, 1)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await until(lambda: slave.outer_api.registered == (1, 1))
            assert await addresses(peer) == {"0": cluster.broker.address, "1": slave.address}
            assert follower_of(slave).ha_client is not None
        assert await addresses(peer) == {"0": cluster.broker.address}


async def addresses(peer: Peer) -> dict[str, str]:
    answer = await peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": TOPIC, "acceptStandardJsonOnly": "true"})
    (broker,) = json.loads(answer.body)["brokerDatas"]
    return {str(number): address for number, address in broker["brokerAddrs"].items()}


@pytest.mark.parametrize(
    "lines",
    ["brokerRole=SLAVE", "brokerRole=SLAVE\nbrokerId=0", "brokerId=1", "brokerRole=BOSS", "haMasterAddress=nowhere"],
)
def test_roles_that_can_not_be_are_refused(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"{lines}\n")
    with pytest.raises(ConfigError):
        load_broker_config(path, {})
