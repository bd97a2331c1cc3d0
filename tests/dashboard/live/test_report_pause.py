"""Reports pause while requests wait in a broker's lane."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from appliance.reports.runs import is_pause_asked
from dashboard.live.report_pause import longest_wait_ms, pause_reports
from dashboard.status.board import BrokerFacts, BrokerState, Lane, Snapshot
from tests.dashboard.status.masters import seen


def waiting(*waits_ms: float | None) -> Snapshot:
    lanes = tuple(Lane(f"lane-{number}", 1, 10, wait_ms) for number, wait_ms in enumerate(waits_ms))
    facts = BrokerFacts("broker-a", "a", 1.0, lanes=lanes)
    return dataclasses.replace(seen(), brokers=(BrokerState("broker-a", "a", facts),))


def test_the_longest_wait_of_any_lane_counts() -> None:
    assert longest_wait_ms(waiting(3.0, None, 70.0)) == 70.0
    assert longest_wait_ms(waiting()) == longest_wait_ms(dataclasses.replace(seen(), brokers=())) == 0.0


@pytest.mark.parametrize(("mark_ms", "is_asked"), [(50.0, True), (80.0, False), (0.0, False)])
async def test_a_lane_over_the_mark_has_runs_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark_ms: float, is_asked: bool
) -> None:
    config = dataclasses.replace(django_settings.APPLIANCE, data=tmp_path, report_pause_ms=mark_ms)
    monkeypatch.setattr(django_settings, "APPLIANCE", config)
    (tmp_path / "reports").mkdir()
    await pause_reports(waiting(3.0, 70.0))
    assert is_pause_asked(tmp_path) == is_asked
