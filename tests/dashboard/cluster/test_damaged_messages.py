"""A damaged message is named as what it is, wherever it is met, and the others are shown."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dashboard.cluster.browse import read_cursor
from dashboard.cluster.errors import MessageDamaged
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_query import understand
from dashboard.cluster.message_scan import ANY_TIME, TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.cluster.values import TopicDetail
from dashboard.messages.export import exported
from gantrymq import AdminClient
from gantrymq.errors import RecordError
from tests.gantrymq.damaged_log import COUNT, DAMAGE, Spoil, body_byte, page, queue_offset, spoilt
from tests.harness import ServingCluster

LOSING = [spoil for spoil in DAMAGE if spoil is not queue_offset]  # that one can be guessed, and is shown


@contextlib.asynccontextmanager
async def damaged_at(folder: Path, spoil: Spoil) -> AsyncIterator[tuple[ServingCluster, set[int], Gateway]]:
    """A cluster with damage, the offsets that are lost, and a gateway to it."""
    async with spoilt(folder, spoil) as (cluster, lost):
        gateway = Gateway(cluster.namesrv_address)
        try:
            yield cluster, lost, gateway
        finally:
            await gateway.close()


async def detail_of(gateway: Gateway) -> TopicDetail:
    return await gateway.topics.get("T")


@pytest.mark.parametrize("spoil", LOSING)
async def test_the_newest_messages_are_all_but_the_damaged_ones_which_are_named(tmp_path: Path, spoil: Spoil) -> None:
    async with damaged_at(tmp_path, spoil) as (cluster, lost, gateway):
        detail = await detail_of(gateway)
        pages = [await gateway.messages.newest(detail, limit=50)]
        while pages[-1].older is not None:
            pages.append(await gateway.messages.newest(detail, limit=50, before=read_cursor(pages[-1].older)))
        broker = cluster.broker.config.broker_name
        with pytest.raises(MessageDamaged, match="This message is damaged: T, queue 0, offset"):
            await gateway.messages.get("T", broker, 0, min(lost))
        there = min(set(range(COUNT)) - lost)
        assert (await gateway.messages.get("T", broker, 0, there)).queue_offset == there
    shown = [message.queue_offset for page_ in pages for message in page_.messages]
    assert shown == [number for number in reversed(range(COUNT)) if number not in lost]
    damaged = [each for page_ in pages for each in page_.damaged]
    assert {each.queue_offset for each in damaged} == lost
    assert {each.queue.broker_name for each in damaged} == {broker}


@pytest.mark.parametrize("spoil", [body_byte, page])
async def test_a_look_says_which_messages_are_damaged_and_a_tail_goes_on(tmp_path: Path, spoil: Spoil) -> None:
    async with damaged_at(tmp_path, spoil) as (_cluster, lost, gateway):
        detail = await detail_of(gateway)
        before = {queue.key: max(lost) + 5 for queue in detail.queues}
        looked = await gateway.lookup.look(detail, Search(understand(""), ANY_TIME), older=before, limit=60)
        place = Search(understand(f"q0 @ {min(lost)}"), ANY_TIME)
        at_place = await gateway.lookup.look(detail, place, limit=60)
        (queue,) = detail.queues
        behind = await gateway.messages.pull_new("T", queue, min(lost), 50, 30.0)
    behind_it = [line.queue_offset for line in looked.lines if line.queue_offset > max(lost)]
    assert behind_it == [max(lost) + number for number in (4, 3, 2, 1)]
    (line,) = at_place.lines
    assert (line.queue_offset, line.damage[:12]) == (min(lost), "T, queue 0, ")
    assert [line.queue_offset for line in looked.lines if line.damage] == sorted(lost, reverse=True)
    assert [line.queue_offset for line in looked.lines] == sorted(
        (line.queue_offset for line in looked.lines), reverse=True
    )
    assert not looked.failures and not at_place.failures
    messages, damaged = behind
    assert messages[0].queue_offset == max(lost) + 1
    assert {each.queue_offset for each in damaged} == lost


async def test_a_key_and_an_id_name_the_damaged_message_alone(tmp_path: Path) -> None:
    async with spoilt(tmp_path, body_byte) as (cluster, _lost):
        (unit,) = cluster.broker.store.consume_queue_units("T", 0, 100, 1)
        async with AdminClient(cluster.namesrv_address) as admin:
            assert [each.queue_offset for each in await admin.messages.find_by_key("T", "k99")] == [99]
            assert await admin.messages.find_by_key("T", "k100") == []
            with pytest.raises(RecordError, match=f"at offset {unit.physical_offset} of the log .* damaged"):
                await admin.messages.view_at(cluster.broker_address, unit.physical_offset)


@pytest.mark.parametrize("words", ["", "body", "tag:nothing-has-it"])
@pytest.mark.parametrize("spoil", [body_byte, page])
async def test_a_search_by_words_or_time_passes_damage_and_names_it(tmp_path: Path, spoil: Spoil, words: str) -> None:
    async with damaged_at(tmp_path, spoil) as (cluster, lost, gateway):
        search = Search(understand(words), TimeSpan(since_ms=1))
        steps, older = [], None
        while not steps or older:
            steps.append(await gateway.search.step(await detail_of(gateway), search, older=older))
            older = read_cursor(steps[-1].older or "")
    lines = [line for step in steps for line in step.lines]
    assert [line.queue_offset for line in lines if line.damage] == sorted(lost, reverse=True)
    assert {line.broker_name for line in lines} == {cluster.broker.config.broker_name}
    assert not any(step.failures for step in steps)
    if not words:
        assert [line.queue_offset for line in lines] == list(reversed(range(COUNT)))
        assert sum(step.scanned for step in steps) == COUNT


async def test_the_page_of_a_key_has_a_row_of_the_damaged_message(tmp_path: Path) -> None:
    async with damaged_at(tmp_path, body_byte) as (_cluster, lost, gateway):
        search = Search(understand(f"k{min(lost)}"), ANY_TIME)
        looked = await gateway.lookup.look(await detail_of(gateway), search, limit=60)
    assert [(line.queue_offset, bool(line.damage)) for line in looked.lines] == [(min(lost), True)]
    assert looked.how == "index"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
async def test_a_file_has_all_messages_and_the_place_of_the_damaged_ones(tmp_path: Path, form: str) -> None:
    async with damaged_at(tmp_path, page) as (_cluster, lost, gateway):
        search = Search(understand(""), TimeSpan(since_ms=1))
        rows = [row async for row in exported(gateway, await detail_of(gateway), search, form)]
    assert len(rows) == COUNT + (form == "csv")
    damaged = [row for row in rows if b"damaged" in row]
    assert len(damaged) == len(lost) and b".0.%d" % max(lost) in damaged[0]
