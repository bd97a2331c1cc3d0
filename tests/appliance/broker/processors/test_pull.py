"""Pulls that a real broker was asked and how it answered: ours answers the same."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool
from tests.appliance.peer import Peer, connected
from tests.harness import serving

FRAMES = Path(__file__).parents[3] / "golden" / "frames" / "pull_errors.jsonl.gz"
FAQ = "\nSee http"  # the original's remarks end with a link; ours don't
FAKE_BODY = b"hi"


def _exchanges() -> dict[str, tuple[bytes, RemotingCommand]]:
    with gzip.open(FRAMES, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        f"{number}-{row['scenario']}": (
            bytes.fromhex(row["request"]),
            RemotingCommand.decode(bytes.fromhex(row["answer"])[4:]),
        )
        for number, row in enumerate(rows)
    }


EXCHANGES = _exchanges()


def _subscribed(topic: str) -> list[SubscriptionData]:
    return [SubscriptionData(topic, sub_version=100)]


@contextlib.asynccontextmanager
async def _as_it_was(folder: Path, scenario: str) -> AsyncIterator[tuple[Tool, Peer]]:
    """The captured broker's topics, messages, groups and consumers; the peer asks."""
    off = ("auto_create_topic_enable", "auto_create_subscription_group", "enable_property_filter")
    async with (
        serving(folder, broker=dict.fromkeys(off, False)) as cluster,
        connected(cluster.broker.port) as peer,
        connected(cluster.broker.port) as consumer,
        connected(cluster.broker.port) as asking,
    ):
        tool = Tool(cluster, peer)
        for topic, perm, count in (("TopicErr", "6", 6), ("TopicNoRead", "2", 0), ("TopicNoWrite", "6", 1)):
            await tool.create_topic(topic, 1, perm=perm)
            for _ in range(count):
                await tool.send(topic, FAKE_BODY)
        await tool.create_topic("TopicEmptyRaw", 1)
        for group in (
            SubscriptionGroupConfig("CG_err"),
            SubscriptionGroupConfig("CG_filraw"),
            SubscriptionGroupConfig("CG_off", consume_enable=False),
            SubscriptionGroupConfig("CG_nobcast", consume_broadcast_enable=False),
        ):
            await tool.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.to_json())
        if "no-heartbeat" not in scenario:
            groups = [
                ConsumerData("CG_err", subscription_data_set=_subscribed("TopicErr")),
                ConsumerData("CG_nobcast", message_model="BROADCASTING", subscription_data_set=_subscribed("TopicErr")),
            ]
            beat = HeartbeatData("raw@c", [], groups)
            consumer.write(RemotingCommand.request(RequestCode.HEART_BEAT, body=beat.to_json()).encode())
            assert (await consumer.read()).code in (0, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
        if "broker-not-readable" in scenario:
            assert (await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"brokerPermission=2")).code == 0
        yield tool, asking


@pytest.mark.parametrize("scenario", EXCHANGES)
async def test_a_pull_is_answered_as_the_original_answered_it(tmp_path: Path, scenario: str) -> None:
    request, expected = EXCHANGES[scenario]
    async with _as_it_was(tmp_path, scenario) as (tool, peer):
        peer.write(request)
        answer = await peer.read()
        assert answer.code == (29 if "no-ext" in scenario else expected.code)
        if expected.code in (0, 19, 20, 21):
            assert answer.ext_fields == expected.ext_fields
        if "no-ext" in scenario:  # a NullPointerException there, a word about the field here
            assert "consumerGroup" in (answer.remark or "")
            return
        theirs = (expected.remark or "").partition(FAQ)[0].partition(" consumer:")[0].rstrip(" ,")
        assert (answer.remark or "").rstrip(" ").startswith(theirs)
        moved = tool.broker.store.max_offset("OFFSET_MOVED_EVENT", 0)
        assert moved == (1 if expected.code == 21 else 0)
