"""Whether a disk holds what is forecast, in words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.capacity import capacity

MIB = 1 << 20


class Usage(NamedTuple):
    total: int
    used: int


def data_folder(tmp_path: Path, lines: str = "") -> Path:
    home = tmp_path / "brokers" / "broker-a"
    log = home / "store" / "commitlog"
    log.mkdir(parents=True)
    (home / "broker.properties").write_text(lines)
    (log / "00000000000000000000").write_bytes(b"x" * 2 * MIB)
    return tmp_path


def rows(*high: int, broker: str = "broker-a") -> list[dict[str, object]]:
    stored = {"broker": broker, "day": "2026-11-21", "kind": "stored", "bytes": 1, "low": None, "high": None}
    return [stored, *({**stored, "kind": "forecast", "low": 0, "high": value * MIB} for value in high)]


@pytest.mark.parametrize(
    ("lines", "total", "sentence"),
    [
        ("", 1000, "take up to 12.0 MiB at its retention of 72 h; the disk has 652 MiB for it, which is enough."),
        ("fileReservedTime=36", 1000, "take up to 6.0 MiB at its retention of 36 h"),
        ("fileReservedTime=often", 1000, "take up to 12.0 MiB at its retention of 72 h"),
        (
            "diskMaxUsedSpaceRatio=50",
            208,
            "up to 12.0 MiB at its retention of 72 h; the disk has 6.0 MiB for it until it is 50 % full, so messages "
            "may be deleted after about 36 h.",
        ),
    ],
)
def test_a_broker_is_told_what_its_disk_can_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, total: int, sentence: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total * MIB, 100 * MIB))
    brokers = brokers_in(data_folder(tmp_path, lines))
    [found] = capacity(brokers, rows(2, 4, 4, 4, 3))
    assert "broker-a: its log takes 2.0 MiB now" in found and sentence in found


def test_without_forecast_or_log_nothing_is_said(tmp_path: Path) -> None:
    brokers = brokers_in(data_folder(tmp_path))
    assert capacity(brokers, rows()) == []
    assert capacity(brokers, rows(1, broker="broker-b")) == []
    shutil.rmtree(tmp_path / "brokers" / "broker-a" / "store")
    assert capacity(brokers, rows(1)) == []
