"""NamesrvController on a real port: brokers register, leave, vanish; tools change things."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.namesrv import kv_config, route_info
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import NamesrvConfig
from gantrymq.remoting.admin_bodies import DataVersion, RegisterBrokerBody
from gantrymq.remoting.bodies import ClusterInfo, TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import VERSION_1, Peer, connected, registration
from tests.gantrymq.remoting.registrations import compress_registration
from tests.waiting import WITHIN_S, Clock


@pytest.fixture
def config(tmp_path: Path) -> NamesrvConfig:
    return NamesrvConfig(listen_port=0, kv_config_path=tmp_path / "namesrv" / "kvConfig.json")


@pytest.fixture
async def namesrv(config: NamesrvConfig) -> AsyncIterator[NamesrvController]:
    async with NamesrvController(config) as namesrv:
        yield namesrv


@pytest.fixture
async def broker(namesrv: NamesrvController) -> AsyncIterator[Peer]:
    async with connected(namesrv.port) as broker:
        yield broker


async def test_a_registered_topic_has_a_route_with_quoted_ids(namesrv: NamesrvController, broker: Peer) -> None:
    async with connected(namesrv.port) as client:
        await broker.register("10.0.0.1:10911")
        answer = await client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        assert answer.body == (
            b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],'
            b'"filterServerTable":{},'
            b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        )
        info = ClusterInfo.from_json((await client.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body)
        assert info.cluster_addr_table == {"DefaultCluster": ["broker-a"]}


async def test_a_broker_is_told_whether_it_must_register(broker: Peer) -> None:
    fields, _ = registration("10.0.0.1:10911")
    known, newer = VERSION_1.to_json(), DataVersion(VERSION_1.timestamp, VERSION_1.counter + 1).to_json()
    unknown = await broker.ask(RequestCode.QUERY_DATA_VERSION, fields, known)
    assert (unknown.ext_fields, unknown.body) == ({"changed": "true"}, b"")
    await broker.register("10.0.0.1:10911")
    for offered, changed in ((known, "false"), (newer, "true")):
        answer = await broker.ask(RequestCode.QUERY_DATA_VERSION, fields, offered)
        assert (answer.ext_fields, answer.body) == ({"changed": changed}, known)


async def test_taking_and_giving_write_permission_tells_how_many_topics_it_was(broker: Peer) -> None:
    await broker.register("10.0.0.1:10911", topics=("T", "U"))

    async def perms() -> list[int]:
        answers = [await broker.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}) for topic in ("T", "U")]
        return [TopicRouteData.from_json(answer.body).queue_datas[0].perm for answer in answers]

    wiped = await broker.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert (wiped.ext_fields, await perms()) == ({"wipeTopicCount": "2"}, [4, 4])
    added = await broker.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"})
    assert (added.ext_fields, await perms()) == ({"addTopicCount": "2"}, [6, 6])


async def test_a_broker_is_gone_as_soon_as_its_connection_closes(namesrv: NamesrvController) -> None:
    async with connected(namesrv.port) as client:
        async with connected(namesrv.port) as broker:
            await broker.register("10.0.0.1:10911")
            assert (await client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})).code == ResponseCode.SUCCESS
        async with asyncio.timeout(WITHIN_S):
            while (answer := await client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})).code == 0:
                await asyncio.sleep(0.01)
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert answer.remark is not None
        assert answer.remark.startswith("No topic route info in name server for the topic: T\n")


async def test_a_silent_broker_expires_and_its_connection_is_closed(config: NamesrvConfig) -> None:
    clock = Clock(1000.0)
    async with NamesrvController(config, clock=clock) as namesrv, connected(namesrv.port) as broker:
        await broker.register("10.0.0.1:10911")
        clock.now += 120
        namesrv.remove_expired_brokers()
        assert namesrv.routes.topics() == ["T"]
        clock.now += 1
        namesrv.remove_expired_brokers()
        assert namesrv.routes.topics() == []
        with pytest.raises(asyncio.IncompleteReadError):
            await broker.read()


@pytest.mark.parametrize(
    ("code", "ext_fields", "body"),
    [
        (RequestCode.REGISTER_BROKER, {}, b""),
        (RequestCode.REGISTER_BROKER, registration("a:1")[0] | {"brokerId": "x"}, b""),
        (RequestCode.REGISTER_BROKER, registration("a:1")[0], b'{"topicConfigSerializeWrapper":[]}'),
        (RequestCode.REGISTER_BROKER, registration("a:1")[0], b"{" * 100_000),
        (RequestCode.REGISTER_BROKER, registration("a:1")[0] | {"compressed": "true"}, b"not zlib"),
        (RequestCode.REGISTER_BROKER, registration("a:1")[0] | {"bodyCrc32": "5"}, b"{}"),
        (RequestCode.QUERY_DATA_VERSION, registration("a:1")[0], b"nonsense"),
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {}, b""),
        (RequestCode.PUT_KV_CONFIG, {"namespace": "N"}, b""),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_remark(
    namesrv: NamesrvController, code: int, ext_fields: dict[str, str], body: bytes
) -> None:
    async with connected(namesrv.port) as peer:
        answer = await peer.ask(code, ext_fields, body)
        is_changed = "bodyCrc32" in ext_fields  # on its way: RocketMQ's own code, a broker sends it again
        assert answer.code == (ResponseCode.SYSTEM_ERROR if is_changed else ResponseCode.INVALID_PARAMETER)
        assert answer.remark
        assert answer.remark != "system error"
        assert namesrv.routes.cluster_info().broker_addr_table == {}


async def test_kv_config_survives_a_restart(config: NamesrvConfig) -> None:
    async with NamesrvController(config) as namesrv, connected(namesrv.port) as peer:
        for value in ("broker-a:4", "broker-a:8"):
            fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": value}
            assert (await peer.ask(RequestCode.PUT_KV_CONFIG, fields)).code == ResponseCode.SUCCESS
    backup = config.kv_config_path.with_name("kvConfig.json.bak")
    assert json.loads(backup.read_bytes())["configTable"]["ORDER_TOPIC_CONFIG"] == {"T": "broker-a:4"}
    async with NamesrvController(config) as namesrv, connected(namesrv.port) as peer:
        answer = await peer.register("10.0.0.1:10911")
        assert answer.body == b'{"table":{"T":"broker-a:8"}}'


async def test_order_topics_stand_in_the_route_when_enabled_at_run_time(namesrv: NamesrvController) -> None:
    async with connected(namesrv.port) as peer:
        await peer.register("10.0.0.1:10911")
        await peer.ask(
            RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "broker-a:4"}
        )
        route = await peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        assert TopicRouteData.from_json(route.body).order_topic_conf is None
        assert (await peer.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")).code == 0
        route = await peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        assert TopicRouteData.from_json(route.body).order_topic_conf == "broker-a:4"
        settings = (await peer.ask(RequestCode.GET_NAMESRV_CONFIG)).body.decode().splitlines()
        assert "orderMessageEnable=true" in settings


@pytest.mark.parametrize(
    "line",
    [
        "kvConfigPath=/tmp/elsewhere",
        "configStorePath=/tmp/elsewhere",
        "rocketmqHome=/tmp",
        "listenPort=1",
        "orderMessageEnable=perhaps",
    ],
)
async def test_dangerous_and_impossible_settings_are_refused_and_nothing_changes(
    namesrv: NamesrvController, line: str
) -> None:
    async with connected(namesrv.port) as peer:
        before = namesrv.live_config.text()
        body = f"orderMessageEnable=true\n{line}\n".encode()
        answer = await peer.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
        assert answer.code in (ResponseCode.NO_PERMISSION, ResponseCode.INVALID_PARAMETER)
        assert answer.remark is not None
        assert line.split("=")[0] in answer.remark
        assert namesrv.live_config.text() == before


async def test_the_port_is_free_again_after_the_end(config: NamesrvConfig) -> None:
    async with NamesrvController(config) as namesrv:
        port = namesrv.port
    again = NamesrvConfig(listen_port=port, kv_config_path=config.kv_config_path)
    async with NamesrvController(again) as namesrv:
        assert namesrv.port == port


MANY = tuple(f"Topic{number}" for number in range(2000))


@pytest.mark.parametrize("compressed", [False, True])
async def test_a_good_bye_right_behind_a_large_registration_comes_after_it(
    namesrv: NamesrvController, broker: Peer, compressed: bool
) -> None:
    ext_fields, body = registration("10.0.0.1:10911", topics=MANY)
    if compressed:
        ext_fields["compressed"] = "true"
        body = compress_registration(RegisterBrokerBody.from_json(body))
    for code, payload in ((RequestCode.REGISTER_BROKER, body), (RequestCode.UNREGISTER_BROKER, b"")):
        broker.write(RemotingCommand.request(code, ext_fields, payload).encode())
    assert [(await broker.read()).code for _ in range(2)] == [ResponseCode.SUCCESS] * 2
    assert namesrv.routes.topics() == []


async def test_the_same_large_registration_again_brings_a_deleted_topic_back(
    namesrv: NamesrvController, broker: Peer
) -> None:
    for _ in range(2):
        assert (await broker.register("10.0.0.1:10911", topics=MANY)).code == ResponseCode.SUCCESS
    await broker.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "Topic7"})
    assert len(namesrv.routes.topics()) == len(MANY) - 1
    await broker.register("10.0.0.1:10911", topics=MANY)
    assert set(namesrv.routes.topics()) == set(MANY)


async def test_a_broker_whose_connection_is_lost_during_a_large_registration_is_gone(
    namesrv: NamesrvController,
) -> None:
    async with connected(namesrv.port) as other:
        async with connected(namesrv.port) as broker:
            ext_fields, body = registration("10.0.0.1:10911", topics=MANY)
            broker.write(RemotingCommand.request(RequestCode.REGISTER_BROKER, ext_fields, body).encode())
        await other.register("10.0.0.2:10911", name="broker-b", topics=("Other", *MANY))
        async with asyncio.timeout(WITHIN_S):
            while list(namesrv.routes.cluster_info().broker_addr_table) != ["broker-b"]:
                await asyncio.sleep(0.01)
        route = namesrv.routes.pickup_topic_route("Topic7")
        assert route is not None
        assert [row.broker_name for row in route.queue_datas] == ["broker-b"]


async def test_brokers_their_topics_and_settings_have_an_end(
    config: NamesrvConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_info, "BROKERS_MAX", 3)
    monkeypatch.setattr(route_info, "ROWS_MAX", 10)
    monkeypatch.setattr(kv_config, "CHARS_MAX", 1000)
    async with NamesrvController(config) as namesrv, connected(namesrv.port) as peer:
        for number in range(5):
            fields, body = registration(f"10.0.0.{number}:1")
            answer = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"brokerName": f"b{number}"}, body)
            assert answer.code == (0 if number < 3 else ResponseCode.SYSTEM_BUSY), answer
        fields, body = registration("10.0.0.1:1")
        assert (await peer.ask(RequestCode.REGISTER_BROKER, fields | {"brokerName": "b1"}, body)).code == 0, "known"
        fields, body = registration("10.0.0.2:1", topics=tuple(f"T{number}" for number in range(12)))
        answer = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"brokerName": "b2"}, body)
        assert (answer.code, "10 topics" in (answer.remark or "")) == (ResponseCode.SYSTEM_BUSY, True)
        fields, body = registration("10.0.0.2:1")
        answer = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"brokerName": "b" * 300}, body)
        assert (answer.code, "brokerName" in (answer.remark or "")) == (ResponseCode.INVALID_PARAMETER, True)
        for number in range(5):
            answer = await peer.ask(
                RequestCode.PUT_KV_CONFIG, {"namespace": "N", "key": f"{number}", "value": "v" * 300}
            )
            assert answer.code == (0 if number < 3 else ResponseCode.INVALID_PARAMETER), answer
        same = {"namespace": "N", "key": "1", "value": "w" * 300}
        assert (await peer.ask(RequestCode.PUT_KV_CONFIG, same)).code == 0, "another value of the same length"
        await peer.ask(RequestCode.DELETE_KV_CONFIG, {"namespace": "N", "key": "0"})
        fields = {"namespace": "N", "key": "9", "value": "v" * 300}
        assert (await peer.ask(RequestCode.PUT_KV_CONFIG, fields)).code == 0
        before = namesrv.routes.row_count
        await peer.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T"})
        assert (before, namesrv.routes.row_count) == (3, 0)
    assert namesrv.routes.row_count == 0
