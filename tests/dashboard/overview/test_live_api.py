"""The live stream for programs: the cluster's state, a topic's messages, and its ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.test import AsyncClient

from dashboard.cluster.gateway import Gateway
from dashboard.live.sampler import Sampler
from dashboard.live.tail import LOOKS_KEPT, Arrivals, topic_tail
from dashboard.models.management import ApiToken, User
from dashboard.overview import live_api as live
from gantrymq.message.model import Message
from tests.dashboard.conftest import Topic, api_for
from tests.waiting import WITHIN_S


async def opened(user: User, query: str = "", scope: str = "read") -> Any:
    """The answer, and its events as (name, data)."""
    api = await api_for(user, scope)
    return await AsyncClient().get(f"/api/v1/live{query}", headers=api.headers)


async def events_of(answer: Any) -> AsyncIterator[tuple[str, Any]]:
    async for chunk in answer.streaming_content:
        lines = dict(line.split(": ", 1) for line in chunk.decode().splitlines() if ": " in line)
        if "event" in lines:
            yield lines["event"], json.loads(lines["data"])


async def next_of(events: AsyncIterator[tuple[str, Any]]) -> tuple[str, Any]:
    return await asyncio.wait_for(anext(events), WITHIN_S)


async def test_it_tells_each_state_of_the_cluster(users: dict[str, User], gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    answer = await opened(users["reader"])
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
    events = events_of(answer)
    name, state = await next_of(events)
    assert (name, [broker["name"] for broker in state["brokers"]]) == ("cluster", ["broker-a"])
    await Sampler(gateway).sample()
    _, later = await next_of(events)
    assert later["at"] > state["at"]
    answer.close()
    await events.aclose()  # type: ignore[attr-defined]


async def test_it_tells_messages_as_they_arrive(users: dict[str, User], gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("live-rest", messages=[Message("live-rest", b"before")])
    events = events_of(await opened(users["reader"], f"?topic={topic}"))
    waiting = asyncio.create_task(next_of(events))
    while topic not in topic_tail.watched:
        await asyncio.sleep(0)
    await gateway.messages.send(Message(topic, b"after"))
    while not waiting.done():
        await topic_tail.look(gateway, topic)
        await asyncio.sleep(0)
    name, told = waiting.result()
    assert (name, told["topic"], told["more"]) == ("messages", topic, 0)
    assert [message["preview"] for message in told["items"]] == ["after"]
    await events.aclose()  # type: ignore[attr-defined]


async def test_it_ends_with_its_token_and_is_counted(
    users: dict[str, User], gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RECHECK_S", -1.0)
    monkeypatch.setattr(live, "LOOK_S", 0.0)
    monkeypatch.setattr(live, "STREAMS_OF_ONE_ACCOUNT_MAX", 1)
    await Sampler(gateway).sample()
    events = events_of(await opened(users["reader"]))
    await next_of(events)
    refused = await opened(users["reader"])
    assert (refused.status_code, json.loads(refused.content)["status"]) == (409, 409)
    await ApiToken.objects.all().adelete()
    with pytest.raises(StopAsyncIteration):
        while True:
            await next_of(events)
    again = await opened(users["reader"])
    assert again.status_code == 200, "the one that ended counts no more"
    again.close()


async def test_it_ends_after_a_while(users: dict[str, User], gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAM_SECONDS_MAX", -1.0)
    assert [event async for event in events_of(await opened(users["reader"]))] == []


async def test_what_is_not_there_or_not_allowed_is_no_stream(users: dict[str, User], gateway: Gateway) -> None:
    assert (await opened(users["reader"], "?topic=none-of-this-name")).status_code == 404
    assert (await opened(users["reader"], "?topic=x", scope="metrics")).status_code == 403


def test_a_listener_that_takes_nothing_keeps_little_and_knows_what_it_missed() -> None:
    arrivals = Arrivals()
    for _ in range(LOOKS_KEPT + 3):
        arrivals.put([], 5)
    arrivals.put([], 0)
    looks = []
    with pytest.raises(asyncio.QueueEmpty):
        while True:
            looks.append(arrivals.get_nowait())
    assert (len(looks), arrivals.take_lost(), arrivals.take_lost()) == (LOOKS_KEPT, 15, 0)
