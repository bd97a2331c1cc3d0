"""A figure that several pages show is the same on each of them, and sums are those of their parts, under load."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from html import unescape

import pytest

from dashboard.cluster import units
from dashboard.cluster.gateway import Gateway
from dashboard.groups.group_cache import group_book
from dashboard.live.sampler import Sampler
from dashboard.status.board import board
from dashboard.topics.topic_cache import topic_book
from gantrymq import Producer
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client
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
        consuming(cluster, GROUP, TOPIC) as seen,
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


async def test_no_page_shows_a_figure_that_another_shows_differently(
    log_in: Client,
    gateway: Gateway,
    cluster: ServingCluster,
    make_topic: Callable[..., Awaitable[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dashboard.groups.group_cache.LOOK_EACH_S", 0.0)  # each look at all groups
    await make_topic(TOPIC, queues=2)
    await loaded(cluster, gateway)
    client, name = await log_in("admin"), cluster.broker.config.broker_name
    shown: dict[str, dict[str, str]] = {}
    pages = ("/", "/brokers", f"/broker/{name}", "/groups", f"/group/{GROUP}", "/topics", f"/topic/{TOPIC}/queues")
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
    group_page = (await client.get(f"/group/{GROUP}")).content.decode()
    lags = re.findall(r'data-cell="[^"]+ \d+ lag">([^<]+)<', group_page)
    assert sum(float(text.replace(units.THIN, "")) for text in lags) == number(f"row.{GROUP}.lag")
