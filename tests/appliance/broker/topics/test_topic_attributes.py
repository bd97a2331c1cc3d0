"""Attributes of topics: ours, and RocketMQ 5's, which are kept and given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.broker.topics.topic_attributes import merged_attributes, read_attributes
from appliance.errors import BrokerError
from gantrymq import AdminClient
from gantrymq.errors import ResponseError
from gantrymq.message.topic_attributes import ROCKETMQ_5, without_effect
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import RequestCode
from tests.harness import serving


def test_attributes_are_read_as_rocketmq_5_writes_them() -> None:
    assert read_attributes("") == {}
    assert read_attributes("+retention.ms=5,-retention.messages") == {"+retention.ms": "5", "-retention.messages": ""}
    for wrong in ("retention.ms=5", "+retention.ms", "-retention.ms=5", "+=5"):
        with pytest.raises(BrokerError):
            read_attributes(wrong)


def test_attributes_nobody_knows_are_refused_and_those_that_are_there_stay() -> None:
    assert merged_attributes({"message.type": "NORMAL"}, {"+retention.ms": "5"}) == {
        "message.type": "NORMAL",
        "retention.ms": "5",
    }
    assert merged_attributes({"retention.ms": "5"}, {"-retention.ms": ""}) is None
    with pytest.raises(BrokerError, match="known are"):
        merged_attributes(None, {"+colour": "red"})
    with pytest.raises(BrokerError, match="whole number"):
        merged_attributes(None, {"+retention.ms": "-5"})


# a value of each, and one that RocketMQ 5 refuses
VALUES = {
    "message.type": ("FIFO", "fifo"),
    "queue.type": ("BatchCQ", "RocksDBCQ"),
    "cleanup.policy": ("COMPACTION", "NONE"),
    "reserve.time": ("-1", "-2"),
    "lite.topic.expiration": ("43200", "43201"),
}


@pytest.mark.parametrize("name", ROCKETMQ_5)
def test_rocketmq_5s_attributes_take_the_values_that_they_take_there(name: str) -> None:
    right, wrong = VALUES[name]
    assert merged_attributes(None, {f"+{name}": right}) == {name: right}
    for value in (wrong, "", "1.5", "٣", "9" * 30):
        with pytest.raises(BrokerError, match=f"attribute {name}={value}: use "):
            merged_attributes(None, {f"+{name}": value})


def test_what_is_set_with_the_topic_for_good_is_not_changed_later() -> None:
    known = {"queue.type": "SimpleCQ", "message.type": "NORMAL"}
    assert merged_attributes(known, {"+queue.type": "SimpleCQ", "+message.type": "FIFO"}, is_new=False) == {
        "queue.type": "SimpleCQ",
        "message.type": "FIFO",
    }
    for change in ({"+queue.type": "BatchCQ"}, {"-queue.type": ""}, {"+cleanup.policy": "DELETE"}):
        with pytest.raises(BrokerError, match="can't be changed"):
            merged_attributes(known, change, is_new=False)
    assert without_effect({"retention.ms": "5", **known}) == ["queue.type"]


async def test_a_topic_made_and_changed_by_a_5x_tool_keeps_what_that_says_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        address = cluster.broker_address
        fields = {
            "topic": "orders", "defaultTopic": "TBW102", "readQueueNums": "8", "writeQueueNums": "8", "perm": "6",
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
        }  # fmt: skip
        for attributes in ("+message.type=NORMAL,+queue.type=SimpleCQ", "+message.type=NORMAL", "+reserve.time=7"):
            await admin.calls.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"attributes": attributes})
        expected = {"message.type": "NORMAL", "queue.type": "SimpleCQ", "reserve.time": "7"}
        answer = await admin.calls.call(address, RequestCode.GET_TOPIC_CONFIG, {"topic": "orders"})
        assert TopicConfig.from_json(answer.body).attributes == expected
        for refused in ("+message.type=ODD", "+colour=red", "+queue.type=BatchCQ"):
            with pytest.raises(ResponseError) as raised:
                await admin.calls.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"attributes": refused})
            assert raised.value.code == 29
    async with serving(tmp_path) as cluster:
        again = cluster.broker.topics.get("orders")
        assert again is not None and again.attributes == expected
