"""One broker and several at once: rates are added up, and each broker keeps what it acknowledged."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.load_spec import LoadResult, LoadSpec
from appliance.bench.scaling import Scaling, ScalingRow, ScalingRun, counts_up_to, pinned, render_scaling, shared
from appliance.bench.scenarios import BY_NAME
from appliance.cli import bench
from gantrymq.errors import ConfigError
from tests.bench.tiny import TINY
from tests.conftest import require_tool


def test_two_brokers_take_a_load_each(tmp_path: Path) -> None:
    require_tool("cc", "the load generator is a C program")
    peers = [GantryPeer(tmp_path / name) for name in ("one", "two")]
    (row,) = Scaling(peers, TINY, lambda _: None, LoadProgram(generator_program()), shared()).run(
        [BY_NAME["send-16x8"]]
    )
    (one,), (both,) = row.runs[1], row.runs[2]
    assert len(one.each) == 1 and len(both.each) == 2 and both.rate == sum(both.each) > 0
    assert one.errors == both.errors == {}
    assert both.broker_cores > 0


def test_pinned_brokers_and_loads_have_cores_of_their_own(tmp_path: Path) -> None:
    require_tool("cc", "the load generator is a C program")
    before, pinning = os.sched_getaffinity(0), pinned()
    loads: list[set[int]] = []

    class Watched(LoadProgram):
        def run(self, spec: LoadSpec) -> LoadResult:
            loads.append(os.sched_getaffinity(0))
            threads = Path(f"/proc/{peer.broker.pid}/task").iterdir()
            assert all(os.sched_getaffinity(int(thread.name)) == pinning.brokers[0] for thread in threads)
            return super().run(spec)

    peer = GantryPeer(tmp_path)
    Scaling([peer], TINY, lambda _: None, Watched(generator_program()), pinning).run([BY_NAME["send-16x8"]])
    assert loads[-1] == pinning.loads[0]  # those before it warm the broker up
    assert pinning.loads[0].isdisjoint(pinning.brokers[0]) and os.sched_getaffinity(0) == before


def test_brokers_double_up_to_all() -> None:
    assert [counts_up_to(count) for count in (1, 2, 3, 4, 6)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4, 6]]


def test_the_gain_is_that_of_each_round() -> None:
    def run(rate: float) -> ScalingRun:
        return ScalingRun(rate, [rate], 10, 1.5, 0.25, 0.1, {})

    row = ScalingRow("a load", {1: [run(100), run(50), run(100)], 2: [run(150), run(100), run(190)]})
    assert row.gain(2) == 1.9
    text = render_scaling([row], shared())
    assert "a load" in text and "1.90" in text and "0.25" in text


@pytest.mark.parametrize("given", [["--peer", "apache"], ["--peer", "both"], ["--scenario", "signed-16x8"]])
def test_what_cannot_be_scaled_is_refused(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    with pytest.raises(ConfigError, match="--brokers"):
        bench.run(parser.parse_args(["--brokers", "2", *given]))
