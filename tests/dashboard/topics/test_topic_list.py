"""The list of topics: groups and worst lag, read and write queues apart, CSV."""

from __future__ import annotations

import csv
import io
import time

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupPlace
from dashboard.cluster.values import TopicSettings, TopicSummary
from dashboard.groups.group_cache import GroupBook, group_book
from dashboard.status.board import WatchedGroup
from dashboard.topics.columns import COLUMNS, Line
from dashboard.topics.topic_cache import TopicFacts
from tests.dashboard.conftest import Client, Topic


@pytest.fixture
def _two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    places = {
        name: tuple(GroupPlace(topic, "broker-a", 0, lag, lag_ms) for topic in ("listed-b", "saved-listed"))
        for name, lag, lag_ms in (("far", 4321, 60_000), ("near", 1, 5))
    }
    seen = tuple(WatchedGroup(name, None, None, 1, now, places=held) for name, held in places.items())
    monkeypatch.setattr(GroupBook, "seen", property(lambda book: seen if book is group_book else ()))


@pytest.mark.usefixtures("_two_groups")
async def test_the_list_has_groups_and_the_worst_lag_and_sorts_by_it(log_in: Client, make_topic: Topic) -> None:
    for name in ("listed-a", "listed-b"):
        await make_topic(name)
    client = await log_in("reader")
    page = (await client.get("/topics?q=listed-&sort=lag&down=1")).content.decode()
    assert page.index("listed-b") < page.index("listed-a") and "4\u202f321 · 1\u202fmin" in page
    page = (await client.get("/topics?q=listed-&sort=groups")).content.decode()
    assert page.index("listed-a") < page.index("listed-b")


@pytest.mark.usefixtures("_two_groups")
async def test_the_list_can_be_saved_as_csv_without_formulas(log_in: Client, make_topic: Topic) -> None:
    for name in ("-listed-formula", "saved-listed"):
        await make_topic(name)
    answer = await (await log_in("reader")).get("/topics/export.csv?q=listed")
    rows = {row["topic"]: row for row in csv.DictReader(io.StringIO(answer.content.decode()))}
    assert answer.headers["Content-Type"].startswith("text/csv") and "'-listed-formula" in rows
    found = rows["saved-listed"]
    assert (found["groups"], found["worst_lag"], found["worst_group"]) == ("2", "4321", "far")
    assert rows["'-listed-formula"]["worst_lag"] == "", "what is unknown is no zero"


async def test_read_and_write_queues_stand_apart_if_unlike(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("listed-shrunk", queues=8)
    detail = await gateway.topics.get("listed-shrunk")
    assert detail.settings[0].read_queues == detail.settings[0].write_queues == 8
    client = await log_in("operator")
    form = {"queues": "4", "perm": "read-write"}
    assert (await client.post("/topic/listed-shrunk/settings", form | {"read_queues": "3"})).status_code == 422
    await client.post("/topic/listed-shrunk/settings", form | {"read_queues": "8"})
    page = (await client.get("/topics?q=listed-shrunk")).content.decode()
    assert "8 are read, 4 are written" in page
    await client.post("/topic/listed-shrunk/settings", form)
    assert (await gateway.topics.get("listed-shrunk")).settings[0].read_queues == 4


@pytest.mark.parametrize(("kept", "shown"), [((60_000, 60_000), 60_000), ((60_000, None), None), ((None,), None)])
def test_the_csv_says_how_long_a_topic_keeps_if_brokers_agree(kept: tuple[int | None, ...], shown: int | None) -> None:
    settings = tuple(TopicSettings(f"b{number}", 4, 4, 6, False, ms) for number, ms in enumerate(kept))
    line = Line(TopicSummary("t", "normal", settings), None, None, lambda: TopicFacts(None, False, (), 0.0))
    assert COLUMNS["retention_ms"](line) == shown
    assert COLUMNS["stored"](line) is None, "what is not counted yet is no zero"
