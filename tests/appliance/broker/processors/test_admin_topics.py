"""Topics and queues as tools see and change them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import TopicConfig, TopicConfigSerializeWrapper, TopicStatsTable
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.processors.tool import Tool


async def test_a_created_topic_is_on_disk_and_known_to_the_name_server_when_the_answer_comes(
    tool: Tool, tmp_path: Path
) -> None:
    assert (await tool.create_topic("T", 3)).code == ResponseCode.SUCCESS
    stored = json.loads((tmp_path / "store" / "config" / "topics.json").read_text())
    assert stored["topicConfigTable"]["T"]["writeQueueNums"] == 3
    route = tool.namesrv.routes.pickup_topic_route("T")
    assert route is not None
    assert route.queue_datas[0].read_queue_nums == 3
    answer = await tool.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    table = TopicConfigSerializeWrapper.from_json(answer.body).topic_config_table
    assert table["T"] == TopicConfig("T", 3, 3)
    assert "TBW102" in table


@pytest.mark.parametrize(
    ("topic", "changes", "remark"),
    [
        ("TBW102", {}, "The topic[TBW102] is conflict with system topic."),
        ("a b", {}, "illegal characters"),
        ("../etc", {}, "illegal characters"),
        ("x" * 128, {}, "longer than"),
        ("T", {"topicFilterType": "NO_TAG"}, "topicFilterType = [NO_TAG] value invalid"),
        ("T", {"writeQueueNums": "-1"}, "queues"),
        ("T", {"readQueueNums": "1000000000"}, "queues"),
        ("T", {"perm": "99"}, "perm=99"),
        ("T", {"perm": "six"}, "six"),
    ],
)
async def test_what_can_not_be_a_topic_is_refused(tool: Tool, topic: str, changes: dict[str, str], remark: str) -> None:
    before = dict(tool.broker.topics.configs)
    answer = await tool.create_topic(topic, **changes)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert remark in (answer.remark or "")
    assert tool.broker.topics.configs == before


async def test_a_deleted_topic_takes_queues_offsets_and_counters_with_it(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"x")
    tool.broker.offsets.commit("G", "T", 0, 1)
    assert (await tool.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})).code == ResponseCode.SUCCESS
    assert tool.broker.topics.get("T") is None
    assert "T" not in tool.broker.store.topics()
    assert tool.broker.offsets.query("G", "T", 0) == -1
    assert tool.broker.stats.get("TOPIC_PUT_NUMS", "T") is None
    refused = await tool.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "SELF_TEST_TOPIC"})
    assert refused.remark == "The topic[SELF_TEST_TOPIC] is conflict with system topic."


async def test_order_comes_from_the_name_servers_alone(tool: Tool) -> None:
    await tool.create_topic("T", order="true")
    topics = tool.broker.topics
    assert topics.configs["T"].order is False
    topics.apply_order_topics({"T"})
    await tool.create_topic("T", queues=5, order="false")
    assert (topics.configs["T"].write_queue_nums, topics.configs["T"].order) == (5, True)


async def test_topic_stats_have_raw_object_keys_in_the_order_all_clients_read(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"x", queue_id=1)
    answer = await tool.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"})
    assert answer.body.startswith(
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        b'{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0},'
    )
    extent = TopicStatsTable.from_json(answer.body).offset_table[MessageQueue("T", "broker-a", 1)]
    assert (extent.min_offset, extent.max_offset) == (0, 1)
    assert extent.last_update_timestamp > 0
    unknown = await tool.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "Nope"})
    assert (unknown.code, unknown.remark) == (ResponseCode.TOPIC_NOT_EXIST, "topic[Nope] not exist")


async def test_offsets_and_times_of_a_queue(tool: Tool) -> None:
    await tool.create_topic("T")
    queue = {"topic": "T", "queueId": "0"}
    assert (await tool.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, queue)).ext_fields == {"timestamp": "-1"}
    for body in (b"one", b"two"):
        await tool.send("T", body)
    assert (await tool.ask(RequestCode.GET_MAX_OFFSET, queue)).ext_fields == {"offset": "2"}
    assert (await tool.ask(RequestCode.GET_MIN_OFFSET, queue)).ext_fields == {"offset": "0"}
    assert int((await tool.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, queue)).ext_fields["timestamp"]) > 0
    for timestamp, offset in (("0", "0"), (str(1 << 61), "1")):
        answer = await tool.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue | {"timestamp": timestamp})
        assert answer.ext_fields == {"offset": offset}
    nowhere = {"topic": "Nope", "queueId": "0", "timestamp": "0"}
    for code in (RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP):
        assert (await tool.ask(code, nowhere)).ext_fields == {"offset": "0"}


async def test_units_of_a_consume_queue_with_and_without_a_group(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"x", TAGS="TagA")
    await tool.send("T", b"y")
    queue = {"topic": "T", "queueId": "0", "index": "0", "count": "1"}
    body = fastjson.loads((await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, queue)).body)
    assert (body["minQueueIndex"], body["maxQueueIndex"]) == (0, 2)
    assert [unit["tagsCode"] for unit in body["queueData"]] == [2598919]  # "TagA".hashCode()
    offline = await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, queue | {"consumerGroup": "G"})
    assert fastjson.loads(offline.body)["filterData"] == "G@T is not online!"
    async with tool.consumer("G", "T"):
        online = await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, queue | {"consumerGroup": "G"})
        assert fastjson.loads(online.body)["subscriptionData"]["subString"] == "*"
    beyond = await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, queue | {"index": "999"})
    assert (beyond.code, beyond.remark, beyond.body) == (0, "Index 999 of 0@T is not exist!", b"")
    nowhere = await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, queue | {"queueId": "9"})
    assert (nowhere.code, nowhere.remark) == (1, "9@T is not exist!")


async def test_groups_of_a_topic_are_those_online_and_those_with_offsets(tool: Tool) -> None:
    await tool.create_topic("T")
    tool.broker.offsets.commit("sleeping", "T", 0, 0)
    async with tool.consumer("awake", "T"):
        answer = await tool.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "T"})
    assert answer.body == b'{"groupList":["awake","sleeping"]}'
    answer = await tool.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "Nope"})
    assert answer.body == b'{"groupList":[]}'


async def test_system_topics_include_cluster_broker_and_reply_topic(tool: Tool) -> None:
    answer = await tool.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    topics = fastjson.loads(answer.body)["topicList"]
    assert {"DefaultCluster", "broker-a", "DefaultCluster_REPLY_TOPIC", "SCHEDULE_TOPIC_XXXX"} <= set(topics)


async def test_5x_tools_get_one_topic_and_set_several(tool: Tool) -> None:
    configs = [TopicConfig(name, 1, 1).to_dict() for name in ("A", "B")]
    answer = await tool.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=fastjson.dumps({"topicConfigList": configs}))
    assert answer.code == ResponseCode.SUCCESS
    one = await tool.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "B"})
    assert TopicConfig.from_json(one.body) == TopicConfig("B", 1, 1)
    assert (await tool.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "C"})).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await tool.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=b"{}")).code == ResponseCode.INVALID_PARAMETER


async def test_queues_without_a_topic_are_cleaned_on_demand(tool: Tool) -> None:
    for topic in ("T", "U"):
        await tool.create_topic(topic)
        await tool.send(topic, b"x")
    tool.broker.topics.delete("T")
    assert (await tool.ask(RequestCode.CLEAN_UNUSED_TOPIC)).code == ResponseCode.SUCCESS
    assert tool.broker.store.topics() == {"U"}
