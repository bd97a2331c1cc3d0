"""Traces are found as clients told them: by id, key, topic, group, time, slow or failed; a step at a time."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from dashboard.cluster import units
from dashboard.cluster.gateway import Gateway
from dashboard.messages import trace_search as search
from dashboard.messages.trace_events import events_of
from dashboard.models.management import User
from gantrymq import ConsumeResult, Producer, PushConsumer
from gantrymq.client.produce.trace_records import ConsumeOutcome, TraceKind, TraceRecord, encode_record
from gantrymq.errors import RouteNotFound
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import TRACE_TOPIC
from tests.dashboard.conftest import Client, Topic, api_for
from tests.harness import ServingCluster
from tests.waiting import until

numbers = itertools.count()


@dataclass(frozen=True)
class Told:
    """One message, sent and handled by traced clients: a first try that failed, a second that did not."""

    topic: str
    group: str
    msg_id: str
    key: str


@pytest_asyncio.fixture(loop_scope="session")
async def told(cluster: ServingCluster, gateway: Gateway, make_topic: Topic) -> AsyncIterator[Told]:
    number = next(numbers)
    topic, group, key = await make_topic(f"traced-{number}", queues=1), f"tracers-{number}", f"order-{number}-17"
    tries = 0

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        nonlocal tries
        tries += 1
        return ConsumeResult.LATER if tries == 1 else ConsumeResult.SUCCESS

    consumer = PushConsumer(cluster.namesrv_address, group=group, listener=listener, trace=True)
    consumer.subscribe(topic)
    async with Producer(cluster.namesrv_address, group=f"{group}-shop", trace=True) as producer, consumer:
        sent = await producer.send(Message(topic, b"traced", keys=[key]))
        await until(lambda: tries >= 1)

        async def is_told() -> bool:
            try:
                records = (await gateway.calls.call(lambda admin: admin.messages.trace(sent.msg_id))).records
            except RouteNotFound:  # the first traces make the topic
                return False
            return {TraceKind.PUB, TraceKind.SUB_AFTER} <= {record.kind for record in records}

        await until(is_told)
        yield Told(topic, group, sent.msg_id, key)


def hour_ago() -> str:
    return quote((datetime.now(UTC) - timedelta(hours=1)).isoformat())


def rows(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(one["what"], one["topic"], one["group"]) for one in answer["items"]}


async def test_events_are_found_by_each_of_their_sides(told: Told, users: dict[str, User]) -> None:
    api = await api_for(users["reader"], "read")

    async def find(query: str) -> dict[str, Any]:
        status, answer = await api.call("get", f"/traces?{query}")
        assert status == 200, answer
        return answer

    sent = ("Pub", told.topic, f"{told.group}-shop")
    handled = ("SubAfter", told.topic, told.group)
    assert {sent, handled} <= rows(await find(f"q={told.msg_id}"))
    assert sent in rows(await find(f"q={told.key}"))
    assert rows(await find(f"topic={told.topic}")) == {sent, handled}
    assert rows(await find(f"group={told.group}")) == {handled}
    failed = await find(f"which=failed&topic={told.topic}")
    assert rows(failed) == {handled} and all(one["is_bad"] for one in failed["items"])
    assert rows(await find(f"which=slow&slow_ms=86400000&topic={told.topic}")) == set()
    assert rows(await find(f"topic={told.topic}&since={hour_ago()}")) == {sent, handled}
    long_ago = await find("until=2020-01-01T00:00")
    assert (long_ago["items"], long_ago["next"], long_ago["is_off"]) == ([], None, False)
    assert (await api.call("get", "/traces?since=tomorrow"))[0] == 422


async def test_the_page_shows_them_and_leads_to_the_messages_life(told: Told, log_in: Client) -> None:
    client = await log_in("reader")
    page = (await client.get("/traces", {"topic": told.topic})).content.decode()
    assert told.msg_id in page and "Handled" in page and "Sent" in page
    life = await client.get(f"/trace/{told.msg_id}", follow=True)
    text = life.content.decode()
    assert f"/topic/{told.topic}/messages/" in life.redirect_chain[0][0]
    assert "Handled, try 1" in text and "Stored" in text
    at = life.redirect_chain[0][0].partition("?")[0].replace("/topic/", "/topics/")
    api = await api_for(await User.objects.aget(username="reader"), "read")
    steps = (await api.call("get", f"{at}/trace"))[1]["steps"]
    assert {step["group"] for step in steps} == {"", told.group}
    assert all(f"+{units.milliseconds(step['after_ms'])}" in text for step in steps)
    assert (await client.get("/trace/no-such")).status_code == 404


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", [("Open a message by its id", "Open message"), ("Search the traces", "Search traces")]),
        ("zh-hans", [("按消息 ID 打开消息", "打开消息"), ("搜索轨迹", "搜索轨迹")]),
    ],
)
async def test_its_two_searches_are_told_apart_by_heading_and_button(
    gateway: Gateway, log_in: Client, language: str, words: list[tuple[str, str]]
) -> None:
    client = await log_in("reader")
    await client.post("/preferences/language", {"language": language, "back": "/traces"})
    forms = re.findall(r'<form class="finder".*?</form>', (await client.get("/traces")).content.decode(), re.DOTALL)
    found = [(re.findall(r"<h2[^>]*>(.*?)</h2>", form), re.findall(r"<button>(.*?)</button>", form)) for form in forms]
    assert found == [([heading], [button]) for heading, button in words]


async def test_a_search_goes_on_from_its_cursor_and_misses_nothing(
    told: Told, users: dict[str, User], gateway: Gateway, monkeypatch: Any
) -> None:
    for number in range(6):
        record = TraceRecord(
            kind=TraceKind.SUB_AFTER, msg_id=f"id-{number}", group="walkers", request_id=str(number),
            time_ms=number + 1, is_success=False, cost_ms=100 * number, outcome=ConsumeOutcome.EXCEPTION,
        )  # fmt: skip
        await gateway.messages.send(Message(TRACE_TOPIC, encode_record(record).encode(), keys=[f"id-{number}"]))
    monkeypatch.setattr(search, "STEP_MATCHES", 2)
    api = await api_for(users["reader"], "read")
    found: list[str] = []
    older, steps = "", 0
    while older is not None:
        status, answer = await api.call("get", f"/traces?group=walkers&cursor={older}")
        assert status == 200 and len(answer["items"]) <= 2
        found += [one["message_id"] for one in answer["items"]]
        assert all((one["outcome"], one["topic"]) == ("exception", "") for one in answer["items"])
        older, steps = answer["next"], steps + 1
    assert found == [f"id-{number}" for number in reversed(range(6))] and steps >= 3
    monkeypatch.undo()
    slow = (await api.call("get", "/traces?group=walkers&which=slow&slow_ms=300"))[1]["items"]
    assert [one["took_ms"] for one in slow] == [500, 400, 300]


async def test_the_newest_are_first_also_where_clients_told_of_them_together(
    told: Told, users: dict[str, User], gateway: Gateway
) -> None:
    def record(at_ms: int) -> str:
        return encode_record(TraceRecord(
            kind=TraceKind.SUB_AFTER, msg_id=f"mixed-{at_ms}", group="mixers", request_id=str(at_ms),
            time_ms=at_ms, is_success=True, cost_ms=1, outcome=ConsumeOutcome.SUCCESS,
        ))  # fmt: skip

    for times in ((1, 4), (2, 3)):
        body = "".join(record(at_ms) for at_ms in times).encode()
        await gateway.messages.send(Message(TRACE_TOPIC, body))
    api = await api_for(users["reader"], "read")
    found = (await api.call("get", "/traces?group=mixers"))[1]["items"]
    assert [one["message_id"] for one in found] == ["mixed-4", "mixed-3", "mixed-2", "mixed-1"]


async def test_the_scripts_steps_have_rows_and_a_cursor(told: Told, log_in: Client) -> None:
    client = await log_in("reader")
    rows: list[str] = []
    older: str | None = ""
    while older is not None:  # on a busy machine one step does not see all
        step = json.loads((await client.get("/traces/further", {"topic": told.topic, "older": older})).content)
        rows, older = rows + step["rows"], step["older"]
        assert step["troubles"] == []
    assert len(rows) >= 2 and all('class="row"' in row for row in rows)
    assert (await client.get("/traces/further", {"since": "tomorrow"})).status_code == 422


async def test_an_account_of_some_names_sees_their_traces_alone(told: Told, users: dict[str, User]) -> None:
    reader = users["reader"]
    await User.objects.filter(pk=reader.pk).aupdate(name_prefixes="others-")
    reader = await User.objects.aget(pk=reader.pk)
    api = await api_for(reader, "read")
    for query in (f"q={told.msg_id}", f"q={told.key}", "", f"topic={told.topic}"):
        assert (await api.call("get", f"/traces?{query}"))[1]["items"] == []
    await User.objects.filter(pk=reader.pk).aupdate(name_prefixes="traced- tracers-")
    api = await api_for(await User.objects.aget(pk=reader.pk), "read")
    answer = (await api.call("get", f"/traces?q={told.msg_id}"))[1]
    assert {one["what"] for one in answer["items"]} == {"Pub", "SubAfter"}


async def test_an_account_of_some_names_is_told_of_no_other_group(told: Told, log_in: Client) -> None:
    client = await log_in("reader")
    reader = await User.objects.aget(username="reader")
    await User.objects.filter(pk=reader.pk).aupdate(name_prefixes=told.topic)  # it sees the topic, and no group
    api = await api_for(await User.objects.aget(pk=reader.pk), "read")
    (sent,) = (await api.call("get", f"/traces?q={told.msg_id}"))[1]["items"]
    assert (sent["what"], sent["group"]) == ("Pub", "")
    life = await client.get(f"/trace/{told.msg_id}", follow=True)
    place = life.redirect_chain[0][0].partition("?")[0].rpartition("/")[2]
    text = life.content.decode()
    assert "Stored" in text and "Sent" in text and "Handled" not in text
    status, answer = await api.call("get", f"/topics/{told.topic}/messages/{place}/trace")
    assert status == 200
    for said in (text, json.dumps(answer)):
        assert told.group not in said


async def test_what_is_no_record_is_no_event_and_an_old_clients_has_the_brokers_time(
    told: Told, gateway: Gateway
) -> None:
    old = "SubAfter\x01request\x01old-id\x0142\x01false\x01key-a key-b\x02"  # neither outcome nor time and group
    await gateway.messages.send(Message(TRACE_TOPIC, (old + "Pub\x01torn\x02noise").encode(), keys=["old-id"]))
    detail = await gateway.topics.get(TRACE_TOPIC)

    async def found() -> list[MessageExt]:
        return list((await gateway.messages.find(detail, "old-id", limit=1)).messages)

    await until(found)
    (message,) = await found()
    (event,) = events_of(message)
    assert (event.at_ms, event.took_ms, event.is_bad) == (message.store_timestamp, 42, True)
    assert (event.keys, event.outcome, event.group) == ("key-a key-b", "failed", "")
