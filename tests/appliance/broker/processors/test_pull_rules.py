"""processors/pull.py: rules of a pull that one answer alone does not show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import GetMessageResult, GetMessageStatus
from tests.appliance.broker.caller import GROUP, Caller, calling

FOUND, NOTHING_NEW, AGAIN, MOVED = 0, 19, 20, 21


@pytest.mark.parametrize(
    ("status", "offset", "code"),
    [
        (GetMessageStatus.FOUND, 0, FOUND),
        (GetMessageStatus.NO_MATCHED_MESSAGE, 0, AGAIN),
        (GetMessageStatus.MESSAGE_WAS_REMOVING, 0, AGAIN),
        (GetMessageStatus.OFFSET_FOUND_NULL, 0, NOTHING_NEW),
        (GetMessageStatus.OFFSET_OVERFLOW_BADLY, 0, MOVED),
        (GetMessageStatus.OFFSET_OVERFLOW_ONE, 0, NOTHING_NEW),
        (GetMessageStatus.OFFSET_TOO_SMALL, 0, MOVED),
        (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, NOTHING_NEW),
        (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 5, MOVED),
        (GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, NOTHING_NEW),
        (GetMessageStatus.NO_MESSAGE_IN_QUEUE, -1, MOVED),
    ],
)
async def test_each_status_of_the_store_has_its_code_and_is_told(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, status: GetMessageStatus, offset: int, code: int
) -> None:
    await caller.send("orders", b"x")
    monkeypatch.setattr(caller.cluster.broker.store, "get_message", lambda *_: GetMessageResult(status, 7, 2, 9))
    answer = await caller.pull("orders", offset)
    assert (answer.code, answer.remark) == (code, status.name)
    assert answer.ext_fields == {
        "suggestWhichBrokerId": "0", "nextBeginOffset": "7", "minOffset": "2", "maxOffset": "9",
    }  # fmt: skip


async def test_a_pull_may_mean_an_older_subscription_than_the_heartbeats_and_no_newer(caller: Caller) -> None:
    await caller.send("orders", b"x")
    consumer = ConsumerData(GROUP, subscription_data_set=[SubscriptionData("orders", "*", sub_version=5)])
    heartbeat = HeartbeatData("me", consumer_data_set=[consumer]).to_json()
    assert (await caller.ask(RemotingCommand.request(RequestCode.HEART_BEAT, None, heartbeat))).code == 0
    codes = [(await caller.pull("orders", sysFlag="0", subVersion=version)).code for version in ("4", "5", "6")]
    assert codes == [0, 0, 25]


async def test_without_long_polling_a_pull_waits_as_long_as_the_broker_says(tmp_path: Path) -> None:
    async with calling(tmp_path, broker={"long_polling_enable": False}) as caller:
        await caller.send("orders", b"x")
        async with asyncio.timeout(100):  # not the 300 s that the client would wait
            answer = await caller.pull("orders", 1, sysFlag="6", suspendTimeoutMillis="300000")
        assert answer.code == NOTHING_NEW


async def test_people_who_look_at_messages_are_not_counted_as_consumers(caller: Caller) -> None:
    await caller.send("orders", b"x")
    for group in ("TOOLS_CONSUMER", GROUP):
        assert (await caller.pull("orders", consumerGroup=group)).code == FOUND
    stats = caller.cluster.broker.stats
    assert stats.get("GROUP_GET_NUMS", "orders@TOOLS_CONSUMER") is None
    assert stats.get("GROUP_GET_NUMS", f"orders@{GROUP}") is not None
    assert caller.cluster.broker.store.stats.get_transferred == 1, "nor in the totals, which rates are made of"
    taken = stats.get("BROKER_GET_NUMS", "DefaultCluster")
    assert taken is not None and taken.value == 1
