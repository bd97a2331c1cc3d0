"""Groups that read from far behind are suspended, those that don't are not, and who is near again may go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, SubscriptionGroupWrapper
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool
from tests.appliance.peer import connected
from tests.harness import serving

BODY = b"x" * 100
COUNT = 30


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[Tool]:
    """A broker on which 2000 bytes are far behind, and a queue with more than that."""
    settings = {"disable_slow_consumers": True, "consumer_fall_behind_bytes": 2000}
    async with serving(tmp_path, broker=settings) as cluster, connected(cluster.broker.port) as peer:
        tool = Tool(cluster, peer)
        await tool.create_topic("T", 1)
        for _ in range(COUNT):
            await tool.send("T", BODY)
        yield tool


async def pull(tool: Tool, group: str, offset: int) -> RemotingCommand:
    fields = {
        "consumerGroup": group,
        "topic": "T",
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": "4",
        "sysFlag": "5",  # commits, and brings its subscription
        "commitOffset": str(offset),
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
    return await tool.ask(RequestCode.PULL_MESSAGE, fields)


async def listed(tool: Tool, group: str) -> SubscriptionGroupConfig:
    every = await tool.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    return SubscriptionGroupWrapper.from_json(every.body).subscription_group_table[group]


async def test_only_who_reads_from_far_behind_is_suspended_and_told_so(tool: Tool) -> None:
    assert (await pull(tool, "slow", 0)).code == 0
    assert (await pull(tool, "quick", COUNT - 5)).code == 0
    assert (await pull(tool, "TOOLS_CONSUMER", 0)).code == 0
    await tool.broker.slow_consumers.look()
    refused = await pull(tool, "slow", 4)
    assert (refused.code, refused.remark) == (ResponseCode.NO_PERMISSION, "subscription group no permission, slow")
    assert (await pull(tool, "quick", COUNT - 4)).code == 0
    assert (await pull(tool, "TOOLS_CONSUMER", 0)).code == 0
    assert not (await listed(tool, "slow")).consume_enable
    assert tool.broker.groups.suspended == ["slow"]
    assert tool.broker.slow_consumers.behind_bytes_max > 2000


async def test_a_suspended_group_goes_on_when_its_offsets_were_moved_near(tool: Tool) -> None:
    await pull(tool, "slow", 0)
    await tool.broker.slow_consumers.look()
    await tool.broker.slow_consumers.look()
    assert tool.broker.groups.suspended == ["slow"], "still far behind"
    tool.broker.offsets.commit("slow", "T", 0, COUNT - 1)
    await tool.broker.slow_consumers.look()
    assert tool.broker.groups.suspended == []
    assert (await pull(tool, "slow", COUNT - 1)).code == 0
    assert (await listed(tool, "slow")).consume_enable


async def test_an_operator_has_the_last_word(tool: Tool) -> None:
    await pull(tool, "slow", 0)
    await tool.broker.slow_consumers.look()
    body = SubscriptionGroupConfig("slow").to_json()
    await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    assert (await pull(tool, "slow", 4)).code == 0
    off = SubscriptionGroupConfig("off", consume_enable=False).to_json()
    await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=off)
    tool.broker.offsets.commit("off", "T", 0, COUNT)
    await tool.broker.slow_consumers.look()
    assert (await pull(tool, "off", COUNT)).code == ResponseCode.NO_PERMISSION, "not suspended by us, not resumed"


async def test_switching_the_protection_off_resumes_everybody(tool: Tool) -> None:
    await pull(tool, "slow", 0)
    await tool.broker.slow_consumers.look()
    change = b"disableConsumeIfConsumerReadSlowly=false"
    assert (await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=change)).code == 0
    await tool.broker.slow_consumers.look()
    assert tool.broker.groups.suspended == []


async def test_a_suspension_is_not_written_to_the_file(tool: Tool, tmp_path: Path) -> None:
    await pull(tool, "slow", 0)
    await tool.broker.slow_consumers.look()
    await tool.ask(
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("other").to_json()
    )  # writes the file
    stored = SubscriptionGroupWrapper.from_json((tmp_path / "store" / "config" / "subscriptionGroup.json").read_bytes())
    assert stored.subscription_group_table["slow"].consume_enable
