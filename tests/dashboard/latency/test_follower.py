"""What traced clients report is on the pages of topic and group and in REST, and says the same as the traces."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio

from dashboard.cluster.errors import TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.latency import follower
from dashboard.latency.follower import LatencyFollower
from dashboard.models.management import User
from gantrymq import ConsumeResult, Producer, PushConsumer
from gantrymq.client.produce.trace_records import TraceKind, TraceRecord, encode_record
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import TRACE_TOPIC
from tests.dashboard.conftest import Client, Topic, api_for
from tests.harness import ServingCluster
from tests.waiting import aside, until

numbers = itertools.count()
MESSAGES = 5


def report(topic: str, group: str, number: int, took_ms: int) -> bytes:
    sent = TraceRecord(kind=TraceKind.PUB, msg_id=f"{topic}-{number}", time_ms=1_000, topic=topic, group="shop")
    handled = TraceRecord(kind=TraceKind.SUB_AFTER, msg_id=f"{topic}-{number}", time_ms=1_000 + took_ms, group=group)
    return (encode_record(sent) + encode_record(handled)).encode()


@pytest_asyncio.fixture(loop_scope="session")
async def trace_topic(cluster: ServingCluster, gateway: Gateway, make_topic: Topic) -> AsyncIterator[str]:
    """The first trace makes it."""
    topic = await make_topic(f"first-{next(numbers)}", queues=1)
    async with Producer(cluster.namesrv_address, group="shop", trace=True) as producer:
        await producer.send(Message(topic, b"traced"))

    async def is_there() -> bool:
        try:
            return bool(await gateway.topics.get(TRACE_TOPIC))
        except TopicNotFound:
            return False

    await until(is_there)
    yield TRACE_TOPIC


async def test_pages_and_rest_say_what_the_traces_say(
    cluster: ServingCluster, gateway: Gateway, make_topic: Topic, trace_topic: str,
    log_in: Client,
) -> None:  # fmt: skip
    topic = await make_topic(f"timed-{next(numbers)}", queues=1)
    group = f"{topic}-group"
    handled = 0

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        nonlocal handled
        handled += len(messages)
        return ConsumeResult.SUCCESS

    client = await log_in("reader")
    api = await api_for(await User.objects.aget(username="reader"), "read")
    following = LatencyFollower(gateway)
    await following.look()
    consumer = PushConsumer(cluster.namesrv_address, group=group, listener=listener, trace=True)
    consumer.subscribe(topic)
    async with Producer(cluster.namesrv_address, group="shop", trace=True) as producer, consumer:
        for _ in range(MESSAGES):
            await producer.send(Message(topic, b"timed"))
        await until(lambda: handled == MESSAGES)

    async def traced() -> list[dict[str, Any]]:
        return list((await api.call("get", f"/traces?topic={topic}"))[1]["items"])

    await until(lambda: _has(traced, 2 * MESSAGES))
    async with aside(following.run()):  # it writes when it ends
        await following.look()
    events = await traced()
    sent, ended = (
        {one["message_id"]: datetime.fromisoformat(one["at"]) for one in events if one["what"] == what}
        for what in ("Pub", "SubAfter")
    )
    longest_ms = max((ended[msg_id] - at).total_seconds() * 1000 for msg_id, at in sent.items())
    status, answer = await api.call("get", f"/latency?topic={topic}")
    assert status == 200
    (pair,) = answer["items"]
    assert (pair["topic"], pair["group"], pair["messages"], pair["unmeasured"]) == (topic, group, MESSAGES, 0)
    assert sum(one["messages"] for one in pair["histogram"]) == MESSAGES == len(sent)
    assert pair["p50_ms"] <= pair["p95_ms"] <= pair["p99_ms"] == pair["histogram"][-1]["up_to_ms"]
    assert longest_ms <= pair["p99_ms"] <= max(1, 2 * longest_ms)
    assert (await api.call("get", f"/latency?group={group}"))[1]["items"] == [pair]
    for address in (f"/group/{group}", f"/topic/{topic}/charts"):
        page = (await client.get(address)).content.decode()
        assert "Distribution of the latency" in page and "End-to-end latency" in page
        assert '<th class="num">p99</th>' in page and "\u202fms</td>" in page, "each value names its unit"
        assert f'<td class="num">{MESSAGES}</td>' in page


async def _has(traced: Callable[[], Awaitable[list[dict[str, Any]]]], count: int) -> bool:
    return len(await traced()) >= count


async def test_a_backlog_is_skipped_and_counted(
    gateway: Gateway, trace_topic: str, users: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "BEHIND_MAX", 3)
    topic = f"flooded-{next(numbers)}"
    following = LatencyFollower(gateway)
    await following.look()
    for number in range(10):
        await gateway.messages.send(Message(trace_topic, report(topic, "slow", number, 40 + number)), queue_id=0)
    async with aside(following.run()):
        await following.look()
    answer = (await (await api_for(users["reader"], "read")).call("get", f"/latency?topic={topic}"))[1]
    (pair,) = answer["items"]
    assert (pair["messages"], pair["histogram"], answer["skipped_traces"]) == (3, [{"up_to_ms": 50, "messages": 3}], 7)


async def test_without_traces_the_pages_say_where_figures_would_come_from(make_topic: Topic, log_in: Client) -> None:
    topic = await make_topic(f"untraced-{next(numbers)}")
    page = (await (await log_in("reader")).get(f"/topic/{topic}/charts")).content.decode()
    assert "No latency for this time." in page and "traceTopicEnable=true" in page


async def test_an_account_of_some_names_may_not_ask_for_others(users: dict[str, User]) -> None:
    await User.objects.filter(pk=users["reader"].pk).aupdate(name_prefixes="others-")
    api = await api_for(await User.objects.aget(pk=users["reader"].pk), "read")
    assert (await api.call("get", "/latency?topic=orders"))[0] == 403
    assert (await api.call("get", "/latency"))[1]["items"] == []
