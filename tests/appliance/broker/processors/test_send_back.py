"""Messages a consumer gives back: later again, or never again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.broker.controller import BrokerController
from gantrymq.message.ids import encode_host
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import encode_properties
from gantrymq.message.record import decode_records
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.command import RemotingCommand
from store.base.results import StoreMessage
from tests.appliance.broker.processors.unopened import LOCAL_HOST, ask, unopened_broker

SEND_BACK = 36
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def put(broker: BrokerController, reconsume_times: int = 0, sys_flag: int = 0, **properties: str) -> int:
    text = encode_properties({"TAGS": "a", "UNIQ_KEY": "u", "WAIT": "true"} | properties).encode()
    born = encode_host("10.1.2.3", 5)
    result = broker.store.put_message(
        StoreMessage("orders", 1, b"body", text, 7, sys_flag, 1234, born, LOCAL_HOST, reconsume_times)
    )
    return result.physical_offset


def give_back(broker: BrokerController, offset: int, *, version: int = 401, **fields: Any) -> RemotingCommand:
    wanted = {"offset": offset, "group": "g", "delayLevel": 0, "originMsgId": "u", "originTopic": "orders"}
    return ask(broker, SEND_BACK, wanted | {"unitMode": "false"} | fields, version=version)


def stored(broker: BrokerController, topic: str, queue_id: int) -> list[MessageExt]:
    found = broker.store.get_message("g", topic, queue_id, 0, 32, None)
    return decode_records(b"".join(found.buffers))


def test_a_failed_message_waits_in_the_schedule_topic_for_its_retry(broker: BrokerController) -> None:
    offset = put(broker)
    assert give_back(broker, offset, maxReconsumeTimes=16).code == 0
    (message,) = stored(broker, SCHEDULE, 2)
    assert message.properties == {
        "TAGS": "a",
        "UNIQ_KEY": "u",
        "WAIT": "false",
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": f"7F00000100002A9F{offset:016X}",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }
    assert (message.body, message.flag, message.reconsume_times) == (b"body", 7, 1)
    assert (message.born_timestamp, message.born_host) == (1234, ("10.1.2.3", 5))
    assert broker.topics.configs["%RETRY%g"].write_queue_nums == 1


def test_a_compressed_body_is_given_back_as_it_was_stored(broker: BrokerController) -> None:
    give_back(broker, put(broker, sys_flag=0x301))
    (message,) = stored(broker, SCHEDULE, 2)
    assert (message.body, message.sys_flag & 0x701) == (b"body", 0x301)


def test_a_message_given_back_counts_where_it_waits(broker: BrokerController) -> None:
    give_back(broker, put(broker))
    give_back(broker, put(broker), delayLevel=-1)
    for name, key, value in (
        ("TOPIC_PUT_NUMS", SCHEDULE, 1),
        ("QUEUE_PUT_NUMS", f"{SCHEDULE}@2", 1),
        ("SNDBCK_PUT_NUMS", "orders@g", 2),
        ("BROKER_PUT_NUMS", "DefaultCluster", 0),
    ):
        item = broker.stats.get(name, key)
        assert item is not None and item.value == value, (name, key)
    assert broker.stats.get("TOPIC_PUT_NUMS", "%DLQ%g") is None


def test_a_retry_topic_of_consumers_in_unit_mode_is_marked(broker: BrokerController) -> None:
    give_back(broker, put(broker), unitMode="true")
    assert broker.topics.configs["%RETRY%g"].topic_sys_flag == 2


def test_each_attempt_waits_a_level_longer_and_remembers_where_it_began(broker: BrokerController) -> None:
    offset = put(broker, 4, RETRY_TOPIC="first", ORIGIN_MESSAGE_ID="F" * 32, DELAY="0", REAL_TOPIC="%RETRY%g")
    give_back(broker, offset)
    (message,) = stored(broker, SCHEDULE, 6)
    assert message.reconsume_times == 5
    assert message.properties["DELAY"] == "7"
    assert message.properties["RETRY_TOPIC"] == "first"
    assert message.properties["ORIGIN_MESSAGE_ID"] == "F" * 32


def test_the_consumer_may_choose_the_delay(broker: BrokerController) -> None:
    give_back(broker, put(broker), delayLevel=9)
    assert len(stored(broker, SCHEDULE, 8)) == 1


@pytest.mark.parametrize(
    ("reconsume_times", "fields", "version"),
    [
        (16, {}, 401),
        (2, {"maxReconsumeTimes": 2}, 401),
        (16, {"maxReconsumeTimes": 99}, 120),  # too old a client to decide
        (0, {"delayLevel": -1}, 401),
    ],
)
def test_after_the_last_attempt_it_is_a_dead_letter(
    broker: BrokerController, reconsume_times: int, fields: dict[str, Any], version: int
) -> None:
    assert give_back(broker, put(broker, reconsume_times), version=version, **fields).code == 0
    (message,) = stored(broker, "%DLQ%g", 0)
    assert message.properties["RETRY_TOPIC"] == "orders"
    assert message.reconsume_times == reconsume_times + 1
    assert "REAL_TOPIC" not in message.properties
    assert broker.topics.configs["%DLQ%g"] == TopicConfig("%DLQ%g", 1, 1, 6)


def test_what_the_consumer_failed_on_is_kept(broker: BrokerController) -> None:
    give_back(broker, put(broker), delayLevel=-1, consumeError='E\x01 at "f.py":1\x02', consumeErrorText="x" * 9000)
    (message,) = stored(broker, "%DLQ%g", 0)
    assert message.properties["CONSUME_ERROR"] == "E at f.py :1"
    assert message.properties["CONSUME_ERROR_TEXT"] == "x" * 500


def test_a_message_whose_properties_are_full_is_given_back_without_it(broker: BrokerController) -> None:
    assert give_back(broker, put(broker, much="x" * 32_400), delayLevel=-1, consumeError="E" * 200).code == 0
    (message,) = stored(broker, "%DLQ%g", 0)
    assert "CONSUME_ERROR" not in message.properties and len(message.properties["much"]) == 32_400


def test_the_groups_own_limit_counts(broker: BrokerController) -> None:
    broker.groups.update(SubscriptionGroupConfig("g", retry_max_times=1))
    give_back(broker, put(broker, 1))
    assert len(stored(broker, "%DLQ%g", 0)) == 1


def test_a_group_without_retry_queues_drops_failed_messages(broker: BrokerController) -> None:
    broker.groups.update(SubscriptionGroupConfig("g", retry_queue_nums=0))
    assert give_back(broker, put(broker)).code == 0
    assert broker.topics.get("%RETRY%g") is None


@pytest.mark.parametrize("offset", [-1, 3, 1 << 40])
def test_an_offset_where_no_message_starts_is_refused(broker: BrokerController, offset: int) -> None:
    put(broker)
    answer = give_back(broker, offset)
    assert answer.code == 1
    assert (answer.remark or "").startswith(f"look message by offset failed, {offset}")


def test_an_unknown_group_is_refused_when_groups_are_not_created_by_use(tmp_path: Path) -> None:
    with unopened_broker(tmp_path, auto_create_subscription_group=False) as broker:
        assert give_back(broker, put(broker)).code == 26


def test_a_broker_or_topic_that_may_not_be_written_refuses(tmp_path: Path) -> None:
    with unopened_broker(tmp_path / "a", permission=4) as broker:
        assert give_back(broker, put(broker)).code == 16
    with unopened_broker(tmp_path / "b") as broker:
        broker.topics.update(TopicConfig("%RETRY%g", 1, 1, 4))
        assert give_back(broker, put(broker)).code == 16
