"""Heartbeats as real clients send them, unregistration, subscription checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.controller import BrokerController
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.appliance.broker.processors.unopened import ask, unopened_broker
from tests.appliance.broker.recording import RecordingConnection

HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG = 34, 35, 46


def beat(client: str = "c1", *groups: str, producers: tuple[str, ...] = (), **consumer: Any) -> bytes:
    consumers = [
        {
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "consumeType": "CONSUME_PASSIVELY",
            "groupName": group,
            "messageModel": "CLUSTERING",
            "subscriptionDataSet": [
                {
                    "classFilterMode": False,
                    "codeSet": [2598919],
                    "expressionType": "TAG",
                    "subString": "TagA",
                    "subVersion": 1795228600736,
                    "tagsSet": ["TagA"],
                    "topic": "T",
                }
            ],
            "unitMode": False,
        }
        | consumer
        for group in groups
    ]
    producer_set = [{"groupName": group} for group in producers]
    return json.dumps(
        {"clientID": client, "consumerDataSet": consumers, "producerDataSet": producer_set}, separators=(",", ":")
    ).encode()


def test_a_heartbeat_registers_consumer_and_producer_and_makes_group_and_retry_topic(broker: BrokerController) -> None:
    connection = RecordingConnection(5000)
    answer = ask(
        broker, HEART_BEAT, body=beat("c1", "g", producers=("p", "CLIENT_INNER_PRODUCER")), connection=connection
    )
    assert (answer.code, answer.version) == (0, 401)
    info = broker.consumers.get("g")
    assert info is not None
    assert info.client_ids() == ["c1"]
    assert info.subscriptions["T"].code_set == [2598919]
    assert "g" in broker.groups.configs
    retry = broker.topics.configs["%RETRY%g"]
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm, retry.topic_sys_flag) == (1, 1, 6, 0)
    assert set(broker.producers.groups) == {"p", "CLIENT_INNER_PRODUCER"}
    described = broker.consumers.channels("g")[0].describe()
    assert described.to_dict() == {"clientAddr": "127.0.0.1:5000", "clientId": "c1", "language": "JAVA", "version": 401}
    broker.consumers.push_notices()
    assert connection.notices() == ["g"], "the newcomer itself is told"


def test_a_go_clients_heartbeat_is_understood(broker: BrokerController) -> None:
    body = (
        b'{"clientID":"c1","consumerDataSet":[{"groupName":"g","subscriptionDataSet":'
        b'[{"topic":"T","subString":"TagA","codeSet":["2598919"],"tagsSet":null,"subVersion":1795228600736000001}]}]}'
    )
    assert ask(broker, HEART_BEAT, body=body, language="GO", version=317).code == 0
    subscription = broker.consumers.find_subscription("g", "T")
    assert subscription is not None
    assert (subscription.code_set, subscription.tags_set) == ([2598919], [])


@pytest.mark.parametrize("body", [b'{"clientID":"c1"}', b'{"clientID":"c1","consumerDataSet":null}'])
def test_a_client_that_is_nothing_yet_may_say_so(broker: BrokerController, body: bytes) -> None:
    assert ask(broker, HEART_BEAT, body=body).code == 0
    assert broker.consumers.groups == {}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"clientID":""}', b'{"clientID":[]}'])
def test_a_heartbeat_without_a_client_is_refused(broker: BrokerController, body: bytes) -> None:
    assert ask(broker, HEART_BEAT, body=body).code == 29


def test_a_heartbeat_that_outlived_its_connection_registers_nobody(broker: BrokerController) -> None:
    connection = RecordingConnection()
    connection.close("gone")
    assert ask(broker, HEART_BEAT, body=beat("c1", "g", producers=("p",)), connection=connection).code == 1
    assert (broker.consumers.groups, broker.producers.groups) == ({}, {})


def test_a_bad_group_name_spoils_that_group_only(broker: BrokerController) -> None:
    answer = ask(broker, HEART_BEAT, body=beat("c1", "bad group", "g", producers=("a@b", "p")))
    assert answer.code == 29
    assert "bad group" in (answer.remark or "")
    assert set(broker.consumers.groups) == {"g"}
    assert set(broker.producers.groups) == {"p"}


def test_unit_mode_marks_the_retry_topic(broker: BrokerController) -> None:
    ask(broker, HEART_BEAT, body=beat("c1", "g", unitMode=True))
    assert broker.topics.configs["%RETRY%g"].topic_sys_flag == 2


@pytest.mark.parametrize("is_notifying", [True, False])
def test_a_groups_own_switch_keeps_notices_from_its_members(broker: BrokerController, is_notifying: bool) -> None:
    broker.groups.update(SubscriptionGroupConfig("g", notify_consumer_ids_changed_enable=is_notifying))
    first, second = RecordingConnection(1), RecordingConnection(2)
    for client_id, connection in (("c1", first), ("c2", second)):
        ask(broker, HEART_BEAT, body=beat(client_id, "g"), connection=connection)
    broker.consumers.push_notices()
    assert first.notices() == second.notices() == (["g"] if is_notifying else [])


def test_without_automatic_creation_the_consumer_is_known_but_has_no_retry_topic(tmp_path: Path) -> None:
    with unopened_broker(tmp_path, auto_create_subscription_group=False) as broker:
        assert ask(broker, HEART_BEAT, body=beat("c1", "g")).code == 0
        assert broker.consumers.get("g") is not None
        assert broker.topics.get("%RETRY%g") is None


def test_unregistering_takes_out_of_the_named_groups_only(broker: BrokerController) -> None:
    one, two = RecordingConnection(1), RecordingConnection(2)
    ask(broker, HEART_BEAT, body=beat("c1", "g", "h", producers=("p",)), connection=one)
    ask(broker, HEART_BEAT, body=beat("c2", "g"), connection=two)
    broker.consumers.push_notices()
    two.pushed.clear()
    answer = ask(
        broker, UNREGISTER_CLIENT, {"clientID": "c1", "producerGroup": "p", "consumerGroup": "g"}, connection=one
    )
    assert answer.code == 0
    broker.consumers.push_notices()
    assert two.notices() == ["g"]
    assert broker.consumers.groups["g"].client_ids() == ["c2"]
    assert broker.consumers.groups["h"].client_ids() == ["c1"]
    assert broker.producers.groups == {}
    assert ask(broker, UNREGISTER_CLIENT, {"clientID": "c1"}, connection=one).code == 0


@pytest.mark.parametrize(
    ("kind", "expression", "is_enabled", "code", "remark"),
    [
        ("TAG", "a || b", False, 0, ""),
        ("SQL92", "a > 1", True, 0, ""),
        ("SQL92", "a >", True, 23, "at character 4"),
        ("SQL92", "", True, 23, "at character 1"),
        ("SQL92", "a > 1", False, 1, "SQL92"),
        ("nonsense", "a > 1", True, 23, "nonsense"),
    ],
)
def test_a_subscription_is_checked_before_a_consumer_starts(
    broker: BrokerController, kind: str, expression: str, is_enabled: bool, code: int, remark: str
) -> None:
    object.__setattr__(broker.config, "enable_property_filter", is_enabled)
    subscription = {"topic": "T", "subString": expression, "expressionType": kind}
    body = json.dumps({"clientId": "c1", "group": "g", "subscriptionData": subscription}).encode()
    answer = ask(broker, CHECK_CLIENT_CONFIG, body=body)
    assert answer.code == code
    assert remark in (answer.remark or "")
