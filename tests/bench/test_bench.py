"""`gantry bench` end to end, with tiny counts: every scenario, the checks, the table, the JSON."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
import venv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from appliance.bench.gantry_peer import CHECKOUT, FAST_PATH_OFF, GantryPeer
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.load_spec import LoadResult, LoadSpec
from appliance.bench.report import render
from appliance.bench.results import BenchResults, LoadMetrics, LoadRun, ScenarioMetrics, load_metrics
from appliance.bench.run import Bench, MakePeer
from appliance.bench.scenarios import BY_NAME, SCENARIOS, Scenario
from appliance.bench.setups import IDLE, MANY, PLAIN, SYNC
from appliance.bench.warm_up import PIECE_BYTES, touch_free_memory
from appliance.cli import bench
from gantrymq.errors import ConfigError, ConnectError
from tests.any_disk import SLOW_DISK
from tests.bench.tiny import TINY
from tests.conftest import require_tool
from tests.docs.shell_lines import LINES

ACL = {"aclEnable": "true"}


def make(home: Path, properties: Mapping[str, str], _idle: bool) -> GantryPeer:
    return GantryPeer(home, broker_properties=SLOW_DISK | dict(properties))


def assert_all_well(results: BenchResults, scenarios: Sequence[Scenario]) -> None:
    assert [figures.name for figures in results.scenarios] == [scenario.name for scenario in scenarios]
    for figures in results.scenarios:
        for load in figures.loads.values():
            assert load.rate > 0
            assert all(run["errors"] == {} and run["missing"] == 0 for run in load.runs)


def test_every_kind_of_scenario_runs_against_our_broker_and_all_that_was_acknowledged_is_stored(tmp_path: Path) -> None:
    """Those that are left out differ from one of these only by their width."""
    require_tool("cc", "the load generator is a C program")
    said: list[str] = []
    left_out = {"send-1x64", "send-16x1", "send-16x8-128", "pull-1", "send-128x1"}
    scenarios = [each for each in SCENARIOS if each.setup in (PLAIN, IDLE) and each.name not in left_out]
    results = Bench({"gantry": make}, tmp_path, TINY, said.append, LoadProgram(generator_program())).run(scenarios)
    assert_all_well(results, scenarios)
    for figures in results.scenarios:
        for start in figures.starts.values():
            assert 0 < start.first_message_s < 60
            assert 1 << 20 < start.broker_rss_bytes < 1 << 30
    text = render(results)
    assert "send 1 KB, 16 x 8" in text
    assert orjson.loads(orjson.dumps(results.as_json()))["scenarios"][0]["ratio"] is None
    assert said


def test_brokers_with_accounts_a_slow_disk_and_many_queues_are_set_up(tmp_path: Path) -> None:
    """All that a setup can ask for in two brokers."""
    require_tool("cc", "the load generator is a C program")
    signed = replace(BY_NAME["signed-16x8"], setup=replace(SYNC, accounts=True, properties={**SYNC.properties, **ACL}))
    many = replace(BY_NAME["many-queues"], setup=replace(MANY, topics=20))
    results = Bench({"gantry": make}, tmp_path, TINY, lambda _: None, LoadProgram(generator_program())).run(
        [signed, many]
    )
    assert_all_well(results, [signed, many])


def test_a_pair_is_measured_until_the_slave_has_all_also_when_it_was_stopped(tmp_path: Path) -> None:
    require_tool("cc", "the load generator is a C program")
    scenarios, said = [BY_NAME["pair-16x8"], BY_NAME["stopped-pair-16x8"]], list[str]()
    results = Bench({"gantry": make}, tmp_path, TINY, said.append, LoadProgram(generator_program())).run(scenarios)
    assert_all_well(results, scenarios)
    for load in (metrics.loads["gantry"] for metrics in results.scenarios):
        assert load.slave_cpu_us > 0 and load.runs[0]["copied_after_s"] >= 0
    assert "slave us/msg" in render(results) and any("a slave has its log" in line for line in said)


class FailingLoad(LoadProgram):
    """Fails with one connection in the second round, and with all brokers that want accounts."""

    rounds = 0

    def run(self, spec: LoadSpec) -> LoadResult:
        is_single = spec.connections == 1 and spec.warm_s > 0
        self.rounds += is_single
        if (is_single and self.rounds == 2) or spec.access_key:
            raise ConnectError(spec.address, "no route to host")
        return super().run(spec)


def test_what_was_measured_is_told_when_a_row_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A round of a load, and a whole setup: the rounds before and the other rows are there, and the exit code is 1."""
    require_tool("cc", "the load generator is a C program")
    monkeypatch.setattr(bench, "load_generator", lambda: FailingLoad(generator_program()))
    monkeypatch.setattr(bench, "QUICK", TINY)
    monkeypatch.setattr(bench.signal, "signal", lambda *_: None)
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    named = [word for name in ("signed-16x8", "send-1x1", "send-16x8") for word in ("--scenario", name)]
    given = ["--quick", "--peer", "ours", "--rounds", "2", "--work", str(tmp_path), "--json", str(tmp_path / "json")]
    assert bench.run(parser.parse_args([*given, *named])) == 1
    text = capsys.readouterr().out
    assert "send 1 KB, 1 x 1" in text and "send 1 KB, 16 x 8" in text and "CPU us/msg" in text
    assert re.search(r"! send 1 KB, 1 x 1: failed after 1 rounds: .*no route to host", text)
    assert re.search(r"! send 1 KB, accounts on, 16 x 8: failed after 0 rounds: .*no route to host", text)
    rows = orjson.loads((tmp_path / "json").read_bytes())["scenarios"]
    assert [len(row["loads"].get("gantry", {"runs": ()})["runs"]) for row in rows] == [0, 1, 2]
    assert [bool(row["failure"]) for row in rows] == [True, True, False]


def test_ratios_and_warnings_stand_in_the_table() -> None:
    def figures(rate: float, errors: dict[str, int], missing: int = 0, cpu_s: float = 0.001) -> LoadMetrics:
        run = LoadResult(rate=rate, acknowledged=10, measured=10, cpu_share=0.95, errors=errors)
        slow = replace(run, rate=rate / 2 if missing == 0 else rate)
        return load_metrics([LoadRun(each, cpu_s, 0.5, missing) for each in (run, run, slow)])

    loads = {"gantry": figures(3_000, {"2 busy": 1}), "apache": figures(2_000, {}, missing=4, cpu_s=0.002)}
    scenario = ScenarioMetrics(name="send-1x1", title="send", kind="send", loads=loads)
    results = BenchResults(peers={"gantry": "GantryMQ 1", "apache": "Apache RocketMQ 4"}, scenarios=[scenario])
    assert scenario.ratio() == 1.5
    compared = scenario.compared("gantry", "apache")
    assert compared is not None
    assert (compared.rate_worst, compared.cpu, compared.cpu_worst) == (0.75, 0.5, 0.5)
    text = render(results)
    assert "1.50" in text
    assert "with apache the load used 95% of its core" in text
    assert "gantry answered with errors: {'2 busy': 1}" in text
    assert "other work took 0.5 cores while apache was measured" in text
    assert "apache acknowledged 4 messages that no queue has" in text


def test_costs_are_compared_with_those_of_another_scenario() -> None:
    def figures(name: str, cpu_s: float, against: str = "") -> ScenarioMetrics:
        runs = [LoadRun(LoadResult(acknowledged=10), cpu_s, 0, 0)]
        return ScenarioMetrics(
            name=name, title=name, kind="send", against=against, loads={"gantry": load_metrics(runs)}
        )

    scenarios = [figures("few", 0.001), figures("many", 0.0013, "few"), figures("alone", 0.001, "not measured")]
    text = render(BenchResults(peers={"gantry": "GantryMQ 1"}, scenarios=scenarios))
    assert "many           few     gantry  130.0     100.0   1.30" in text
    assert "not measured" not in text


@pytest.mark.parametrize(
    "line", [line.command for line in LINES if re.match("gantry bench --(peer|brokers|touch)", line.command)]
)
def test_a_line_of_the_page_is_run_with_one_load(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And tiny counts; Apache's place is taken by one of ours."""
    require_tool("cc", "the load generator is a C program")
    load = BY_NAME["send-16x8"]
    monkeypatch.setattr(bench, "FULL", TINY)
    monkeypatch.setattr(bench, "SCENARIOS", [load])
    monkeypatch.setattr(bench, "SCALED", [load.name])
    monkeypatch.setattr(bench, "ApachePeer", lambda home, heap, broker_properties: make(home, broker_properties, False))
    monkeypatch.setattr(bench, "touch_free_memory", functools.partial(touch_free_memory, PIECE_BYTES))
    monkeypatch.setattr(bench.signal, "signal", lambda *_: None)
    (tmp_path / "before").symlink_to(CHECKOUT)
    (tmp_path / "this").mkdir()
    monkeypatch.chdir(tmp_path / "this")
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    assert bench.run(parser.parse_args(shlex.split(line)[2:])) == 0
    assert load.title in capsys.readouterr().out


def chosen(*given: str) -> dict[str, MakePeer]:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return bench.makers_of(parser.parse_args(given))


def test_peers_are_chosen_by_name(tmp_path: Path) -> None:
    assert list(chosen("--peer", "both")) == ["gantry", "apache"]
    assert list(chosen("--peer", "off", "--peer", "ours")) == ["gantry-off", "gantry"]
    off = chosen("--peer", "off")["gantry-off"](tmp_path, {}, False)
    assert isinstance(off, GantryPeer) and off.environment == FAST_PATH_OFF


def test_another_checkout_runs_its_own_code(tmp_path: Path) -> None:
    (tmp_path / "old one").symlink_to(CHECKOUT)
    (label,) = chosen("--peer", f"checkout:{tmp_path / 'old one'}")
    assert label == CHECKOUT.name or label.replace("-", "") in CHECKOUT.name
    peer = chosen("--peer", f"checkout:{CHECKOUT}")[label](tmp_path, {}, False)
    assert peer.label == label and "GantryMQ" in peer.version


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--peer", "theirs"], "--peer theirs: use ours, off, apache"),
        (["--peer", "checkout:/"], "there is no checkout of GantryMQ"),
        (["--peer", "ours", "--python", "/nowhere/python"], "/nowhere/python does not run"),
    ],
)
def test_peers_that_cannot_run_are_refused_before_anything_starts(given: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        chosen(*given)


def test_an_interpreter_without_the_packages_is_refused_with_the_way_out(tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=False)
    with pytest.raises(ConfigError, match=r"cannot run the broker .*No module named.*make a virtual environment"):
        chosen("--peer", "ours", "--python", str(tmp_path / "empty" / "bin" / "python"))


@pytest.mark.parametrize(
    "given", [["--scenario", "send-2x2"], ["--rounds", "0"], ["--seconds", "0"], ["--work", "/nowhere"]]
)
def test_wrong_options_are_refused_in_a_sentence(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(ConfigError):
        bench.run(parser.parse_args(given))
