"""The sum of stored messages: whole, or marked as what it is."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dashboard.cluster import units, values
from dashboard.live import stored_count
from dashboard.live.history import Minute
from dashboard.live.stored_count import TOPICS_A_SECOND, StoredCount
from dashboard.status.board import Point, Snapshot, Stored
from dashboard.status.metrics import overview_metrics

BROTHERS = frozenset({"broker-a", "broker-b"})


class Cluster:
    """Two brokers with 10 messages of each topic each, as a gateway's parts; it is asked for what runs now."""

    def __init__(self, topics: list[str]) -> None:
        self.running = sorted(BROTHERS)
        self.names = topics
        self.dies_while_read = False
        self.brokers, self.topics = self, self

    async def list(self, max_age_s: float | None = None) -> values.ClusterView | values.TopicListing:
        if max_age_s is not None:
            return values.ClusterView(tuple(values.BrokerRef(name, name, "C") for name in self.running), time.time())
        settings = tuple(values.TopicSettings(name, 4, 4, 6, False) for name in self.running)
        kinds = {"%DLQ%": "dead letter", "%RETR": "retry"}
        rows = [values.TopicSummary(name, kinds.get(name[:5], "normal"), settings) for name in self.names]
        return values.TopicListing(tuple(rows), time.time())

    async def with_metrics(self, rows: list[values.TopicSummary], *, max_age_s: float) -> list[values.TopicSummary]:
        if self.dies_while_read:
            self.running = ["broker-a"]
        metrics = values.TopicMetrics(10 * len(self.running), 0, 0)
        return [replace(row, metrics=values.Reading(metrics, time.time())) for row in rows]


def counting(cluster: Cluster) -> StoredCount:
    return StoredCount(cluster, lambda: BROTHERS)  # type: ignore[arg-type]


async def test_a_broker_that_is_gone_marks_the_sum_until_all_is_read_again() -> None:
    cluster = Cluster(["orders", "%DLQ%mail"])
    count = counting(cluster)
    await count.look()
    whole = count.total()
    assert whole is not None and (whole.messages, whole.topics, whole.missing) == (40, 1, ())
    assert whole.dead_letters == (("mail", 20),)
    cluster.running = ["broker-a"]
    await count.look()
    half = count.total()
    assert half is not None and (half.messages, half.missing) == (20, ("broker-b",))
    cluster.running = sorted(BROTHERS)
    await count.look()
    assert (again := count.total()) is not None and (again.messages, again.missing) == (40, ())


async def test_a_broker_that_dies_while_topics_are_read_halves_nothing() -> None:
    cluster = Cluster(["orders"])
    count = counting(cluster)
    await count.look()
    cluster.dies_while_read = True
    await count.look()
    assert (total := count.total()) is not None and total.messages == 20, "as it was: the half was not taken"


async def test_what_was_read_without_a_broker_stays_marked_after_its_return() -> None:
    cluster = Cluster([f"t{number}" for number in range(TOPICS_A_SECOND + 1)])
    count = counting(cluster)
    cluster.running = ["broker-a"]
    for _ in range(2):
        await count.look()
    cluster.running = sorted(BROTHERS)
    await count.look()
    assert (some := count.total()) is not None and some.missing == ("broker-b",)
    await count.look()
    assert (total := count.total()) is not None and (total.messages, total.missing) == (41 * 20, ())


def test_a_sum_that_lacks_a_broker_is_shown_as_the_least_and_kept_in_no_history() -> None:
    shot = Snapshot(100.0, "n", None, (), (), Stored(1234, 3, 100.0, ("broker-b",)))
    metric = overview_metrics(shot).values["cluster.stored"]
    assert (metric.text.replace(units.THIN, " "), metric.why) == ("≥ 1 234", "without broker-b")
    minute = Minute()
    minute.add(shot, Point(100.0, None, None))
    assert minute.stored is None


async def test_the_first_message_of_a_new_topic_is_counted_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_count, "LISTING_EACH_S", 3600.0)
    cluster = Cluster([])
    count = counting(cluster)
    await count.look()
    assert (nothing := count.total()) is not None and nothing.messages == 0
    cluster.names = ["orders"]
    await count.look()
    assert (total := count.total()) is not None and total.messages == 20
    cluster.names = ["orders", "later"]
    await count.look()
    assert (total := count.total()) is not None and total.messages == 20, "with messages there is no hurry"
