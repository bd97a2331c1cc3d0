"""`python -m tests.bench.store` end to end, with tiny counts."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import orjson
import pytest

from appliance.bench.maven import ToolError
from tests.bench.store import __main__ as program
from tests.bench.store import report as store_report
from tests.bench.store.__main__ import reopened
from tests.bench.store.report import CONTROL
from tests.conftest import require_tool
from tests.docs.shell_lines import LINES


def test_stages_stalls_and_starts_are_measured_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the line that the page shows."""
    require_tool("cc", "the load generator is a C program")
    monkeypatch.setattr(store_report, "QUIET_S", 0.0)
    sizes = {"count": 400, "total_bytes": 2 << 20, "stall_bytes": 2 << 20, "stall_rate": 50_000_000}
    monkeypatch.setattr(program, "FULL", sizes)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (line,) = [each.command for each in LINES if "tests.bench.store" in each.command]
    monkeypatch.setattr(sys, "argv", [*line.split()[2:], "--json", str(tmp_path / "figures.json")])
    program.main()
    figures = orjson.loads((tmp_path / "figures.json").read_bytes())
    (tmp_path / "figures.json").unlink()
    text, said = capsys.readouterr()
    assert "append 1 KB, one key" in text and "killed while writing" in text and "never flushed" in text
    assert all(stage["us"] >= 0 for stage in figures["stages"]) and len(figures["stages"]) > 15
    whats = [each["what"] for each in figures["recovery"]["gantry"]]
    assert whats == ["killed while writing", "killed at rest", "stopped"]
    assert all(found["turns"] > 10 and found["longest"] is not None for found in figures["stalls"].values())
    assert figures["peers"]["gantry"].startswith("GantryMQ")
    for found in figures["stalls"].values():
        assert found["long_cpu_turns"] <= found["turns"] and found["taken"]["stolen_s"] >= 0
        assert found["long_turns"] <= found["long_wall_turns"]
    assert CONTROL in figures["stalls"] or "no control" in said
    assert said
    assert not list(tmp_path.iterdir())


def test_without_a_jdk_ours_is_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(reopened(None)) == ["gantry"]
    assert "GantryMQ only: java is missing" in capsys.readouterr().err
    with pytest.raises(ToolError):
        reopened("apache")
