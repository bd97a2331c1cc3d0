"""Groups as tools see and change them, and requests that are passed on to consumers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gantrymq.message.model import MessageQueue
from gantrymq.message.record import decode_record
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import (
    ConsumerConnection,
    ConsumeStats,
    ProducerConnection,
    ResetOffsetBody,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.peer import Peer

QUEUE_0, QUEUE_1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)
RESET = {"topic": "T", "group": "G", "timestamp": "0", "isForce": "true"}


async def asked(tool: Tool, consumer: Peer, code: int, fields: dict[str, str], answer: bytes) -> RemotingCommand:
    """Ask the broker something it passes on; the consumer answers with `answer` and remark "said so"."""
    request = RemotingCommand.request(code, fields)
    tool.peer.write(request.encode())
    push = await consumer.read()
    consumer.write(push.reply(0, "said so", body=answer).encode())
    response = await tool.peer.read()
    assert response.opaque == request.opaque
    return response


async def test_a_group_is_set_listed_and_deleted_with_its_offsets(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        body = SubscriptionGroupConfig("G", retry_max_times=5).to_json()
        assert (await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)).code == 0
        stored = json.loads((tmp_path / "store" / "config" / "subscriptionGroup.json").read_text())
        assert stored["subscriptionGroupTable"]["G"]["retryMaxTimes"] == 5
        every = SubscriptionGroupWrapper.from_json((await tool.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)).body)
        assert every.subscription_group_table["G"].retry_max_times == 5
        one = await tool.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
        assert SubscriptionGroupConfig.from_json(one.body).retry_max_times == 5
        tool.broker.offsets.commit("G", "T", 0, 7)
        for flag, left in ((None, 7), ("removeOffset", -1)):
            fields = {"groupName": "G"} | ({flag: "true"} if flag else {})
            assert (await tool.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)).code == ResponseCode.SUCCESS
            assert tool.broker.offsets.query("G", "T", 0) == left
        gone = await tool.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "G"})
        assert gone.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@pytest.mark.parametrize("body", [b"", b"[]", b"not json", b'{"groupName":"a b"}', b'{"groupName":""}'])
async def test_what_can_not_be_a_group_is_refused(tmp_path: Path, body: bytes) -> None:
    async with tool_at(tmp_path) as tool:
        answer = await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert answer.remark
        assert answer.remark != "system error"


async def test_connections_of_consumers_and_producers(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
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


async def test_consume_stats_of_a_group_and_of_the_broker(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T")
        for _ in range(3):
            await tool.send("T", b"x")
        await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("G").to_json())
        tool.broker.offsets.commit("G", "T", 0, 2)
        tool.broker.offsets.commit("G", "deleted", 0, 2)
        answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
        table = ConsumeStats.from_json(answer.body).offset_table
        assert set(table) == {QUEUE_0, QUEUE_1}
        assert (table[QUEUE_0].broker_offset, table[QUEUE_0].consumer_offset) == (3, 2)
        assert table[QUEUE_0].last_timestamp > 0
        assert (table[QUEUE_1].broker_offset, table[QUEUE_1].last_timestamp) == (0, 0)
        whole = fastjson.loads((await tool.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})).body)
        assert whole["totalDiff"] == 1
        assert whole["brokerAddr"] == tool.broker.address
        assert len(next(row["G"] for row in whole["consumeStatsList"] if "G" in row)) == 1
        ordered = fastjson.loads((await tool.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "true"})).body)
        assert next(row["G"] for row in ordered["consumeStatsList"] if "G" in row) == []
        nobody = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "nobody"})
        assert nobody.body == b'{"consumeTps":0.0,"offsetTable":{}}'


async def test_a_topic_an_online_group_no_longer_subscribes_to_is_left_out(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        for topic in ("T", "U"):
            await tool.create_topic(topic)
            tool.broker.offsets.commit("G", topic, 0, 0)
        async with tool.consumer("G", "U"):
            answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
            assert {queue.topic for queue in ConsumeStats.from_json(answer.body).offset_table} == {"U"}


async def test_time_spans_tell_how_long_the_next_message_waits(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T", 1)
        for _ in range(2):
            await tool.send("T", b"x")
        tool.broker.offsets.commit("G", "T", 0, 1)
        answer = await tool.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"})
        (span,) = fastjson.loads(answer.body)["consumeTimeSpanSet"]
        assert 0 < span["minTimeStamp"] <= span["consumeTimeStamp"] <= span["maxTimeStamp"]
        assert 0 <= span["delayTime"] < 60_000
        unknown = await tool.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "Nope", "group": "G"})
        assert unknown.code == ResponseCode.TOPIC_NOT_EXIST


async def test_offsets_are_listed_corrected_and_cloned(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T")
        for group, offsets in (("G", (5, 5)), ("slow", (3, 9)), ("ignored", (1, 1))):
            for queue_id, offset in enumerate(offsets):
                tool.broker.offsets.commit(group, "T", queue_id, offset)
        table = fastjson.loads((await tool.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)).body)["offsetTable"]
        assert table["T@slow"] == {"0": 3, "1": 9}
        fields = {"topic": "T", "compareGroup": "G", "filterGroups": "ignored"}
        answer = await tool.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields)
        assert fastjson.loads(answer.body)["correctionOffsets"] == {"0": 3, "1": 5}
        fields = {"topic": "T", "compareGroup": "ignored", "filterGroups": "ignored"}
        answer = await tool.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields)
        assert fastjson.loads(answer.body)["correctionOffsets"] == {"0": (1 << 63) - 1, "1": (1 << 63) - 1}
        assert tool.broker.offsets.query("ignored", "T", 0) == 1  # RocketMQ deletes it here; we don't
        clone = {"srcGroup": "slow", "destGroup": "copy", "topic": "", "offline": "true"}
        assert (await tool.ask(RequestCode.CLONE_GROUP_OFFSET, clone)).code == ResponseCode.SUCCESS
        assert tool.broker.offsets.offsets("T", "copy") == {0: 3, 1: 9}


async def test_a_reset_is_pushed_to_every_consumer_in_the_form_all_clients_read(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T")
        for queue_id in (0, 1):
            await tool.send("T", b"x", queue_id=queue_id)
            tool.broker.offsets.commit("G", "T", queue_id, 1)
        async with tool.consumer("G", "T") as consumer:
            answer = await tool.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
            push = await consumer.read()
            assert push.is_oneway
            assert push.ext_fields == RESET | {"isForce": "false"}
            expected = (
                b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:0,'
                b'{"brokerName":"broker-a","queueId":1,"topic":"T"}:0}}'
            )
            assert answer.body == push.body == expected
            request = RemotingCommand.request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
            request.language = "CPP"
            tool.peer.write(request.encode())
            assert b'"offsetTable":[{"brokerName":"broker-a","offset":0' in (await consumer.read()).body
            assert (await tool.peer.read()).body == expected
            end = await tool.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET | {"timestamp": "-1"})
            assert set(ResetOffsetBody.from_json(end.body).offset_table.values()) == {1}
        assert tool.broker.offsets.query("G", "T", 0) == 1  # consumers commit, not the broker


async def test_without_force_a_reset_never_goes_forward(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T", 1)
        for _ in range(3):
            await tool.send("T", b"x")
        tool.broker.offsets.commit("G", "T", 0, 1)
        async with tool.consumer("G", "T"):
            fields = RESET | {"timestamp": "-1", "isForce": "false"}
            answer = await tool.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)
            assert ResetOffsetBody.from_json(answer.body).offset_table == {QUEUE_0: 1}


async def test_a_reset_that_can_not_be_is_refused_as_tools_expect(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
        unknown = await tool.ask(code, RESET)
        assert (unknown.code, unknown.remark) == (
            1,
            "[reset-offset] reset offset failed, no topic in this broker. topic=T",
        )
        await tool.create_topic("T", 1)
        never = await tool.ask(code, RESET)
        assert (never.code, never.remark) == (1, "THe consumer group <G> not exist")
        tool.broker.offsets.commit("G", "T", 0, 0)
        offline = await tool.ask(code, RESET)
        assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
        async with tool.consumer("G", "T", version=20):
            assert (await tool.ask(code, RESET)).code == ResponseCode.SYSTEM_ERROR


async def test_the_offsets_consumers_hold_are_gathered(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        held = b'{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}'
        fields = {"topic": "T", "group": "G", "clientAddr": ""}
        answer = await asked(tool, consumer, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields, held)
        assert answer.body == (
            b'{"consumerTable":{"10.0.0.1@c":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}},'
            b'"messageQueueTable":{}}'
        )
        nobody = await tool.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields | {"group": "none"})
        assert nobody.code == ResponseCode.SYSTEM_ERROR


async def test_a_consumers_own_words_are_relayed_unread(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c", "jstackEnable": "false"}
        odd = b'{"mqTable":{{"topic":"T"}:{}}, "jstack":"x"}'
        answer = await asked(tool, consumer, RequestCode.GET_CONSUMER_RUNNING_INFO, fields, odd)
        assert (answer.code, answer.remark, answer.body) == (0, "said so", odd)


async def test_a_stored_message_is_consumed_directly(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        await tool.create_topic("T")
        sent = await tool.send("T", b"again")
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c", "msgId": sent.ext_fields["msgId"]}
        request = RemotingCommand.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)
        tool.peer.write(request.encode())
        push = await consumer.read()
        assert push.ext_fields == fields | {"brokerName": "broker-a"}
        assert decode_record(push.body).body == b"again"
        consumer.write(push.reply(body=b'{"consumeResult":"CR_SUCCESS"}').encode())
        assert (await tool.peer.read()).body == b'{"consumeResult":"CR_SUCCESS"}'


async def test_a_relay_without_a_fit_consumer_fails_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.processors.admin_groups.RELAY_TIMEOUT_S", 0.05)
    async with tool_at(tmp_path) as tool:
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c"}
        offline = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        assert (offline.code, offline.remark) == (1, "The Consumer <G> <10.0.0.1@c> not online")
        async with tool.consumer("G", "T", version=60):
            old = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
            assert "too low to finish" in (old.remark or "")
        async with tool.consumer("G", "T"):
            silent = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
            assert silent.code == ResponseCode.CONSUME_MSG_TIMEOUT
        for message_id in ("", "xyz", "7F00000100006D090000000000FFFFFF"):
            bad = await tool.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields | {"msgId": message_id})
            assert bad.code == ResponseCode.SYSTEM_ERROR
            assert bad.remark != "system error"


async def test_5x_tools_ask_for_topics_and_subscription_of_a_group(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        tool.broker.offsets.commit("G", "T", 0, 0)
        answer = await tool.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, {"group": "G"})
        assert answer.body == b'{"topicList":["T"]}'
        async with tool.consumer("G", "T"):
            answer = await tool.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, {"group": "G", "topic": "T"})
            assert fastjson.loads(answer.body)["subscriptionData"]["topic"] == "T"
        body = fastjson.dumps({"groupConfigList": [SubscriptionGroupConfig("A").to_dict()]})
        assert (await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)).code == 0
        assert "A" in tool.broker.groups.configs
