"""Offsets and lists of consumers, as clients ask for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from appliance.broker.controller import BrokerController
from appliance.broker.delivery import hot_data
from gantrymq.remoting.bodies import ConsumerData
from store.base.results import StoreMessage
from tests.appliance.broker.processors.unopened import LOCAL_HOST, ask
from tests.appliance.broker.recording import RecordingConnection

QUERY, UPDATE, LIST = 14, 15, 38
PLACE = {"consumerGroup": "g", "topic": "t", "queueId": 0}


def put(broker: BrokerController, count: int = 1) -> None:
    for _ in range(count):
        broker.store.put_message(StoreMessage("t", 0, b"m", b"", 0, 0, 0, LOCAL_HOST, LOCAL_HOST))


def test_an_offset_that_may_only_go_forward_never_writes_over_a_larger_one(broker: BrokerController) -> None:
    forward = {"onlyForward": "true"}
    for offset, there, told in ((5, "5", None), (3, "5", "5"), (5, "5", None), (8, "8", None)):
        answer = ask(broker, UPDATE, PLACE | forward | {"commitOffset": offset})
        assert (answer.code, answer.ext_fields.get("offset")) == (0, told)
        assert ask(broker, QUERY, PLACE).ext_fields == {"offset": there}


@pytest.mark.parametrize("messages", [0, 3])
def test_a_new_group_begins_at_the_start_of_a_young_queue(broker: BrokerController, messages: int) -> None:
    put(broker, messages)
    answer = ask(broker, QUERY, PLACE)
    assert (answer.code, answer.ext_fields) == (0, {"offset": "0"})


def test_a_new_group_decides_itself_when_the_queues_start_is_out_of_memorys_reach(
    broker: BrokerController, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker, 3)
    monkeypatch.setattr(hot_data, "hot_bytes", lambda config: 40)
    assert ask(broker, QUERY, PLACE).code == 22
    assert ask(broker, UPDATE, PLACE | {"commitOffset": 0}).code == 0
    assert ask(broker, QUERY, PLACE).ext_fields == {"offset": "0"}


def test_a_new_group_decides_itself_when_the_queues_start_was_deleted(
    broker: BrokerController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.store, "min_offset", lambda topic, queue_id: 5)
    assert ask(broker, QUERY, PLACE).code == 22


@pytest.mark.parametrize(
    "fields",
    [
        {"commitOffset": 1 << 63},
        {"commitOffset": -2},
        {"queueId": -1, "commitOffset": 1},
        {"queueId": 1 << 31, "commitOffset": 1},
        {"topic": "a b", "commitOffset": 1},
        {"consumerGroup": "a@b", "commitOffset": 1},
    ],
)
def test_what_would_spoil_the_table_is_refused(broker: BrokerController, fields: dict[str, Any]) -> None:
    assert ask(broker, UPDATE, PLACE | fields).code == 29
    assert broker.offsets.table == {}


def test_the_members_of_a_group_are_listed(broker: BrokerController) -> None:
    answer = ask(broker, LIST, {"consumerGroup": "g"})
    assert (answer.code, answer.remark) == (1, "no consumer for this group, g")
    for number in (1, 2):
        connection: Any = RecordingConnection(number)
        broker.consumers.register(ConsumerData("g"), connection, f"c{number}", "JAVA", 401)
    answer = ask(broker, LIST, {"consumerGroup": "g"})
    assert answer.code == 0
    assert json.loads(answer.body) == {"consumerIdList": ["c1", "c2"]}
