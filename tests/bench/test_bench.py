"""`gantry bench` end to end, with tiny counts: every scenario, the checks, the table, the JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

import orjson
import pytest

from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.load_spec import LoadResult
from appliance.bench.report import render
from appliance.bench.results import BenchResults, LoadRun, ScenarioMetrics, load_metrics
from appliance.bench.run import TINY, Bench
from appliance.bench.scenarios import SCENARIOS
from appliance.cli import bench
from gantrymq.errors import ConfigError


def test_every_scenario_runs_against_our_broker_and_all_that_was_acknowledged_is_stored(tmp_path: Path) -> None:
    said: list[str] = []
    results = Bench({"gantry": lambda home, _: GantryPeer(home)}, tmp_path, TINY, said.append).run(SCENARIOS)
    assert [figures.name for figures in results.scenarios] == [scenario.name for scenario in SCENARIOS]
    for figures in results.scenarios:
        for load in figures.loads.values():
            assert load.rate > 0
            assert all(run["errors"] == {} and run["missing"] == 0 for run in load.runs)
        for start in figures.starts.values():
            assert 0 < start.first_message_s < 60
            assert 1 << 20 < start.broker_rss_bytes < 1 << 30
    assert "send 1 KB, 16 x 8" in render(results)
    assert orjson.loads(orjson.dumps(results.as_json()))["scenarios"][0]["ratio"] is None
    assert said


def test_ratios_and_warnings_stand_in_the_table() -> None:
    def figures(rate: float, errors: dict[str, int], missing: int = 0):  # type: ignore[no-untyped-def]
        run = LoadResult(rate=rate, acknowledged=10, measured=10, cpu_share=0.95, errors=errors)
        return load_metrics([LoadRun(run, 0.001, 0.5, missing)])

    loads = {"gantry": figures(3_000, {"2 busy": 1}), "apache": figures(2_000, {}, missing=4)}
    scenario = ScenarioMetrics(name="send-1x1", title="send", kind="send", ceiling=4_000, loads=loads)
    results = BenchResults(peers={"gantry": "GantryMQ 1", "apache": "Apache RocketMQ 4"}, scenarios=[scenario])
    assert scenario.ratio() == 1.5
    text = render(results)
    assert "1.50" in text
    assert "gantry is at 75% of the load's ceiling" in text
    assert "with apache the load used 95% of its core" in text
    assert "gantry answered with errors: {'2 busy': 1}" in text
    assert "other work took 0.5 cores while apache was measured" in text
    assert "apache acknowledged 4 messages that no queue has" in text


@pytest.mark.parametrize("given", [["--scenario", "send-2x2"], ["--rounds", "0"], ["--seconds", "0"]])
def test_wrong_options_are_refused_in_a_sentence(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(ConfigError):
        bench.run(parser.parse_args(given))
