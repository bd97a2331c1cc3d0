"""A disk that others fill in bursts, from the broker's readings to the alert: it opens at most once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.settings.alert_names import RuleKind
from dashboard.alerts.alert import Rule
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.alerts.kinds import KINDS, PRESETS
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.cluster.values import BrokerRef
from dashboard.live.sampler import read_facts
from dashboard.status.board import FULL_SOON_S, BrokerState, Snapshot
from dashboard.status.verdict import judge
from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import DiskForecast, DiskForecaster, DiskSpace

GIB = 1 << 30
MARKS = MessageStoreConfig(root=Path("any"))  # those of the defaults
TOTAL = 100 * GIB
REFUSED_ABOVE = 90 * GIB
STEP_S = 10
BROKER = BrokerRef("broker-a", "127.0.0.1:10911", "c")
PRESETS_OF_IT = [
    Rule(1, one.name, one.kind, "", one.threshold, one.clear, one.for_s, one.clear_s, int(one.level))
    for one in PRESETS
    if one.kind == RuleKind.DISK_FULL_IN
]
Used = Callable[[int], float]


def bursts(each_s: int, lasting_s: int, size: float, kept: float) -> Used:
    """Others write about `size` every so often, and delete all but a part of it a minute later."""
    sizes = [size * random.Random(number).uniform(0.6, 1.4) for number in range(100)]

    def used(second: int) -> float:
        number, since = divmod(second, each_s)
        share = min(since / lasting_s, 1.0) if since < lasting_s + 60 else kept
        return 50 * GIB + kept * sum(sizes[:number]) + share * sizes[number]

    return used


def told(forecast: DiskForecast, used: float) -> dict[str, str]:
    """As a broker says it."""
    figures = {
        "bootTimestamp": 1,
        "commitLogDiskRatio": used / TOTAL,
        "diskGrowthBytesPerSecond": forecast.bytes_per_second,
        "diskSecondsToFull": forecast.seconds_to_full,
        "diskSecondsToFullEarliest": forecast.earliest_full_s,
        "diskSecondsToFullLatest": forecast.latest_full_s,
    }
    return {key: str(value) for key, value in figures.items() if value is not None}


def opened(used: Used, seconds: int) -> list[list[tuple[int, float | None]]]:
    """When an alert about the disk opened, of the check and of rules, and for how long it was open; None for one that
    is."""
    forecaster, book, by_rule = DiskForecaster(MARKS), CheckAlerts(), RuleAlerts()
    facts, found = None, (dict[float, Any](), dict[float, Any]())
    for second in range(0, seconds + 1, STEP_S):
        forecaster.note(float(second), DiskSpace(round(used(second)), TOTAL))
        facts = read_facts(BROKER, told(forecaster.forecast(), used(second)), float(second), facts)
        state = BrokerState(BROKER.name, BROKER.address, facts)
        snapshot = Snapshot(float(second), "n", None, (state,), (), None)
        book.note([check for check in judge(snapshot).problems if check.name.startswith("disk")], float(second))
        by_rule.note(PRESETS_OF_IT, {RuleKind.DISK_FULL_IN: KINDS[RuleKind.DISK_FULL_IN].read(snapshot)}, float(second))
        for seen, alerts in zip(found, (book.open(), by_rule.open.values()), strict=True):
            seen.update({alert.begun_at: alert for alert in alerts})
    return [[(int(at), one.ended_at and one.ended_at - at) for at, one in sorted(seen.items())] for seen in found]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(
    ("each_s", "lasting_s", "gib"), [(120, 5, 0.2), (400, 30, 3.0), (400, 240, 1.0), (600, 300, 3.0), (900, 240, 3.0)]
)
def test_a_disk_filled_in_bursts_opens_one_alert_at_most(each_s: int, lasting_s: int, gib: float, kept: float) -> None:
    used = bursts(each_s, lasting_s, gib * GIB, kept)
    assert max(len(alerts) for alerts in opened(used, 3600)) <= 1


@pytest.mark.parametrize("hours", [1, 3, 8])
def test_a_steady_fill_opens_it_in_time(hours: int) -> None:
    """The first quarter of an hour says nothing of hours."""
    rate = (REFUSED_ABOVE - 50 * GIB) / (hours * 3600)
    expected = max(hours * 3600 - FULL_SOON_S, 900)
    [(at, lasted)], _ = opened(lambda second: 50 * GIB + rate * second, round(expected) + 1200)
    assert at <= expected + STEP_S and lasted is None


def test_it_resolves_soon_after_the_space_is_freed() -> None:
    def used(second: int) -> float:
        return 50 * GIB + (second * (8 << 20) if second < 2000 else 0)

    [(_, lasted)], _ = opened(used, 2100)
    assert lasted is not None
