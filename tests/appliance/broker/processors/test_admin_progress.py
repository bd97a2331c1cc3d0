"""How far groups have come, as tools read it: in messages, in time, a second."""

from __future__ import annotations

import time

import pytest

from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import ConsumeStats, SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.processors.tool import Tool
from tests.waiting import until

QUEUE_0, QUEUE_1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


async def test_consume_stats_of_a_group_and_of_the_broker(tool: Tool) -> None:
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


async def test_the_last_time_of_a_group_is_that_of_the_last_message_it_consumed(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tool.create_topic("T", 1)
    for _ in range(3):
        await tool.send("T", b"x")
    tool.broker.offsets.commit("G", "T", 0, 2)
    monkeypatch.setattr(tool.broker.store_times, "at", lambda topic, queue_id, offset: 1000 + offset)
    answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", "topic": "T"})
    assert ConsumeStats.from_json(answer.body).offset_table[QUEUE_0].last_timestamp == 1001


async def test_a_groups_pace_is_that_of_the_last_minute_in_all_its_topics(tool: Tool) -> None:
    await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("G").to_json())
    for topic, count in (("T", 50), ("U", 30)):
        await tool.create_topic(topic, 1)
        tool.broker.offsets.commit("G", topic, 0, 0)
        tool.broker.stats.inc_group_get("G", topic, count, 1)
    tool.broker.stats.sample(time.time())  # a young item is dated back ten seconds

    async def pace(**fields: str) -> float:
        answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"} | fields)
        return ConsumeStats.from_json(answer.body).consume_tps

    one, both = await pace(topic="T"), await pace()
    assert 0 < one <= 5 and one < both <= 8
    whole = fastjson.loads((await tool.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})).body)
    rows = next(row["G"] for row in whole["consumeStatsList"] if "G" in row)
    assert all(0 < row["consumeTps"] <= 5 for row in rows) and len(rows) == 2


async def test_a_topic_an_online_group_no_longer_subscribes_to_is_left_out(tool: Tool) -> None:
    for topic in ("T", "U"):
        await tool.create_topic(topic)
        tool.broker.offsets.commit("G", topic, 0, 0)
    async with tool.consumer("G", "U"):
        answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
        assert {queue.topic for queue in ConsumeStats.from_json(answer.body).offset_table} == {"U"}


async def test_time_spans_tell_how_long_the_next_message_waits(tool: Tool) -> None:
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


async def test_lag_in_time_is_the_age_of_the_oldest_unconsumed_message(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"consumed")
    first_ms = tool.broker.store.store_timestamp("T", 0, 0)
    await until(lambda: time.time() * 1000 > first_ms + 2)  # the second message is stored later than the first
    await tool.send("T", b"waits")
    tool.broker.offsets.commit("G", "T", 0, 1)
    stored_ms = tool.broker.store.store_timestamp("T", 0, 1)
    before_ms = int(time.time() * 1000)
    answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", "topic": "T"})
    stats = ConsumeStats.from_json(answer.body)
    after_ms = int(time.time() * 1000)
    assert before_ms - stored_ms <= stats.offset_table[QUEUE_0].lag_ms <= after_ms - stored_ms
    assert stats.offset_table[QUEUE_1].lag_ms == 0
    assert stats.lag_ms == stats.offset_table[QUEUE_0].lag_ms
    tool.broker.offsets.commit("G", "T", 0, 2)
    answer = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", "topic": "T"})
    assert ConsumeStats.from_json(answer.body).lag_ms == 0


async def test_317_counts_write_queues_and_208_read_queues(tool: Tool) -> None:
    await tool.create_topic("T", 1, readQueueNums="3")
    await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("G").to_json())
    tool.broker.offsets.commit("G", "T", 0, 0)
    one = await tool.ask(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"})
    assert len(ConsumeStats.from_json(one.body).offset_table) == 3
    every = fastjson.loads((await tool.ask(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"})).body)
    (stats,) = next(row["G"] for row in every["consumeStatsList"] if "G" in row)
    assert len(stats["offsetTable"]) == 1


async def test_5x_tools_ask_for_several_topics_at_once(tool: Tool) -> None:
    for topic in ("T", "U", "V"):
        await tool.create_topic(topic, 1)
        tool.broker.offsets.commit("G", topic, 0, 0)
    fields = {"consumerGroup": "G", "topic": "V", "topicList": "T;U;T;nope;"}
    answer = await tool.ask(RequestCode.GET_CONSUME_STATS, fields)
    assert {queue.topic for queue in ConsumeStats.from_json(answer.body).offset_table} == {"T", "U"}
