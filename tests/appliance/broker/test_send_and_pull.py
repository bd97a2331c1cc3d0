"""processors/send.py and processors/pull.py: requests over a real socket to a real broker, answers as RocketMQ's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.broker.processors.send import without_wait
from gantrymq.message import sysflag
from gantrymq.message.batch import encode_batch
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import Message
from gantrymq.message.record import decode_records
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.caller import GROUP, Caller, calling


@pytest.mark.parametrize("serialize_type", [0, 1])
async def test_a_sent_message_is_pulled_as_it_was_sent(caller: Caller, serialize_type: int) -> None:
    answer = await caller.send(
        "orders", b"hello", "KEYS\x01k\x02WAIT\x01true\x02TAGS\x01TagA", serialize_type=serialize_type, h="7"
    )
    assert answer.code == 0
    fields = answer.ext_fields
    assert (fields["queueId"], fields["queueOffset"], fields["TRACE_ON"]) == ("0", "0", "true")
    (message,) = await caller.read("orders")
    assert (message.body, message.flag, message.queue_offset) == (b"hello", 7, 0)
    assert message.properties == {"KEYS": "k", "TAGS": "TagA", "CLUSTER": "DefaultCluster"}
    host, port, physical_offset = decode_offset_message_id(fields["msgId"])
    assert (host, port) == ("127.0.0.1", caller.cluster.broker.port)
    assert physical_offset == message.physical_offset


async def test_the_long_field_names_of_10_mean_the_same(caller: Caller) -> None:
    fields = {
        "producerGroup": "producers",
        "topic": "orders",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "2",
        "queueId": "1",
        "sysFlag": "0",
        "bornTimestamp": "5",
        "flag": "0",
        "properties": "TAGS\x01t",
    }
    answer = await caller.ask(RemotingCommand.request(RequestCode.SEND_MESSAGE, fields, b"x"))
    assert (answer.code, answer.ext_fields["queueId"]) == (0, "1")
    config = caller.cluster.broker.topics.get("orders")
    assert config is not None and config.write_queue_nums == 2


async def test_numbers_and_booleans_instead_of_texts_are_understood(caller: Caller) -> None:
    """ali-ons writes its ext fields so."""
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.cluster.broker.port)
    header = (
        b'{"code":310,"language":"JAVA","version":121,"opaque":7,"flag":0,"extFields":{"a":"p","b":"orders",'
        b'"c":"TBW102","d":4,"e":2,"f":0,"g":5,"h":0,"i":"TAGS\\u0001t","j":0,"k":false,"m":false}}'
    )
    frame = len(header).to_bytes(4) + header + b"body"
    writer.write(len(frame).to_bytes(4) + frame)
    size = int.from_bytes(await reader.readexactly(4))
    answer = RemotingCommand.decode(await reader.readexactly(size))
    writer.close()
    assert (answer.code, answer.opaque, answer.ext_fields["queueId"]) == (0, 7, "2")


async def test_a_batch_becomes_messages_with_consecutive_offsets(caller: Caller) -> None:
    body = encode_batch([Message("orders", b"%d" % n, tags="t") for n in range(5)])
    answer = await caller.send("orders", body, "WAIT\x01true", m="true")
    assert (answer.code, answer.ext_fields["queueOffset"]) == (0, "0")
    messages = await caller.read("orders")
    assert [message.body for message in messages] == [b"0", b"1", b"2", b"3", b"4"]
    assert answer.ext_fields["msgId"].split(",") == [message.offset_msg_id for message in messages]


async def test_a_batch_that_is_none_is_refused_and_nothing_is_stored(caller: Caller) -> None:
    answer = await caller.send("orders", b"no batch at all", m="true")
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert caller.cluster.broker.store.max_offset("orders", 0) == 0


@pytest.mark.parametrize(
    ("topic", "changes", "code"),
    [
        ("SCHEDULE_TOPIC_XXXX", {}, ResponseCode.NO_PERMISSION),
        ("../../etc/passwd", {}, ResponseCode.MESSAGE_ILLEGAL),
        ("with space", {}, ResponseCode.MESSAGE_ILLEGAL),
        ("orders", {"e": "99"}, ResponseCode.SYSTEM_ERROR),
        ("orders", {"e": "many"}, ResponseCode.INVALID_PARAMETER),
        ("unknown", {"c": "no_template"}, ResponseCode.TOPIC_NOT_EXIST),
        ("orders", {"i": "TRAN_MSG\x01true"}, ResponseCode.MESSAGE_ILLEGAL),
        ("orders", {"i": "big\x01" + "x" * 40_000}, ResponseCode.MESSAGE_ILLEGAL),
    ],
)
async def test_what_can_not_be_stored_is_refused_with_rocketmqs_code(
    caller: Caller, topic: str, changes: dict[str, str], code: ResponseCode
) -> None:
    answer = await caller.send(topic, b"x", **changes)
    assert answer.code == code
    assert answer.remark


async def test_what_is_too_long_is_told_the_limits(tmp_path: Path) -> None:
    async with calling(tmp_path, store={"message_bytes_max": 1000}) as caller:
        too_long = "properties length not matched. msg body length limit 1000B, msg properties length limit 32KB."
        properties = "big\x01" + "x" * 40_000
        batch = encode_batch([Message("orders", b"x")])
        for body, changes in ((b"x" * 1001, {}), (b"x", {"i": properties}), (batch, {"i": properties, "m": "true"})):
            answer = await caller.send("orders", body, **changes)
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert (answer.remark or "").endswith(too_long), answer.remark
        assert (await caller.send("orders", b"x" * 1000)).code == 0


@pytest.mark.parametrize(("queue_id", "code"), [("-1", 1), ("0", 1), ("2", 0)])
async def test_a_topic_without_write_queues_has_none_to_choose_from(caller: Caller, queue_id: str, code: int) -> None:
    config = TopicConfig("orders", 3 if code == 0 else 0, 0)
    caller.cluster.broker.topics.update(config)
    for batch in (False, True):
        body = encode_batch([Message("orders", b"x")]) if batch else b"x"
        answer = await caller.send("orders", body, e=queue_id, m=str(batch).lower())
        assert answer.code == code
        expected = f"request queueId[{queue_id}] is illegal, topic[orders] has 0 queues to write and 0 to read, "
        assert code == 0 or (answer.remark or "").startswith(expected), answer.remark


async def test_messages_of_a_topic_with_several_tags_a_message_are_marked(caller: Caller) -> None:
    topics = caller.cluster.broker.topics
    topics.update(TopicConfig("orders", 1, 1, topic_filter_type="MULTI_TAG"))
    await caller.send("orders", b"one", "TAGS\x01a", f="1")
    await caller.send("orders", encode_batch([Message("orders", b"batch")]), m="true")
    assert [message.sys_flag for message in await caller.read("orders")] == [sysflag.COMPRESSED | 2, 2]
    topics.update(TopicConfig("orders", 1, 1))
    await caller.send("orders", b"plain again")
    assert [message.sys_flag for message in await caller.read("orders")][2:] == [0]


@pytest.mark.parametrize(("topic", "sys_flag"), [("orders", 1), ("%RETRY%readers", 2)])
async def test_a_topic_that_a_client_in_unit_mode_brings_into_being_is_marked(
    caller: Caller, topic: str, sys_flag: int
) -> None:
    configs = caller.cluster.broker.topics.configs
    await caller.send(topic, b"x", k="true")
    assert configs[topic].topic_sys_flag == sys_flag
    await caller.send(topic + "-2", b"x", k="false")
    assert configs[topic + "-2"].topic_sys_flag == 0


async def test_an_ordered_topic_takes_no_more_on_a_broker_that_may_not_be_written(caller: Caller) -> None:
    broker = caller.cluster.broker
    for topic in ("ordered", "free"):
        broker.topics.update(TopicConfig(topic, 2, 2))
    broker.topics.apply_order_topics({"ordered"})

    async def codes() -> list[int]:
        batch = encode_batch([Message("ordered", b"x")])
        answers = [
            await caller.send("ordered", b"x"),
            await caller.send("ordered", batch, m="true"),
            await caller.send("free", b"x"),
        ]
        for answer in answers:
            assert answer.code == 0 or answer.remark == "the broker[127.0.0.1] sending message is forbidden"
        return [answer.code for answer in answers]

    async def permit(permission: int) -> None:
        text = f"brokerPermission={permission}".encode()
        assert (await caller.ask(RemotingCommand.request(RequestCode.UPDATE_BROKER_CONFIG, body=text))).code == 0

    assert await codes() == [0, 0, 0]
    await permit(4)
    assert await codes() == [16, 16, 0]  # what is on its way to other topics is taken
    await permit(6)
    assert await codes() == [0, 0, 0]


async def test_sync_flush_answers_after_the_disk_has_it(tmp_path: Path) -> None:
    async with calling(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as caller:
        answers = await asyncio.gather(*(caller.send("orders", b"x") for _ in range(20)))
        assert {answer.code for answer in answers} == {0}
        store = caller.cluster.broker.store
        assert store.flushed_offset == store.max_physical_offset


# -- pull -------------------------------------------------------------------------------------------------------------


async def test_a_waiting_pull_is_answered_when_its_message_comes(caller: Caller) -> None:
    await caller.send("orders", b"first", "TAGS\x01a")
    waiting = asyncio.create_task(caller.pull("orders", 1, sysFlag="6", subscription="b"))
    await caller.until_held()
    await caller.send("orders", b"other tag", "TAGS\x01a")
    async with asyncio.timeout(30):
        while caller.cluster.broker.store.dispatch_behind_bytes:
            await asyncio.sleep(0.005)
    assert caller.cluster.broker.hold.held_count == 1
    await caller.send("orders", b"mine", "TAGS\x01b")
    answer = await waiting
    assert [message.body for message in decode_records(answer.body)] == [b"mine"]
    assert answer.ext_fields["nextBeginOffset"] == "3"


async def test_a_pull_commits_its_offset_when_it_comes_and_not_again_when_it_is_woken(caller: Caller) -> None:
    await caller.send("orders", b"first")
    offsets = caller.cluster.broker.offsets
    waiting = asyncio.create_task(caller.pull("orders", 1, sysFlag="7", commitOffset="1"))
    await caller.until_held()
    assert offsets.query(GROUP, "orders", 0) == 1
    offsets.commit(GROUP, "orders", 0, 0)  # somebody rewinds the group meanwhile
    await caller.send("orders", b"second")
    assert (await waiting).code == 0
    assert offsets.query(GROUP, "orders", 0) == 0


@pytest.mark.parametrize(("enabled", "memory_percent", "suggested"), [(True, 0, "3"), (True, 40, "2"), (False, 0, "0")])
async def test_a_group_that_reads_what_is_old_is_sent_to_a_slave(
    tmp_path: Path, enabled: bool, memory_percent: int, suggested: str
) -> None:
    store = {"in_memory_ratio_max": memory_percent}
    async with calling(tmp_path, broker={"slave_read_enable": enabled}, store=store) as caller:
        groups = caller.cluster.broker.groups
        groups.update(SubscriptionGroupConfig(GROUP, broker_id=2, which_broker_when_consume_slowly=3))
        await caller.send("orders", b"old")
        answer = await caller.pull("orders")
        assert answer.ext_fields["suggestWhichBrokerId"] == suggested
        empty = await caller.pull("orders", 1, sysFlag="4")
        assert empty.ext_fields["suggestWhichBrokerId"] == ("2" if enabled else "0")
        unwanted = await caller.pull("orders", subscription="other")
        assert unwanted.ext_fields["suggestWhichBrokerId"] == ("2" if enabled else "0"), "nothing old was sent"


async def test_a_pull_whose_time_is_up_says_that_there_is_nothing(caller: Caller) -> None:
    await caller.send("orders", b"x")
    answer = await caller.pull("orders", 1, sysFlag="6", suspendTimeoutMillis="10")
    assert (answer.code, answer.remark) == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE")
    assert answer.ext_fields["nextBeginOffset"] == "1"


@pytest.mark.parametrize(
    ("offset", "changes", "code", "next_offset"),
    [
        (0, {}, 0, "3"),
        (3, {}, ResponseCode.PULL_NOT_FOUND, "3"),
        (9, {}, ResponseCode.PULL_OFFSET_MOVED, "3"),
        (-1, {}, ResponseCode.PULL_OFFSET_MOVED, "0"),
        (0, {"queueId": "1"}, ResponseCode.PULL_NOT_FOUND, "0"),
        (5, {"queueId": "1"}, ResponseCode.PULL_OFFSET_MOVED, "0"),
        (0, {"subscription": "none"}, ResponseCode.PULL_RETRY_IMMEDIATELY, "3"),
    ],
)
async def test_each_offset_gets_its_code_and_the_next_one_to_ask_for(
    caller: Caller, offset: int, changes: dict[str, str], code: int, next_offset: str
) -> None:
    for _ in range(3):
        await caller.send("orders", b"x", "TAGS\x01a")
    answer = await caller.pull("orders", offset, **changes)
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (code, next_offset)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "unknown"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": "99"}, ResponseCode.SYSTEM_ERROR),
        ({"sysFlag": "0"}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ({"expressionType": "SQL92", "subscription": "a >"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ({"expressionType": "SQL93", "subscription": "a > 1"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    ],
)
async def test_a_pull_that_is_not_allowed_says_why(caller: Caller, changes: dict[str, str], code: int) -> None:
    await caller.send("orders", b"x")
    answer = await caller.pull(**({"topic": "orders"} | changes))
    assert answer.code == code
    assert answer.remark


async def test_the_heartbeats_subscription_filters_and_the_pull_commits_its_offset(caller: Caller) -> None:
    await caller.send("orders", b"a", "TAGS\x01a")
    await caller.send("orders", b"b", "TAGS\x01b")
    consumer = ConsumerData(GROUP, subscription_data_set=[SubscriptionData("orders", "b", sub_version=5)])
    heartbeat = HeartbeatData("me", consumer_data_set=[consumer]).to_json()
    assert (await caller.ask(RemotingCommand.request(RequestCode.HEART_BEAT, None, heartbeat))).code == 0
    answer = await caller.pull("orders", sysFlag="1", commitOffset="1", subVersion="5")
    assert [message.body for message in decode_records(answer.body)] == [b"b"]
    assert caller.cluster.broker.offsets.query(GROUP, "orders", 0) == 1
    stale = await caller.pull("orders", sysFlag="0", subVersion="6")
    assert stale.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


# -- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoded", "rest", "is_waiting"),
    [
        (b"A\x01b\x02WAIT\x01true\x02C\x01d", b"A\x01b\x02C\x01d", True),
        (b"A\x01b\x02WAIT\x01true", b"A\x01b", True),
        (b"WAIT\x01true\x02A\x01b", b"A\x01b", True),
        (b"WAIT\x01false", b"", False),
        (b"A\x01b\x02WAIT\x01FALSE\x02", b"A\x01b\x02", False),
        (b"A\x01xWAIT\x01true", b"A\x01xWAIT\x01true", True),
        (b"A\x01b", b"A\x01b", True),
        (b"DELAY\x013\x02WAIT\x01false", b"DELAY\x013\x02WAIT\x01false", False),
        (b"A\x01b\x02WAIT\x01true\x02DELAY\x013", b"A\x01b\x02WAIT\x01true\x02DELAY\x013", True),
        (b"", b"", True),
    ],
)
def test_wait_is_taken_out_wherever_it_stands(encoded: bytes, rest: bytes, is_waiting: bool) -> None:
    assert without_wait(encoded) == (rest, is_waiting, b"DEL" in encoded)
