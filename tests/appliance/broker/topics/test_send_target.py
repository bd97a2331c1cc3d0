"""What a send finds of its topic with one look stays true while topics come, change and go."""

from __future__ import annotations

import dataclasses

from appliance.bench.frames import send_fields
from appliance.broker.status.stats import BROKER_PUT_NUMS, TOPIC_PUT_NUMS, TOPIC_PUT_SIZE
from gantrymq.remoting.codes import RequestCode, ResponseCode
from store import StoreMessage
from tests.appliance.broker.processors.tool import Tool


async def test_a_topic_that_shrank_refuses_the_queues_it_has_lost(tool: Tool) -> None:
    await tool.create_topic("T", queues=4)
    await tool.send("T", b"four", queue_id=3)
    await tool.create_topic("T", queues=2)
    refused = await tool.ask(RequestCode.SEND_MESSAGE_V2, send_fields("PG", "T", 3, ""), b"lost")
    assert refused.code == ResponseCode.SYSTEM_ERROR and "queueId[3] is illegal" in (refused.remark or "")
    await tool.send("T", b"two", queue_id=1)


async def test_what_is_sent_to_a_topic_that_was_deleted_and_came_back_is_found(tool: Tool) -> None:
    store, targets = tool.broker.store, tool.broker.send_targets
    await tool.create_topic("T")
    await tool.send("T", b"old")
    old = targets.plain["T"]
    assert (await tool.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})).code == 0
    assert "T" not in targets.plain and old.slot is not None and old.slot.is_gone
    await tool.create_topic("T")
    await tool.send("T", b"new")
    assert targets.plain["T"] is not old
    assert store.max_offset("T", 0) == 1
    stale = StoreMessage("T", 0, b"by a stale hint", b"", 0, 0, 1, bytes(8), bytes(8), slot=old.slot)
    store.put_message(stale)
    store.put_message(dataclasses.replace(stale, topic="Other", slot=targets.plain["T"].slot))
    assert (store.max_offset("T", 0), store.max_offset("Other", 0)) == (2, 1)


async def test_a_delayed_message_counts_where_it_waits_until_it_is_delivered(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"later", DELAY="18")
    stats = tool.broker.stats
    assert stats.get(TOPIC_PUT_NUMS, "T") is None
    for name, key in ((TOPIC_PUT_NUMS, "SCHEDULE_TOPIC_XXXX"), ("QUEUE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX@17")):
        item = stats.get(name, key)
        assert item is not None and item.value == 1


async def test_no_count_is_lost_when_a_topic_changes_between_two_sends(tool: Tool) -> None:
    await tool.create_topic("T")
    for queues in (2, 3, 4):
        await tool.send("T", b"counted")
        await tool.create_topic("T", queues=queues)
    await tool.send("T", b"counted")
    stats = tool.broker.stats
    nums, sizes = stats.get(TOPIC_PUT_NUMS, "T"), stats.get(TOPIC_PUT_SIZE, "T")
    assert nums is not None and sizes is not None
    assert (nums.value, nums.times, sizes.times) == (4, 4, 4)
    assert sizes.value == tool.broker.store.max_physical_offset
    put = stats.get(BROKER_PUT_NUMS, tool.broker.config.cluster_name)
    assert put is not None and put.value == 4
