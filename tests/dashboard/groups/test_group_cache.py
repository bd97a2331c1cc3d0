"""Looks at groups are shared: what brokers are asked depends neither on tabs nor on how many groups there are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dashboard.cluster.errors import ClusterUnreachable
from dashboard.cluster.group_values import GroupSummary
from dashboard.cluster.values import PartialFailure
from dashboard.groups import group_cache as books
from dashboard.groups.group_cache import LOOKS_A_SECOND, LOOKS_FOR_A_PAGE, WANTED_A_SECOND, GroupBook


class Cluster:
    """A gateway's groups, which counts what it is asked."""

    def __init__(self, count: int) -> None:
        self.names = [f"g{number:04}" for number in range(count)]
        self.failures: list[PartialFailure] = []
        self.listings, self.looks, self.groups = 0, list[str](), self

    async def settings(self) -> tuple[dict[str, Any], list[PartialFailure]]:
        self.listings += 1
        await asyncio.sleep(0)
        return {name: [] for name in self.names}, self.failures

    async def summaries(self, names: Sequence[str], settings: object) -> list[GroupSummary]:
        self.looks += names
        await asyncio.sleep(0)
        return [GroupSummary(name, 1, 1, members=1) for name in names]


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> GroupBook:
    """One that takes every look for old, and none of its lists."""
    monkeypatch.setattr(books, "LISTING_EACH_S", 3600.0)
    monkeypatch.setattr(books, "LOOK_EACH_S", 0.0)
    monkeypatch.setattr(books, "WANTED_EACH_S", 0.0)
    monkeypatch.setattr(books, "WANTED_S", 3600.0)
    return GroupBook()


async def test_a_hundred_tabs_ask_for_one_list_and_one_look(book: GroupBook) -> None:
    cluster: Any = Cluster(30)
    shown = cluster.names[:5]

    async def tab() -> int:
        await book.listing(cluster)
        return len(await book.rows(cluster, shown))

    assert await asyncio.gather(*(tab() for _ in range(100))) == [5] * 100
    assert (cluster.listings, cluster.looks) == (1, shown)


async def test_a_second_has_so_many_looks_and_those_that_pages_show_come_first(book: GroupBook) -> None:
    cluster: Any = Cluster(5000)
    await book.look_round(cluster)
    assert cluster.looks == cluster.names[:LOOKS_A_SECOND]
    shown = cluster.names[-50:]
    rows = await book.rows(cluster, shown)
    assert sum(row.at > 0 for row in rows) == LOOKS_FOR_A_PAGE, "the others are scanned in the next seconds"
    cluster.looks.clear()
    await book.look_round(cluster)
    assert len(cluster.looks) == LOOKS_A_SECOND
    assert set(cluster.looks[:WANTED_A_SECOND]) <= set(shown) and cluster.looks[-1] not in shown
    for _ in range(4):
        await book.look_round(cluster)
    assert all(row.at > 0 for row in await book.rows(cluster, shown))


async def test_what_is_gone_is_forgotten_unless_a_broker_is_silent(
    book: GroupBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "LISTING_EACH_S", 0.0)
    cluster: Any = Cluster(2)
    await book.look_round(cluster)
    cluster.names, cluster.failures = ["g0000"], [PartialFailure("broker-b", "no answer")]
    assert list((await book.listing(cluster)).settings) == ["g0000", "g0001"]
    cluster.failures = []
    assert list((await book.listing(cluster)).settings) == ["g0000"]
    assert [group.name for group in book.seen] == ["g0000"]


async def test_a_list_that_failed_is_asked_for_again(book: GroupBook, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = Cluster(1)
    ask = cluster.settings

    async def silent() -> None:
        raise ClusterUnreachable("no answer")

    cluster.settings = silent
    with pytest.raises(ClusterUnreachable):
        await book.listing(cluster)
    cluster.settings = ask
    assert list((await book.listing(cluster)).settings) == ["g0000"]
