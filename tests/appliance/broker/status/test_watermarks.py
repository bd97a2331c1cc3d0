"""appliance/broker/status/watermarks.py: what a second of the lanes and of the dispatch leaves in the log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from appliance.broker.status import watermarks
from appliance.broker.status.watermarks import WatermarkLog
from appliance.remoting.lane import LaneLimits
from appliance.remoting.lanes import Lanes
from tests.appliance.broker.processors.unopened import unopened_broker


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if getattr(record, "event", "") == event]


@pytest.mark.parametrize(
    ("size", "wait_s", "level"),
    [
        (1, 0.001, logging.DEBUG),
        (10, 0.1, logging.DEBUG),
        (11, 0.001, logging.INFO),  # more than a tenth of the lane
        (1, 0.101, logging.INFO),
        (0, 0.0, None),
    ],
)
def test_a_lane_that_filled_or_waited_is_told_aloud_and_a_quiet_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, size: int, wait_s: float, level: int | None
) -> None:
    caplog.set_level(logging.DEBUG, logger=watermarks.__name__)
    lanes = Lanes({"send": LaneLimits(100), "pull": LaneLimits(100)})
    lane = lanes.by_name["send"]
    lane.size_peak, lane.wait_peak, lane.rejected, lane.expired = size, wait_s, 3, 4
    with unopened_broker(tmp_path) as broker:
        log = WatermarkLog(lanes, broker.store)
        log.look()
        log.look()  # a peak is of one second
    records = told(caplog, "lane_watermark")
    if level is None:
        assert not records
        return
    (record,) = records
    assert record.levelno == level
    facts = {name: record.__dict__[name] for name in ("lane", "size", "capacity", "wait_ms", "rejected", "expired")}
    assert facts == {
        "lane": "send", "size": size, "capacity": 100, "wait_ms": int(wait_s * 1000), "rejected": 3, "expired": 4,
    }  # fmt: skip


@pytest.mark.parametrize(("limit_bytes", "times"), [(-1, 1), (0, 0)])
def test_a_dispatch_that_is_behind_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, limit_bytes: int, times: int
) -> None:
    caplog.set_level(logging.INFO, logger=watermarks.__name__)
    monkeypatch.setattr(watermarks, "NOTABLE_BEHIND_BYTES", limit_bytes)
    with unopened_broker(tmp_path) as broker:
        WatermarkLog(broker.lanes, broker.store).look()
    assert len(told(caplog, "dispatch_behind")) == times
