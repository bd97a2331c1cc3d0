"""Offsets as operators read, correct, clone and reset them."""

from __future__ import annotations

import pytest

from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import ResetOffsetBody
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool

QUEUE_0 = MessageQueue("T", "broker-a", 0)
RESET = {"topic": "T", "group": "G", "timestamp": "0", "isForce": "true"}


async def test_offsets_are_listed_corrected_and_cloned(tool: Tool) -> None:
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


async def test_offsets_of_messages_that_are_deleted_correct_nothing(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tool.create_topic("T")
    for group, offset in (("G", 9), ("gone", 3), ("slow", 5)):
        tool.broker.offsets.commit(group, "T", 0, offset)
    monkeypatch.setattr(tool.broker.store, "min_offset", lambda topic, queue_id: 5)
    answer = await tool.ask(RequestCode.QUERY_CORRECTION_OFFSET, {"topic": "T", "compareGroup": "G"})
    assert fastjson.loads(answer.body)["correctionOffsets"] == {"0": 5}


async def test_a_reset_is_about_the_queues_that_are_written(tool: Tool) -> None:
    await tool.create_topic("T", readQueueNums="3", writeQueueNums="1")
    tool.broker.offsets.commit("G", "T", 0, 0)
    async with tool.consumer("G", "T"):
        answer = await tool.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET)
        assert set(ResetOffsetBody.from_json(answer.body).offset_table) == {QUEUE_0}


async def test_a_reset_is_pushed_to_every_consumer_in_the_form_all_clients_read(tool: Tool) -> None:
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


async def test_without_force_a_reset_never_goes_forward(tool: Tool) -> None:
    await tool.create_topic("T", 1)
    for _ in range(3):
        await tool.send("T", b"x")
    tool.broker.offsets.commit("G", "T", 0, 1)
    async with tool.consumer("G", "T"):
        fields = RESET | {"timestamp": "-1", "isForce": "false"}
        answer = await tool.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)
        assert ResetOffsetBody.from_json(answer.body).offset_table == {QUEUE_0: 1}


async def test_a_reset_that_can_not_be_is_refused_as_tools_expect(tool: Tool) -> None:
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    unknown = await tool.ask(code, RESET)
    assert (unknown.code, unknown.remark) == (1, "[reset-offset] reset offset failed, no topic in this broker. topic=T")
    await tool.create_topic("T", 1)
    never = await tool.ask(code, RESET)
    assert (never.code, never.remark) == (1, "THe consumer group <G> not exist")
    tool.broker.offsets.commit("G", "T", 0, 0)
    offline = await tool.ask(code, RESET)
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    async with tool.consumer("G", "T", version=20):
        assert (await tool.ask(code, RESET)).code == ResponseCode.SYSTEM_ERROR


async def test_a_clone_leaves_out_what_an_online_source_no_longer_subscribes_to(tool: Tool) -> None:
    for topic in ("T", "U"):
        await tool.create_topic(topic)
        tool.broker.offsets.commit("G", topic, 0, 3)
    async with tool.consumer("G", "U"):
        clone = {"srcGroup": "G", "destGroup": "copy", "offline": "false"}
        assert (await tool.ask(RequestCode.CLONE_GROUP_OFFSET, clone)).code == ResponseCode.SUCCESS
        assert tool.broker.offsets.topics_of("copy") == {"U"}
        await tool.ask(RequestCode.CLONE_GROUP_OFFSET, clone | {"offline": "true"})
        assert tool.broker.offsets.topics_of("copy") == {"T", "U"}


async def test_5x_tools_reset_one_queue_to_an_exact_offset(tool: Tool) -> None:
    await tool.create_topic("T")
    for _ in range(3):
        await tool.send("T", b"x")
    for queue_id in (0, 1):
        tool.broker.offsets.commit("G", "T", queue_id, 0)
    code, exact = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET | {"queueId": "0", "offset": "2"}
    async with tool.consumer("G", "T") as consumer:
        answer = await tool.ask(code, exact)
        assert ResetOffsetBody.from_json(answer.body).offset_table == {QUEUE_0: 2}
        assert (await consumer.read()).body == answer.body
        for wrong in ({"offset": "4"}, {"queueId": "7"}, {"queueId": "x"}):
            refused = await tool.ask(code, exact | wrong)
            assert refused.code == ResponseCode.INVALID_PARAMETER
            assert next(iter(wrong.values())) in (refused.remark or "")
        both = await tool.ask(code, RESET | {"queueId": "-1", "offset": "-1"})  # what they send by default
        assert len(ResetOffsetBody.from_json(both.body).offset_table) == 2
