"""Old minutes become coarser and lose no message; a chart has the same total over every range."""

from __future__ import annotations

import pytest

from dashboard.history.charts import RANGES
from dashboard.latency import kept
from dashboard.latency.book import Measured
from dashboard.latency.figures import figures_of
from dashboard.latency.histogram import Histogram
from dashboard.latency.kept import DAY, HOUR, MINUTE, condense, keep
from dashboard.limits.names import NameLimit, unlimited, use
from dashboard.models.latency import LatencyBlock

pytestmark = pytest.mark.usefixtures("transactional_db")

NOON = 1_700_000_000 // DAY * DAY + 12 * HOUR


def measured(*took_ms: int, unmeasured: int = 0) -> Measured:
    one = Measured(Histogram(), unmeasured)
    for each in took_ms:
        one.histogram.add(each)
    return one


async def rows() -> dict[int, int]:
    steps = [step async for step in LatencyBlock.objects.values_list("step_s", flat=True)]
    return {step: steps.count(step) for step in set(steps)}


async def test_old_minutes_become_five_and_then_hours_and_lose_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "ROWS_A_TURN", 7)
    for minute in range(120):
        await keep(NOON + minute * MINUTE, [(("orders", "mail"), measured(10, 2000, unmeasured=1))])
    for now, steps in (
        (NOON + 2 * HOUR, {60: 120}),
        (NOON + 8 * HOUR, {300: 24}),
        (NOON + 8 * HOUR, {300: 24}),
        (NOON + 30 * HOUR, {3600: 2}),
    ):
        await condense(now)
        assert await rows() == steps
        (pair,) = (await figures_of(RANGES["7d"], group="mail", now=now)).pairs
        assert (pair.whole.buckets[0], pair.whole.total, pair.unmeasured) == ((10, 120), 240, 120)
    await condense(NOON + 31 * DAY)
    assert await rows() == {}


async def test_a_minute_that_is_written_again_counts_once() -> None:
    for _ in range(2):
        await keep(NOON, [(("orders", "mail"), measured(10))])
    (pair,) = (await figures_of(RANGES["1h"], topic="orders", now=NOON + 100)).pairs
    assert pair.whole.total == 1


async def test_percentiles_over_time_and_what_is_not_measured() -> None:
    await keep(NOON, [(("orders", "mail"), measured(10, 10, 300)), (("", "mail"), measured(unmeasured=4)),
                      (("", "log"), measured(unmeasured=5)), (("", ""), measured(unmeasured=6))])  # fmt: skip
    await keep(NOON + MINUTE, [(("orders", "mail"), measured(700)), (("bills", "mail"), measured(1)),
                               (("orders", "log"), measured(1))])  # fmt: skip
    found = await figures_of(RANGES["1h"], group="mail", now=NOON + 2 * MINUTE)
    assert [(pair.topic, pair.whole.total) for pair in found.pairs] == [("orders", 4), ("bills", 1)]
    assert (found.unmeasured, found.skipped, found.all_unmeasured) == (4, 6, 4)
    chart = await found.chart(RANGES["1h"], None)
    assert [point for point in chart.points if point[1] is not None] == [
        (NOON, 10, 300, 300), (NOON + MINUTE, 1, 800, 800)
    ]  # fmt: skip
    of_topic = await figures_of(RANGES["1h"], topic="orders", now=NOON + MINUTE)
    assert [(pair.group, pair.whole.total) for pair in of_topic.pairs] == [("mail", 4), ("log", 1)]


async def test_an_account_of_some_names_sees_their_pairs_alone() -> None:
    await keep(NOON, [(("orders", "mail"), measured(1)), (("orders", "ship"), measured(1))])
    with unlimited():
        use(NameLimit(("orders", "ship")))
        found = await figures_of(RANGES["1h"], topic="orders", now=NOON)
    assert [pair.group for pair in found.pairs] == ["ship"]
