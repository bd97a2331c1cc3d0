"""Topics' bytes and producers, from a real broker, one of RocketMQ's, and brokers that come and go."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import Reading, TopicSettings, TopicSummary
from dashboard.history.series import TOPIC_SIZE, name_for, now_and_then
from dashboard.limits.names import NameLimit, use
from dashboard.models.management import User
from dashboard.status.board import Snapshot
from dashboard.status.metric import Metrics
from dashboard.status.metrics import topic_list_metrics
from dashboard.topics.metrics import put_figures, size_text
from dashboard.topics.topic_cache import TopicBook, topic_book
from gantrymq import Message, Producer
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.errors import RequestTimeout, ResponseError
from gantrymq.remoting.codes import ResponseCode
from tests.dashboard.conftest import Client, Topic, api_for
from tests.harness import ServingCluster


async def look_at_all(book: TopicBook, gateway: Gateway) -> None:
    """As often as it takes to go round once."""
    while await book.look(gateway):
        pass


async def test_pages_csv_and_rest_tell_bytes_and_who_sends(
    log_in: Client, make_topic: Topic, gateway: Gateway, cluster: ServingCluster
) -> None:
    await make_topic("figured", queues=2, messages=[])
    await make_topic("figured-empty", queues=1)
    client = await log_in("reader")
    assert "has not reported it yet" in (await client.get("/topics?q=figured")).content.decode()
    async with Producer(cluster.namesrv_address, group="figured-app") as producer:
        for _ in range(20):
            await producer.send(Message("figured", body=b"x" * 1000))
        await look_at_all(topic_book, gateway)
        facts = topic_book.facts("figured", ["broker-a"])
        assert facts.is_exact and facts.size_bytes is not None and 20_000 < facts.size_bytes < 40_000
        [sender] = [one for one in facts.senders if one.groups]
        assert (sender.groups, sender.brokers) == (("figured-app",), ("broker-a",))
        page = (await client.get("/topics?q=figured&sort=size&down=1")).content.decode()
        assert size_text(facts) in page and "figured-app" in page
        assert page.index('href="/topic/figured"') < page.index('href="/topic/figured-empty"')
        page = (await client.get("/topic/figured/producers")).content.decode()
        assert sender.name in page and "figured-app" in page and size_text(facts) in page
        answer = await client.get("/topics/export.csv?q=figured")
        row = next(row for row in csv.DictReader(io.StringIO(answer.content.decode())) if row["topic"] == "figured")
        assert (row["size_bytes"], row["size_is_exact"]) == (str(facts.size_bytes), "true")
        assert sender.name in row["producer_names"]
        api = await api_for(await User.objects.aget(username="reader"), "read")
        _, told = await api.call("get", "/topics/figured/figures")
        assert told["size_bytes"] == facts.size_bytes and told["producers"][0]["last_stored_at"]
        _, listed = await api.call("get", "/topics?q=figured")
        assert [one["figures"]["size_bytes"] for one in listed["items"]] == [facts.size_bytes, 0]
    await look_at_all(topic_book, gateway)
    assert not [one for one in topic_book.facts("figured", ["broker-a"]).senders if one.groups], "it has disconnected"


async def test_a_deleted_topic_is_forgotten_a_name_beyond_a_limit_not_told(make_topic: Topic, gateway: Gateway) -> None:
    book = TopicBook()
    await make_topic("figured-gone")
    await look_at_all(book, gateway)
    assert "figured-gone" in book.sizes
    use(NameLimit(("orders-",)))
    try:
        assert book.facts("figured-gone", ["broker-a"]).size_bytes is None
    finally:
        use(NameLimit(()))
    await gateway.topics.delete("figured-gone")
    await look_at_all(book, gateway)
    assert "figured-gone" not in book.sizes


async def test_a_broker_of_rocketmq_is_asked_rarely_as_pages_say(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def refuse(admin: TopicAdmin, address: str, after: str = "") -> Any:
        asked.append(address)
        raise ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 29405 not supported")

    monkeypatch.setattr(TopicAdmin, "figures_page_at", refuse)
    book = TopicBook()
    for _ in range(5):
        await book.look(gateway)
    assert len(asked) == 1
    facts = book.facts("orders", ["broker-a"])
    assert facts.size_bytes is None and facts.why == "broker-a: brokers of RocketMQ do not report it"


async def test_what_the_silent_told_grows_old(
    make_topic: Topic, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_topic("figured-silent")
    book = TopicBook()
    await look_at_all(book, gateway)
    [row] = [row for row in (await gateway.topics.list()).rows if row.name == "figured-silent"]
    metrics = Metrics(now=book.facts(row.name, row.brokers).at + 20)
    put_figures(metrics, [row], book)
    assert metrics.values["row.figured-silent.size"].at == metrics.now, "scanned in turn: its age is no fault"

    async def be_silent(admin: TopicAdmin, address: str, after: str = "") -> Any:
        raise RequestTimeout(address, 29405, 2.0)

    monkeypatch.setattr(TopicAdmin, "figures_page_at", be_silent)
    later = book.facts(row.name, row.brokers).at + 20
    monkeypatch.setattr(gateway.calls, "clock", lambda: later)
    await book.look(gateway)
    facts = book.facts(row.name, row.brokers)
    put_figures(metrics, [row], book)
    assert facts.is_silent and metrics.values["row.figured-silent.size"].at == facts.at


def test_no_group_in_sight_is_not_none_while_the_broker_is_silent() -> None:
    settings = (TopicSettings("broker-a", 4, 4, 6, False),)
    known = TopicSummary("orders", "normal", settings, Reading(None, 1000.0, "no answer in time"))
    metrics = topic_list_metrics([known], 1000.0, {})
    assert (metrics.values["row.orders.groups"].text, metrics.values["row.orders.lag"].text) == ("—", "—")
    told = topic_list_metrics([TopicSummary("orders", "normal", settings)], 1000.0, {})
    assert told.values["row.orders.groups"].text == "0"


def test_sizes_are_kept_in_the_history() -> None:
    snapshot = Snapshot(1000.0, "", None, (), (), None, topic_sizes={"orders": 4096})
    assert now_and_then(snapshot)[name_for(TOPIC_SIZE, "orders")] == 4096


async def test_a_topics_charts_have_a_range(log_in: Client, make_topic: Topic) -> None:
    await make_topic("figured-charts")
    page = (await (await log_in("reader")).get("/topic/figured-charts/charts?range=7d")).content.decode()
    for title in ("Messages per second", "Lag of the worst group", "Size in the logs"):
        assert title in page
    assert 'href="?range=7d#ranges" aria-current="true"' in page
