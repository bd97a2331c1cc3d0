"""`python -m tests.bench.store` end to end, with tiny counts."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.maven import ToolError
from tests.bench.store import report as store_report
from tests.bench.store.__main__ import reopened
from tests.bench.store.report import CONTROL, StoreBench
from tests.conftest import require_tool


def test_stages_stalls_and_starts_are_measured_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("cc", "the load generator is a C program")
    monkeypatch.setattr(store_report, "QUIET_S", 0.0)
    said: list[str] = []
    sizes = {"count": 400, "total_bytes": 2 << 20, "stall_bytes": 2 << 20, "stall_rate": 50_000_000}
    text, figures = StoreBench(tmp_path, said.append, LoadProgram(generator_program()), **sizes).run(
        {"gantry": GantryPeer}
    )
    assert "append 1 KB, one key" in text and "killed while writing" in text and "never flushed" in text
    assert all(stage["us"] >= 0 for stage in figures["stages"]) and len(figures["stages"]) > 15
    whats = [each["what"] for each in figures["recovery"]["gantry"]]
    assert whats == ["killed while writing", "killed at rest", "stopped"]
    assert all(found["turns"] > 10 and found["longest"] is not None for found in figures["stalls"].values())
    assert orjson.loads(orjson.dumps(figures))["peers"]["gantry"].startswith("GantryMQ")
    for found in figures["stalls"].values():
        assert found["long_cpu_turns"] <= found["turns"] and found["taken"]["stolen_s"] >= 0
        assert found["long_turns"] <= found["long_wall_turns"]
    assert CONTROL in figures["stalls"] or any("no control" in line for line in said)
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
