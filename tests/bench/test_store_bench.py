"""`gantry bench store` end to end, with tiny counts."""

from __future__ import annotations

import argparse
from pathlib import Path

import orjson
import pytest

from appliance.bench.gantry import GantryPeer
from appliance.bench.store_report import StoreBench
from appliance.cli import bench
from gantrymq.errors import ConfigError


def test_stages_stalls_and_starts_are_measured_and_told(tmp_path: Path) -> None:
    said: list[str] = []
    sizes = {"count": 400, "total_bytes": 2 << 20, "stall_bytes": 2 << 20, "stall_rate": 50_000_000}
    text, figures = StoreBench(tmp_path, said.append, **sizes).run({"gantry": GantryPeer})
    assert "append 1 KB, one key" in text and "killed while writing" in text and "never flushed" in text
    assert all(stage["us"] >= 0 for stage in figures["stages"]) and len(figures["stages"]) > 15
    whats = [each["what"] for each in figures["recovery"]["gantry"]]
    assert whats == ["killed while writing", "killed at rest", "stopped"]
    assert all(found["turns"] > 10 and found["longest"] is not None for found in figures["stalls"].values())
    assert orjson.loads(orjson.dumps(figures))["peers"]["gantry"].startswith("GantryMQ")
    assert said
    assert not list(tmp_path.iterdir())


def test_options_of_the_broker_benchmark_are_refused() -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(ConfigError):
        bench.run(parser.parse_args(["store", "--seconds", "1"]))
