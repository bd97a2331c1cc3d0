"""A figure that several pages show is the same on each of them, and sums are those of their parts, under load."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import pytest

from dashboard.cluster import units
from dashboard.cluster.gateway import Gateway
from dashboard.groups.group_cache import group_book
from dashboard.live.sampler import Sampler
from dashboard.models.management import User
from dashboard.status.board import board
from dashboard.topics.topic_cache import topic_book
from gantrymq import Producer
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.groups.group_members import consuming
from tests.harness import ServingCluster
from tests.waiting import until

TOPIC, GROUP = "agreeing", "agreeing-app"
LOOKS = 4
_FIGURE = re.compile(r'data-live="([^"]+)"[^>]*>([^<]*)<')


async def loaded(cluster: ServingCluster, gateway: Gateway) -> None:
    """Messages flow while the cluster is looked at; then they stop, so that what is read now is what was seen last."""
    sampler = Sampler(gateway)
    async with (
        consuming(gateway, GROUP, TOPIC) as seen,
        Producer(cluster.namesrv_address, group="agreeing-shop") as shop,
    ):
        for _ in range(LOOKS):
            for number in range(25):
                await shop.send(Message(TOPIC, b"figure %d" % number))
            await sampler.sample()
            await group_book.look_round(gateway)
        await until(lambda: len(seen) >= 1)
    for number in range(7):  # what nobody consumes
        await gateway.messages.send(Message(TOPIC, b"left %d" % number))
    await topic_book.look(gateway)
    await group_book.look_round(gateway)
    await sampler.sample()


@pytest.fixture(autouse=True)
def look_at_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each round, however many groups the tests before have left."""
    monkeypatch.setattr("dashboard.groups.group_cache.LOOK_EACH_S", 0.0)
    monkeypatch.setattr("dashboard.groups.group_cache.LOOKS_A_SECOND", 10_000)


async def test_no_page_shows_a_figure_that_another_shows_differently(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    await make_topic(TOPIC, queues=2)
    await loaded(cluster, gateway)
    client, name = await log_in("admin"), cluster.broker.config.broker_name
    shown: dict[str, dict[str, str]] = {}
    pages = (
        "/", "/brokers", f"/broker/{name}", f"/groups?q={GROUP}", f"/group/{GROUP}", f"/topics?q={TOPIC}",
        f"/topic/{TOPIC}/queues",
    )  # fmt: skip
    for address in pages:
        page = (await client.get(address)).content.decode()
        for key, text in _FIGURE.findall(page):
            if not key.endswith((".uptime", ".written", ".rss", ".cpu")):  # they go on by themselves
                shown.setdefault(key, {})[address] = unescape(text)
    differing = {key: texts for key, texts in shown.items() if len(set(texts.values())) > 1}
    assert differing == {}
    shared = {key for key, texts in shown.items() if len(texts) > 1}
    assert {f"broker.{name}.in", f"broker.{name}.disk", f"row.{GROUP}.lag", f"row.{GROUP}.out"} <= shared
    figures = {key: next(iter(texts.values())) for key, texts in shown.items()}

    def number(key: str) -> float:
        return float(figures[key].replace(units.THIN, "").removeprefix("≥"))

    snapshot = board.snapshot
    assert snapshot is not None
    assert number("cluster.lag") == sum(group.lag or 0 for group in snapshot.groups)
    assert number(f"row.{GROUP}.lag") >= 7, "under load some wait"
    assert figures["cluster.in"] == figures[f"broker.{name}.in"], "one broker is the cluster"
    assert number("topic.stored") == LOOKS * 25 + 7 == number(f"row.{TOPIC}.stored")
    queues = [key for key in figures if re.fullmatch(r"queue\..+\.stored", key)]
    assert len(queues) == 2 and sum(map(number, queues)) == number("topic.stored")
    rest = await api_for(await User.objects.aget(username="admin"), "read")
    [topic] = (await rest.call("get", f"/topics?q={TOPIC}"))[1]["items"]
    group = (await rest.call("get", f"/groups/{GROUP}"))[1]
    told = {f"row.{TOPIC}.in": topic["in_rate"], f"row.{TOPIC}.out": topic["figures"]["out_rate"],
            f"row.{GROUP}.in": group["trend"]["in_rate"], f"row.{GROUP}.out": group["trend"]["out_rate"]}  # fmt: skip
    assert {key: units.rate(rate) for key, rate in told.items()} == {key: figures[key] for key in told}
    assert (topic["stored_messages"], group["lag"]) == (number("topic.stored"), number(f"row.{GROUP}.lag"))
    group_page = (await client.get(f"/group/{GROUP}")).content.decode()
    lags = re.findall(r'data-cell="[^"]+ \d+ lag">([^<]+)<', group_page)
    assert sum(float(text.replace(units.THIN, "")) for text in lags) == number(f"row.{GROUP}.lag")


async def test_figures_of_a_running_topic_lie_between_what_was_sent_before_and_after_they_were_read(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("sent-meanwhile", queues=2)
    client = await log_in("admin")
    rest = await api_for(await User.objects.aget(username="admin"), "read")
    begun = confirmed = 0
    async with (
        consuming(gateway, "running-app", topic) as seen,
        Producer(cluster.namesrv_address, group="running-shop") as shop,
    ):

        async def send() -> None:
            nonlocal begun, confirmed
            while True:
                begun += 1
                await shop.send(Message(topic, b"x"))
                confirmed += 1

        sending = asyncio.create_task(send())
        try:
            await until(lambda: confirmed >= 20 and bool(seen))
            at_least = confirmed
            await topic_book.look(gateway)
            await group_book.look_round(gateway)
            reached = confirmed
            await until(lambda: confirmed > reached)
            await group_book.look_round(gateway)
            for address in (f"/topics?q={topic}", f"/topic/{topic}/queues"):
                page = (await client.get(address)).content.decode()
                figures = {key: text.replace(units.THIN, "") for key, text in _FIGURE.findall(page)}
                stored = float(figures[f"row.{topic}.stored" if "q=" in address else "topic.stored"])
                assert at_least <= stored <= begun, address
            queues = [float(text) for key, text in figures.items() if re.fullmatch(r"queue\..+\.stored", key)]
            assert len(queues) == 2 and sum(queues) == stored, "one page is of one look"
            [told] = (await rest.call("get", f"/topics?q={topic}"))[1]["items"]
            assert at_least <= told["stored_messages"] <= begun
            group = (await rest.call("get", "/groups/running-app"))[1]
            assert 0 <= group["lag"] <= begun and group["trend"]["in_rate"] > 0
            assert not sending.done()
        finally:
            sending.cancel()
            await asyncio.wait([sending])
