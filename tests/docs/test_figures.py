"""The page about monitoring names only figures that there are: rows of a broker's state, and of /metrics."""

from __future__ import annotations

import re

from dashboard.exporter.page import families
from dashboard.status.board import Snapshot
from tests.source_files import ROOT

PAGE = (ROOT / "docs/operations/monitoring.md").read_text(encoding="utf-8")
LEFT_OUT = "gantry_samples_left_out"  # only on a page that is full


def test_every_row_of_a_brokers_state_is_written_somewhere() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 60
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "appliance/broker").rglob("*.py"))
    assert named <= set(re.findall(r"\"([a-z]\w+)\"", code))


def test_every_figure_of_prometheus_is_on_the_page() -> None:
    named = set(re.findall(r"`((?:rocketmq|gantry)_\w+)`", PAGE))
    known = {family.name for family in families(Snapshot(1.0, "", None, (), (), None))}
    assert len(named) >= 6
    assert named <= known | {LEFT_OUT}
