"""The event that a pull out of range leaves in OFFSET_MOVED_EVENT."""

from __future__ import annotations

import json
from pathlib import Path

from appliance.broker.delivery.offset_moved import EVENTS_A_SECOND_MAX, OffsetMovedEvents
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.waiting import Clock


async def test_a_pull_out_of_range_is_told_where_to_go_and_leaves_an_event(tool: Tool) -> None:
    await tool.create_topic("T", 1)
    await tool.send("T", b"only one")
    fields = {
        "consumerGroup": "G",
        "topic": "T",
        "queueId": "0",
        "queueOffset": "7",
        "maxMsgNums": "4",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
    answer = await tool.ask(RequestCode.PULL_MESSAGE, fields)
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "1")
    store = tool.broker.store
    (unit,) = store.consume_queue_units("OFFSET_MOVED_EVENT", 0, 0, 1)
    event = store.look_message_by_offset(unit.physical_offset)
    assert event is not None
    assert json.loads(event.body) == {
        "consumerGroup": "G",
        "messageQueue": {"brokerName": "broker-a", "queueId": 0, "topic": "T"},
        "offsetNew": 1,
        "offsetRequest": 7,
    }
    assert event.properties == {"KEYS": "G", "DELAY": "0", "TAGS": "G"}
    assert event.born_host == event.store_host == ("127.0.0.1", tool.broker.port)


async def test_a_client_that_asks_wrongly_in_a_loop_does_not_fill_the_log(tmp_path: Path) -> None:
    clock = Clock(0.0)
    async with tool_at(tmp_path) as tool:
        events = OffsetMovedEvents(tool.broker.store, tool.broker.store_host, clock=clock)
        for second in (1, 2):
            clock.now = second
            for _ in range(EVENTS_A_SECOND_MAX + 10):
                events.moved("G", MessageQueue("T", "broker-a", 0), 7, 1)
        assert tool.broker.store.max_offset("OFFSET_MOVED_EVENT", 0) == 2 * EVENTS_A_SECOND_MAX
        assert events.left_out == 20
