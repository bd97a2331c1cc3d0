"""`gantry bench store` end to end, with tiny counts."""

from __future__ import annotations

import argparse
from pathlib import Path

import orjson
import pytest

from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.maven import ToolError
from appliance.bench.store import report as store_report
from appliance.bench.store.peer import Load, apache_command, gantry_command, measure_store, render_peers
from appliance.bench.store.report import CONTROL, StoreBench
from appliance.cli import bench
from gantrymq.errors import ConfigError
from tests.conftest import require_tool


def test_stages_stalls_and_starts_are_measured_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_report, "QUIET_S", 0.0)
    said: list[str] = []
    sizes = {"count": 400, "total_bytes": 2 << 20, "stall_bytes": 2 << 20, "stall_rate": 50_000_000}
    text, figures = StoreBench(tmp_path, said.append, **sizes).run({"gantry": GantryPeer}, {"gantry": gantry_command})
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


def test_options_of_the_broker_benchmark_are_refused() -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(ConfigError):
        bench.run(parser.parse_args(["store", "--seconds", "1"]))


def test_the_same_load_is_put_on_apaches_store(tmp_path: Path) -> None:
    for name in ("javac", "mvn"):
        require_tool(name, "Apache's store is driven by a Java program")
    load = Load(messages=1000, fill_bytes=2 << 20, rounds=2)
    found = {}
    for label, make in (("gantry", gantry_command), ("apache", apache_command)):
        work = tmp_path / label
        work.mkdir()
        found[label] = measure_store(make(work), work, load)  # raises when messages are not found where they belong
    stages = [cost.stage for cost in found["gantry"]]
    assert stages == [cost.stage for cost in found["apache"]]
    assert {"append", "batch, dispatched", "query by key", "group commit", "open after kill -9"} <= set(stages)
    assert all(cost.wall_us > 0 and cost.cpu_us >= 0 for costs in found.values() for cost in costs)
    table = render_peers(found)
    assert "ratio" in table and all(stage in table for stage in stages)


def test_without_a_jdk_ours_is_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    peers, stores = bench._stores(parser.parse_args(["store"]))
    assert list(peers) == list(stores) == ["gantry"]
    assert "GantryMQ only: java is missing" in capsys.readouterr().err
    with pytest.raises(ToolError):
        bench._stores(parser.parse_args(["store", "--peer", "apache"]))
