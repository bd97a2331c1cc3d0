"""What fastjson writes and strict JSON can't say."""

from __future__ import annotations

from typing import Any

import pytest

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import TopicStatsTable
from gantrymq.remoting.bodies import ClusterInfo, HeartbeatData, TopicRouteData

QUEUE = MessageQueue("T", "broker-a", 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":[1,2.5,"x",true,false,null]}', {"a": [1, 2.5, "x", True, False, None]}),
        ('{0:"a",1:"b"}', {"0": "a", "1": "b"}),
        ('{"t":{ 0 : 1 }}', {"t": {"0": 1}}),
        ('{{"brokerName":"broker-a","queueId":3,"topic":"T"}:7}', {QUEUE: 7}),
        ('{{"topic":"T","brokerName":"broker-a","queueId":3}:7}', {QUEUE: 7}),  # Go's order
        ('{a:{"b":1,}}', {"a": {"b": 1}}),
        ('{0:"quote \\" and } brace"}', {"0": 'quote " and } brace'}),
        ('{0:"\\u00e9\\n"}', {"0": "é\n"}),
        ('{0:{"a":"} \\" {","b":1}}', {"0": {"a": '} " {', "b": 1}}),
        ('{0:{"a":1,}}', {"0": {"a": 1}}),
        ('{0:{"a":{"b":[]}}}', {"0": {"a": {"b": []}}}),
    ],
)
def test_the_dialect_is_read(text: str, value: Any) -> None:
    assert fastjson.loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "{0:", "{0:1", "{0:1}x", "{0 1}", "[1 2]x", '{0:"open', "{0:nope}", "{:1}", '{0:{"a":nope}}',
        '{0:{"a" 1}}',
    ],
)  # fmt: skip
def test_what_is_neither_is_a_body_error(text: str) -> None:
    with pytest.raises(BodyError):
        fastjson.loads(text)


def test_hostile_nesting_is_refused_and_not_followed() -> None:
    with pytest.raises(BodyError):
        fastjson.loads("{0:" * 5000)


def test_queue_keys_are_written_compact_and_in_javas_order() -> None:
    assert (
        fastjson.dumps({"offsetTable": {QUEUE: 0}})
        == b'{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:0}}'
    )


def test_a_route_is_read_with_quoted_and_bare_keys_and_written_quoted() -> None:
    text = b'{"brokerDatas":[{"brokerAddrs":{%s:"127.0.0.1:1"},"brokerName":"b","cluster":"c"}],"queueDatas":[]}'
    for key in (b"0", b'"0"'):
        route = TopicRouteData.from_json(text % key)
        assert route.broker_datas[0].master_address == "127.0.0.1:1"
    assert b'"brokerAddrs":{"0":"127.0.0.1:1"}' in route.to_json()


def test_a_real_table_of_queues_is_read() -> None:
    body = (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:'
        b'{"lastUpdateTimestamp":1795228737117,"maxOffset":3,"minOffset":0}}}'
    )
    table = TopicStatsTable.from_json(body)
    assert table.offset_table[QUEUE].max_offset == 3
    assert table.to_json() == body


def test_missing_and_null_fields_get_defaults_and_unknown_ones_are_ignored() -> None:
    heartbeat = HeartbeatData.from_json(
        b'{"clientID":"c","producerDataSet":null,"new":1,"consumerDataSet":[{"groupName":"g",'
        b'"subscriptionDataSet":[{"topic":"T","codeSet":["2598919"],"subVersion":"17"}]}]}'
    )
    subscription = heartbeat.consumer_data_set[0].subscription_data_set[0]
    assert (subscription.code_set, subscription.sub_version, subscription.sub_string) == ([2598919], 17, "*")
    assert heartbeat.producer_data_set == []


@pytest.mark.parametrize("body", [b"[]", b"1", b'{"brokerAddrTable":[]}', b"\xff"])
def test_a_body_of_the_wrong_shape_is_a_body_error(body: bytes) -> None:
    with pytest.raises(BodyError):
        ClusterInfo.from_json(body)
