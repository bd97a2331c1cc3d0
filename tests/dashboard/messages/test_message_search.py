"""Finding messages by what is in them and by when they came, on the page and over REST, against a real broker."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from dashboard.cluster import message_search
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.units import moment
from dashboard.models.management import User
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic, api_for


def bodies(page: str) -> list[str]:
    return re.findall(r'preview"><code>([^<]*)</code>', page)


async def orders(make_topic: Topic, name: str, count: int = 8) -> None:
    """Numbered messages: the even ones are paid, every fourth is of the region eu."""
    await make_topic(
        name,
        queues=2,
        messages=[
            Message(name, f"Order {at} of Zoë".encode(), tags="paid" if at % 2 == 0 else "open", keys=f"k{at}",
                    properties={"region": "eu" if at % 4 == 0 else "us"})
            for at in range(count)
        ],
    )  # fmt: skip


FOUND_BY = {
    "tag:paid": [6, 4, 2, 0], "region=eu": [4, 0], "tag:open region=us order": [7, 5, 3, 1], '"order 3"': [3],
    "ZOË": [7, 6, 5, 4, 3, 2, 1, 0], "key:k5": [5], "key:k5 tag:paid": [], "k5": [5], "nothing": [],
}  # fmt: skip


async def test_the_box_finds_by_tag_property_key_and_words(log_in: Client, make_topic: Topic) -> None:
    await orders(make_topic, "found-by")
    client = await log_in("reader")
    for q, found in FOUND_BY.items():
        page = (await client.get("/topic/found-by", {"q": q})).content.decode()
        assert bodies(page) == [f"Order {at} of Zoë" for at in found], q
        assert found or "No messages with" in page, q


async def test_a_place_opens_it_and_another_topic_is_linked(
    log_in: Client, gateway: Gateway, make_topic: Topic
) -> None:
    await make_topic("placed", queues=2)
    sent = await gateway.messages.send(Message("placed", b"there"), queue_id=1)
    client = await log_in("reader")
    for q in ("q1 @ 0", "placed q1 @ 0", f"{sent.queue.broker_name} q1@0"):
        assert bodies((await client.get("/topic/placed", {"q": q})).content.decode()) == ["there"], q
    assert "No message there" in (await client.get("/topic/placed", {"q": "q1 @ 1"})).content.decode()
    page = (await client.get("/topic/placed", {"q": "elsewhere q1 @ 0"})).content.decode()
    assert 'href="/topic/elsewhere?q=q1%20%40%200"' in page


async def test_from_and_to_choose_by_the_time_of_storing(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await orders(make_topic, "timed", 6)
    page = await gateway.messages.newest(await gateway.topics.get("timed"), limit=10)
    times = {bytes(message.body).decode(): message.store_timestamp for message in page.messages}
    first, last = sorted(times.values())[1], sorted(times.values())[4]
    wanted = sorted((body for body, at in times.items() if first <= at <= last), reverse=True)
    client = await log_in("reader")
    response = await client.get("/topic/timed", {"since": moment(first), "until": moment(last)})
    assert bodies(response.content.decode()) == wanted
    assert len(bodies((await client.get("/topic/timed", {"since": "1 h"})).content.decode())) == 6
    assert "of that time" in (await client.get("/topic/timed", {"until": "1 h"})).content.decode()
    wrong = (await client.get("/topic/timed", {"since": "yesterday", "until": "1 h"})).content.decode()
    assert "From: Write it like" in wrong and bodies(wrong) == []
    assert (
        "before the beginning" in (await client.get("/topic/timed", {"since": "1 h", "until": "2 h"})).content.decode()
    )


async def test_a_search_goes_on_in_steps(log_in: Client, make_topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_search, "STEP_MESSAGES", 3)
    monkeypatch.setattr("dashboard.cluster.message_scan.WINDOW_MESSAGES", 2)
    monkeypatch.setattr(message_search, "STEP_S", 60.0)
    await orders(make_topic, "steps", 12)
    client = await log_in("reader")
    page = (await client.get("/topic/steps", {"q": "tag:paid"})).content.decode()
    [older] = re.findall(r'data-older="([^"]+)"', page)
    rows, scanned = bodies(page), int(re.findall(r'data-scanned="(\d+)"', page)[0])
    while older:
        step = (await client.get("/topic/steps/search", {"q": "tag:paid", "older": older})).json()
        rows += bodies("".join(step["rows"]))
        scanned, older = scanned + step["scanned"], step["older"]
    assert rows == [f"Order {at} of Zoë" for at in (10, 8, 6, 4, 2, 0)]
    assert scanned == 12
    assert (await client.get("/topic/steps/search", {"since": "x"})).status_code == 422
    assert (await client.get("/topic/steps-not/search", {"q": "x"})).status_code == 404


async def test_too_many_searches_are_refused(
    log_in: Client, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "SEARCHES_WAITING_MAX", 0)
    await orders(make_topic, "crowded", 1)
    answer = await (await log_in("reader")).get("/topic/crowded", {"q": "tag:paid"})
    assert answer.status_code == 503 and "Too many searches" in answer.content.decode()


async def test_rest_finds_gets_and_sends(make_topic: Topic, users: dict[str, User]) -> None:
    await orders(make_topic, "rest-messages", 4)
    api = await api_for(users["operator"])

    async def find(query: str) -> Any:
        status, answer = await api.call("get", f"/topics/rest-messages/messages?{query}")
        assert status == 200, answer
        return answer

    assert (await find(""))["items"][0]["preview"] == "Order 3 of Zoë"
    found = await find("q=tag:paid&limit=1")
    assert (found["how"], [item["keys"] for item in found["items"]]) == ("search", [["k2"]])
    rest = await find(f"q=tag:paid&cursor={quote(found['next'])}")
    assert ([item["keys"] for item in rest["items"]], rest["next"]) == ([["k0"]], None)
    [indexed] = (await find("q=k1"))["items"]
    status, whole = await api.call("get", f"/topics/rest-messages/messages/{indexed['place']}")
    assert (status, whole["body"], whole["properties"]["region"]) == (200, "Order 1 of Zoë", "us")
    wanted = {"body_base64": "AP8=", "keys": ["bytes"], "properties": {"a": "b"}}
    status, sent = await api.call("post", "/topics/rest-messages/messages", wanted)
    assert status == 201
    place = f"{sent['broker']}.{sent['queue_id']}.{sent['offset']}"
    _, whole = await api.call("get", f"/topics/rest-messages/messages/{place}")
    assert (whole["body"], whole["body_base64"], whole["properties"]["a"]) == (None, "AP8=", "b")
    for body in ({"body_base64": "!"}, {"delay_level": 99}, {"properties": {"KEYS": "x"}}):
        assert (await api.call("post", "/topics/rest-messages/messages", body))[0] == 422, body
    assert (await api.call("get", "/topics/rest-messages/messages?since=x"))[0] == 422
    assert (await api.call("get", "/topics/rest-messages/messages/nowhere"))[0] == 404
