"""What is said of the machine: certificates' days, memory, in a container too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from appliance.certificates import create, ends_at
from appliance.cli.checks import machine, start
from appliance.settings.appliance_config import ApplianceConfig


@pytest.mark.parametrize(
    ("days_before", "is_good", "words"),
    [(400, True, "good for 400 more days."), (29, False, "29 more days only"), (-3, False, "expired 3 days ago")],
)
def test_a_certificate_is_told_before_and_after_its_end(
    tmp_path: Path, days_before: int, is_good: bool, words: str
) -> None:
    create(tmp_path / "tls", ["localhost"])
    certificate = tmp_path / "tls" / "server.pem"
    config = ApplianceConfig(data=tmp_path, tls_cert=str(certificate), tls_key=str(tmp_path / "tls" / "server.key"))
    now = ends_at(certificate) - timedelta(days=days_before) - timedelta(seconds=0)
    (found,) = machine.check_certificate(config, now)
    assert found.is_good is is_good and not found.is_fatal
    assert words in found.sentence


def test_without_a_certificate_nothing_is_said(tmp_path: Path) -> None:
    assert list(machine.check_certificate(ApplianceConfig(data=tmp_path), datetime.now(UTC))) == []


@pytest.mark.parametrize(("limit", "used", "is_good"), [("max", "0", True), (str(1 << 34), "0", True),
                                                        (str(300 << 20), str(200 << 20), False)])  # fmt: skip
def test_the_memory_of_a_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, used: str, is_good: bool
) -> None:
    (tmp_path / "max").write_text(limit + "\n")
    (tmp_path / "current").write_text(used + "\n")
    monkeypatch.setattr(machine, "CGROUP_LIMIT", tmp_path / "max")
    monkeypatch.setattr(machine, "CGROUP_USED", tmp_path / "current")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 8 << 30})())
    found = [*start.check_memory(ApplianceConfig(data=tmp_path)), *machine.check_free_memory(ApplianceConfig())]
    assert all(one.is_good for one in found) is is_good and not any(one.is_fatal for one in found)
    assert len(found) == (1 if is_good else 2)
