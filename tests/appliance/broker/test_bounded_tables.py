"""What clients can make grow: members, subscriptions, groups, topics, offsets, waiting pulls. Each has an end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.delivery import long_polling
from appliance.broker.groups import consumer_groups, consumer_offset, subscription_group
from appliance.broker.processors import clients
from appliance.broker.topics import topic_config
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool, tool_at

PULL = {
    "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "6",
    "commitOffset": "0", "suspendTimeoutMillis": "60000", "subscription": "*", "subVersion": "0",
}  # fmt: skip


async def beat(tool: Tool, producers: list[str], consumers: dict[str, int], client_id: str = "c") -> RemotingCommand:
    """A heartbeat; consumers: group to the number of topics it subscribes to."""
    data = [
        ConsumerData(group, subscription_data_set=[SubscriptionData(f"T{number}") for number in range(count)])
        for group, count in consumers.items()
    ]
    body = HeartbeatData(client_id, [ProducerData(group) for group in producers], data).to_json()
    return await asked(tool, RequestCode.HEART_BEAT, body=body)


async def test_one_client_can_not_be_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S37: heartbeats."""
    monkeypatch.setattr(clients, "GROUPS_MAX", 5)
    monkeypatch.setattr(clients, "SUBSCRIPTIONS_MAX", 3)
    async with tool_at(tmp_path) as tool:
        for number in range(10):
            answer = await beat(tool, [f"P{number}"], {f"C{number}": 1})
            assert answer.code == (0 if number < 5 else ResponseCode.INVALID_PARAMETER), number
        assert "5 groups already" in (answer.remark or "")
        assert len(tool.broker.producers.groups) == len(tool.broker.consumers.groups) == 5
        assert (await beat(tool, ["P0"], {"C0": 1})).code == 0, "what was let in is refreshed"
        too_much = await beat(tool, [], {"C0": 4})
        assert (too_much.code, "3 topics" in (too_much.remark or "")) == (ResponseCode.INVALID_PARAMETER, True)
        assert (await beat(tool, [f"P{n}" for n in range(6)], {})).code == ResponseCode.INVALID_PARAMETER
        assert (await beat(tool, [], {}, "c" * 2000)).code == ResponseCode.INVALID_PARAMETER


async def test_groups_topics_and_offsets_do_not_come_into_being_without_end(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = tool.broker
    await tool.create_topic("T")
    monkeypatch.setattr(subscription_group, "GROUPS_MAX", len(broker.groups.configs) + 2)
    for number in range(6):
        await beat(tool, [], {f"C{number}": 1})
    assert sum(group.startswith("C") and group[1:].isdigit() for group in broker.groups.configs) == 2
    monkeypatch.setattr(topic_config, "CREATED_TOPICS_MAX", len(broker.topics.configs) + 1)
    await tool.send("New0", b"x")
    with pytest.raises(AssertionError, match="creates no further ones"):
        await tool.send("New1", b"x")
    await tool.create_topic("ByHand")
    await tool.send("ByHand", b"x")
    monkeypatch.setattr(consumer_offset, "KEYS_MAX", 2)
    monkeypatch.setattr(consumer_offset, "QUEUES_MAX", 3)
    codes = [await commit(tool, f"G{number}", 0) for number in range(4)]
    assert codes == [0, 0, 29, 29]
    assert [await commit(tool, "G0", queue_id) for queue_id in range(5)] == [0, 0, 0, 29, 29]
    assert await commit(tool, "G0", 1) == 0


async def commit(tool: Tool, group: str, queue_id: int, topic: str = "T", offset: int = 1) -> int:
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue_id), "commitOffset": str(offset)}
    return (await asked(tool, RequestCode.UPDATE_CONSUMER_OFFSET, fields)).code


async def test_looking_makes_nothing(tool: Tool) -> None:
    before = tables(tool)
    for number in range(50):
        queue = {"topic": f"Probed{number}", "queueId": str(number), "timestamp": "0"}
        for code in (29, 30, 31, 32):
            await tool.ask(code, queue)
        for code, fields in (
            (202, {"topic": "Probed"}), (300, {"topic": "Probed"}), (351, {"topic": "Probed"}),
            (352, {"group": f"CG{number}"}), (38, {"consumerGroup": f"CG{number}"}),
            (14, queue | {"consumerGroup": f"CG{number}"}), (208, {"consumerGroup": f"CG{number}"}),
            (315, {"statsName": f"N{number}", "statsKey": "K"}),
        ):  # fmt: skip
            await tool.ask(code, fields)
    assert tables(tool) == before


def tables(tool: Tool) -> tuple[object, ...]:
    broker = tool.broker
    return set(broker.topics.configs), set(broker.groups.configs), broker.store.topics(), set(broker.stats._items)


async def test_pulls_that_wait_are_bounded_in_number_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polling, "HELD_PER_CONNECTION_MAX", 10)
    monkeypatch.setattr("appliance.broker.processors.pull.HELD_MS_MAX", 50_000)
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T")
        fields = PULL | {"suspendTimeoutMillis": str((1 << 63) - 1)}
        for _ in range(15):
            tool.peer.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, fields).encode())
        assert [(await tool.peer.read()).code for _ in range(5)] == [ResponseCode.SYSTEM_BUSY] * 5
        assert tool.broker.hold.held_count == 10
        tool.broker.hold.sweep(time.monotonic() + 50)  # the broker's own look comes once a second
        assert [(await tool.peer.read()).code for _ in range(10)] == [ResponseCode.PULL_NOT_FOUND] * 10
        assert tool.broker.hold.held_count == 0
        assert tool.broker.hold._counts == {}


def consumer(group: str, **subscription: Any) -> ConsumerData:
    return ConsumerData(group, subscription_data_set=[SubscriptionData("T", **subscription)])


async def beat_of(tool: Tool, *consumers: ConsumerData) -> RemotingCommand:
    body = HeartbeatData("c", [], list(consumers)).to_json()
    return await asked(tool, RequestCode.HEART_BEAT, body=body)


async def asked(tool: Tool, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
    """The answer, whatever notices come before it."""
    tool.peer.write(RemotingCommand.request(code, fields, body=body).encode())
    while not (answer := await tool.peer.read()).is_response:
        pass
    return answer


@pytest.mark.parametrize(
    "subscription",
    [
        {"sub_string": "x" * 40_000},
        {"tags_set": ["t" * 20_000, "u" * 20_000]},
        {"code_set": list(range(40_000))},
        {"expression_type": "T" * 300},
    ],
)
async def test_a_subscription_nobody_writes_is_refused_and_not_remembered(
    tool: Tool, subscription: dict[str, Any]
) -> None:
    answer = await beat_of(tool, consumer("G", **subscription), consumer("H"))
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert set(tool.broker.consumers.groups) == {"H"}, "the group it belongs to is spoiled, no other"


async def test_the_subscriptions_of_all_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_groups, "SUBSCRIBED_BYTES_MAX", 300_000)
    async with tool_at(tmp_path) as tool:
        consumers = tool.broker.consumers
        for number in range(20):
            answer = await beat_of(tool, consumer(f"G{number}", sub_string="x" * 10_000, sub_version=9))
            assert answer.code == (0 if number < 7 else ResponseCode.INVALID_PARAMETER), number
        assert "too much memory" in (answer.remark or "")
        assert consumers.subscribed_bytes <= 300_000
        full = consumers.subscribed_bytes
        assert (await beat_of(tool, consumer("G0", sub_string="x" * 10_000, sub_version=9))).code == 0, "refreshed"
        assert (await beat_of(tool, consumer("G0", sub_string="x", sub_version=1))).code == 0
        assert consumers.subscribed_bytes == full, "the newer one is still remembered"
        for number in range(7):
            consumers.unregister(f"G{number}", next(iter(consumers.groups[f"G{number}"].channels)))
        assert consumers.subscribed_bytes == 0


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
@pytest.mark.parametrize(("subscription", "body"), [("x" * 4000, b""), ("*", b"x" * 100_000)])
async def test_what_waiting_pulls_take_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: RequestCode, subscription: str, body: bytes
) -> None:
    monkeypatch.setattr(long_polling, "HELD_BYTES_MAX", 300_000)
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("T")
        fields = PULL | {"subscription": subscription}
        await beat(tool, [], {"G": 1})
        for _ in range(6):
            tool.peer.write(RemotingCommand.request(code, fields, body=body).encode())
        while not (answer := await tool.peer.read()).is_response:
            pass
        assert (answer.code, "too much memory" in (answer.remark or "")) == (ResponseCode.SYSTEM_BUSY, True)
        hold = tool.broker.hold
        assert 0 < hold.held_bytes <= 300_000
        tool.broker.hold.sweep(time.monotonic() + 100)
        assert hold.held_bytes == hold.held_count == 0


async def test_an_expression_nobody_writes_is_refused_by_a_pull(tool: Tool) -> None:
    await tool.create_topic("T")
    await beat(tool, [], {"G": 1})
    fields = PULL | {"sysFlag": "4", "subscription": "a||" * 11_000}
    answer = await asked(tool, RequestCode.PULL_MESSAGE, fields)
    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    fields["subscription"] = "||".join(f"t{number}" for number in range(4000))
    assert (await asked(tool, RequestCode.PULL_MESSAGE, fields)).code == ResponseCode.PULL_NOT_FOUND


async def test_offsets_are_bounded_in_all_and_those_that_go_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_offset, "ENTRIES_MAX", 6)
    async with tool_at(tmp_path) as tool:
        offsets = tool.broker.offsets
        codes = [await commit(tool, "G", queue_id, topic) for topic in ("A", "B", "C") for queue_id in range(3)]
        assert codes == [0] * 6 + [ResponseCode.INVALID_PARAMETER] * 3
        assert (await commit(tool, "G", 0, "A", 7), offsets.query("G", "A", 0)) == (0, 7), "one that is there goes on"
        offsets.remove_topic("A")
        assert offsets.entry_count == 3
        assert [await commit(tool, "G", queue_id, "C") for queue_id in range(4)] == [0] * 3 + [
            ResponseCode.INVALID_PARAMETER
        ]
