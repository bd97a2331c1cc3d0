"""Parts of pages that all tabs share: drawn once, whoever shows them, and only what their account may see."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from dashboard.cluster.calls import KeptTables
from dashboard.cluster.gateway import Gateway
from dashboard.live import parts, tail
from dashboard.live.parts import part_watch
from dashboard.live.sampler import Sampler
from dashboard.live.tail import topic_tail
from dashboard.models.management import User
from tests.dashboard.conftest import Client, Topic
from tests.dashboard.live.socket_client import connected, frame_of
from tests.waiting import until

TABS = 6


@pytest_asyncio.fixture(loop_scope="session")
async def _drawing(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Each part is due at once again, so no test waits for seconds."""
    monkeypatch.setattr(parts, "LOOK_S", 0.02)
    monkeypatch.setattr(parts, "EACH_S", dict.fromkeys(parts.EACH_S, 0.05))
    running = asyncio.create_task(part_watch.run())
    yield
    running.cancel()
    await asyncio.wait({running})
    assert part_watch.shown == frozenset(), "tabs that are closed leave nothing behind"


@pytest.mark.usefixtures("_drawing")
async def test_a_list_is_drawn_once_for_all(log_in: Client, make_topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_topic("shared-list")
    drawn: list[str] = []
    read: list[str] = []
    draw, ask = parts.draw_part, KeptTables.ask

    async def counted_draw(part, principal):  # type: ignore[no-untyped-def]
        drawn.append(part.address)
        return await draw(part, principal)

    async def counted_read(self, admin, broker):  # type: ignore[no-untyped-def]
        read.append(broker.name)
        return await ask(self, admin, broker)

    monkeypatch.setattr(parts, "draw_part", counted_draw)
    monkeypatch.setattr(KeptTables, "ask", counted_read)
    client, channel = await log_in("reader"), "part:topic-list /topics?q=shared-list"
    async with AsyncExitStack() as tabs:
        sockets = [await tabs.enter_async_context(connected(client)) for _ in range(TABS)]
        for socket in sockets:
            await socket.send_to(json.dumps({"subscribe": [channel]}))
        await until(lambda: part_watch.tabs == TABS)
        assert len(part_watch.shown) == 1
        for socket in sockets:
            frame = await frame_of(socket, channel, "html")
            assert "shared-list" in frame["html"] and "<html" not in frame["html"]
        drawn.clear()
        read.clear()
        for socket in sockets:  # another frame for each of them
            await frame_of(socket, channel)
            await frame_of(socket, channel)
        assert set(drawn) == {"/topics?q=shared-list"}
        assert len(read) <= len(drawn) + 1, "no tab asks by itself"


@pytest.mark.usefixtures("_drawing")
async def test_what_another_program_makes_comes_to_the_tab_by_itself(log_in: Client, make_topic: Topic) -> None:
    channel = "part:topic-list /topics?q=comes-later"
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": [channel]}))
        assert "Nothing matches" in (await frame_of(socket, channel, "html"))["html"]
        await make_topic("comes-later")
        while "/topic/comes-later" not in (await frame_of(socket, channel, "html"))["html"]:
            pass


@pytest.mark.usefixtures("_drawing")
async def test_two_tabs_in_two_languages_get_each_their_own_at_once(log_in: Client, gateway: Gateway) -> None:
    english, chinese = await log_in("reader"), await log_in("admin")
    await User.objects.filter(username="admin").aupdate(language="zh-hans")
    part = "part:topic-list /topics?q=is-in-no-name"
    sampler = Sampler(gateway)
    await sampler.sample()
    async with connected(english) as first, connected(chinese) as second:
        for socket in (first, second):
            await socket.send_to(json.dumps({"subscribe": ["overview", part]}))
        assert "Nothing matches" in (await frame_of(first, part, "html"))["html"]
        assert "匹配的内容" in (await frame_of(second, part, "html"))["html"]
        await sampler.sample()  # the frames of both are made from one look
        for socket, is_chinese in ((first, False), (second, True)):
            told = (await frame_of(socket, "overview"))["figures"]
            texts = "".join(f"{text}{why or ''}" for text, _, why in told.values())
            assert (re.search("[\u4e00-\u9fff]", texts) is not None) == is_chinese, texts


@pytest.mark.usefixtures("_drawing")
async def test_s_an_account_with_a_limit_gets_a_list_of_its_own(log_in: Client, make_topic: Topic) -> None:
    await make_topic("own-part")
    await make_topic("foreign-part")
    everyone, limited = await log_in("admin"), await log_in("operator")
    await User.objects.filter(role="operator").aupdate(name_prefixes="own-")
    channel = "part:topic-list /topics?q=-part"
    async with connected(everyone) as first, connected(limited) as second:
        for socket in (first, second):
            await socket.send_to(json.dumps({"subscribe": [channel]}))
        assert "foreign-part" in (await frame_of(first, channel, "html"))["html"]
        html = (await frame_of(second, channel, "html"))["html"]
        assert "own-part" in html and "foreign-part" not in html
        assert len(part_watch.shown) == 2


@pytest.mark.parametrize(
    "channel",
    [
        "part:topic-list /groups", "part:group-now /group/foreign", "part:client-list /clients",
        "part:topic-list /topics/create", "part:topic-list /no-such-page", "part:people /users", "part:topic-list",
        "part:",
    ],
)  # fmt: skip
async def test_a_part_that_is_none_or_not_ones_own_is_refused(log_in: Client, gateway: Gateway, channel: str) -> None:
    limited = await log_in("operator")
    await User.objects.filter(role="operator").aupdate(name_prefixes="own-")
    async with connected(limited) as socket:
        await socket.send_to(json.dumps({"subscribe": [channel]}))
        assert json.loads(await socket.receive_from()) == {"channel": channel, "error": "not allowed"}


async def test_more_different_lists_than_are_drawn_are_refused_in_words(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PARTS_MAX", 1)
    channels = [f"part:topic-list /topics?q={text}" for text in ("a", "b")]
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": channels}))
        answer = json.loads(await socket.receive_from())
        assert answer["channel"] == channels[1] and "too many different lists" in answer["error"]


async def test_s15_one_account_with_many_lists_leaves_the_others_theirs(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PARTS_MAX", 3)
    channels = [f"part:topic-list /topics?q={text}" for text in ("a", "b", "c")]
    greedy, modest = await log_in("reader"), await log_in("admin")
    async with connected(greedy) as first, connected(modest) as second:
        await first.send_to(json.dumps({"subscribe": channels}))
        await until(lambda: len(part_watch.shown) == 3)
        await second.send_to(json.dumps({"subscribe": ["part:group-list /groups"]}))
        refused = json.loads(await first.receive_from())
        assert refused["channel"] == channels[2] and "too many different lists" in refused["error"]
        assert "part:group-list /groups" in {part.channel for part in part_watch.shown}
        await first.send_to(json.dumps({"unsubscribe": channels}))  # also the one that it lost
        await until(lambda: len(part_watch.shown) == 1)


async def test_s15_one_account_with_many_topics_leaves_the_others_theirs(
    log_in: Client, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "TOPICS_MAX", 2)
    topics = [await make_topic(f"shared-{number}") for number in range(3)]
    async with connected(await log_in("reader")) as first, connected(await log_in("admin")) as second:
        await first.send_to(json.dumps({"subscribe": [f"topic:{topic}" for topic in topics[:2]]}))
        await until(lambda: len(topic_tail.watched) == 2)
        await second.send_to(json.dumps({"subscribe": [f"topic:{topics[2]}"]}))
        await until(lambda: topic_tail.watched == {topics[0], topics[2]})
        while (told := json.loads(await first.receive_from())).get("channel") != f"topic:{topics[1]}":
            pass
        assert "too many topics" in told["error"]
    assert not topic_tail.watched


@pytest.mark.usefixtures("_drawing")
async def test_a_page_that_fails_sends_nothing_and_ends_no_other(log_in: Client, make_topic: Topic) -> None:
    await make_topic("beside-a-failure")
    fails, works = "part:group-now /group/no-such-group", "part:topic-list /topics?q=beside-a-failure"
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": [fails, works]}))
        for _ in range(3):
            assert (await frame_of(socket, works))["channel"] == works
        assert len(part_watch.shown) == 2
