"""Groups as tools see and change them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import (
    ConsumerConnection,
    ProducerConnection,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.peer import connected


async def test_a_group_is_set_listed_and_deleted_with_its_offsets(tool: Tool, tmp_path: Path) -> None:
    body = SubscriptionGroupConfig("G", retry_max_times=5).to_json()
    assert (await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)).code == 0
    stored = json.loads((tmp_path / "store" / "config" / "subscriptionGroup.json").read_text())
    assert stored["subscriptionGroupTable"]["G"]["retryMaxTimes"] == 5
    every = SubscriptionGroupWrapper.from_json((await tool.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)).body)
    assert every.subscription_group_table["G"].retry_max_times == 5
    one = await tool.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
    assert SubscriptionGroupConfig.from_json(one.body).retry_max_times == 5
    tool.broker.offsets.commit("G", "T", 0, 7)
    tool.broker.stats.inc_group_get("G", "T", 1, 1)
    for flag, left in ((None, 7), ("removeOffset", -1)):
        fields = {"groupName": "G"} | ({flag: "true"} if flag else {})
        assert (await tool.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)).code == ResponseCode.SUCCESS
        assert tool.broker.offsets.query("G", "T", 0) == left
        assert tool.broker.stats.get("GROUP_GET_NUMS", "T@G") is None
    gone = await tool.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
    assert gone.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@pytest.mark.parametrize("body", [b"", b"[]", b"not json", b'{"groupName":"a b"}', b'{"groupName":""}'])
async def test_what_can_not_be_a_group_is_refused(tool: Tool, body: bytes) -> None:
    answer = await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert answer.remark
    assert answer.remark != "system error"


async def test_connections_of_consumers_and_producers(tool: Tool) -> None:
    offline = await tool.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"})
    assert (offline.code, offline.remark) == (206, "the consumer group[G] not online")
    async with tool.consumer("G", "T"):
        online = await tool.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "G"})
        body = ConsumerConnection.from_json(online.body)
        assert [(row.client_id, row.language, row.version) for row in body.connection_set] == [
            ("10.0.0.1@c", "JAVA", 401)
        ]
        assert body.subscription_table["T"].sub_string == "*"
        assert body.consume_type == "CONSUME_PASSIVELY"
        producers = await tool.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "PG_tool"})
        assert len(ProducerConnection.from_json(producers.body).connection_set) == 1
        table = fastjson.loads((await tool.ask(RequestCode.GET_ALL_PRODUCER_INFO)).body)["data"]
        assert table["PG_tool"][0]["remoteIP"].startswith("/127.0.0.1:")
        assert table["PG_tool"][0]["lastUpdateTimestamp"] > 1_700_000_000_000
    unknown = await tool.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "PG_none"})
    assert (unknown.code, unknown.remark) == (1, "the producer group[PG_none] not exist")


async def test_5x_tools_ask_for_topics_and_subscription_of_a_group(tool: Tool) -> None:
    tool.broker.offsets.commit("G", "T", 0, 0)
    answer = await tool.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": "G"})
    assert answer.body == b'{"topicList":["T"]}'
    async with tool.consumer("G", "T"):
        answer = await tool.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": "G", "topic": "T"})
        assert fastjson.loads(answer.body)["subscriptionData"]["topic"] == "T"
    body = fastjson.dumps({"groupConfigList": [SubscriptionGroupConfig("A").to_dict()]})
    assert (await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)).code == 0
    assert "A" in tool.broker.groups.configs


async def test_members_that_subscribe_differently_show_in_the_connections_the_status_and_their_heartbeats(
    tmp_path: Path,
) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as one, connected(tool.broker.port) as two:
        fields = {"consumerGroup": "G"}
        agreed = await tool.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, fields)
        assert b"disagreement" not in agreed.body
        other = HeartbeatData("10.0.0.2@c", [], [ConsumerData("G", subscription_data_set=[SubscriptionData("U")])])
        two.write(RemotingCommand.request(RequestCode.HEART_BEAT, body=other.to_json()).encode())
        while (answer := await two.read()).code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            pass
        assert answer.code == 0
        assert "10.0.0.1@c wants T: *" in (answer.remark or "")
        notices = [(await one.read()).ext_fields["consumerGroup"], (await one.read()).ext_fields["consumerGroup"]]
        assert "G" in notices  # rebalance, and ...
        assert any("subscribe differently" in notice for notice in notices)  # ... what a Java client logs
        online = ConsumerConnection.from_json((await tool.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, fields)).body)
        assert online.disagreement is not None
        assert {party.client_ids[0]: party.subscriptions for party in online.disagreement} == {
            "10.0.0.1@c": {"T": "*"},
            "10.0.0.2@c": {"U": "*"},
        }
        status = json.loads((await tool.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).body)["table"]
        assert (status["subscriptionDisagreements"], status["subscriptionDisagreementGroups"]) == ("1", "G")
        await tool.create_topic("T")
        pull = {"consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "1"}
        pull |= {"sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0"}
        refused = await tool.ask(RequestCode.PULL_MESSAGE, pull)
        assert refused.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
        assert "subscribe differently" in (refused.remark or "")
