"""The floor answers each kind of load, and is left out where it can't stand for a broker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from appliance.bench.floor.peer import FloorPeer
from appliance.bench.generator.build import FLAGS, compiled_program, generator_program
from appliance.bench.generator.drive import CompiledLoad
from appliance.bench.maven import ToolError
from appliance.bench.peer import PeerError
from appliance.bench.report import render
from appliance.bench.results import FLOOR
from appliance.bench.run import Bench
from appliance.bench.scenarios import BY_NAME
from appliance.bench.warm_up import TINY
from tests.conftest import require_tool

SETTINGS = replace(TINY, warm_s=0.02, measure_s=0.05)


def test_it_answers_sends_batches_and_pulls_and_stores_nothing(tmp_path: Path) -> None:
    require_tool("cc", "the floor is a C program")
    scenarios = [BY_NAME[name] for name in ("send-16x8", "batch-4x2", "pull-8")]
    makers = {FLOOR: lambda home, properties, _: FloorPeer(home, broker_properties=properties)}
    results = Bench(makers, tmp_path, SETTINGS, lambda _: None, CompiledLoad(generator_program())).run(scenarios)
    assert [row.failure for row in results.scenarios] == ["", "", ""]
    for row in results.scenarios:
        assert row.loads[FLOOR].rate > 0
        assert all(run["errors"] == {} and run["missing"] == 0 for run in row.loads[FLOOR].runs)
    assert "stores nothing" in render(results)
    assert not (tmp_path / f"{FLOOR}-plain" / "store").exists()


def test_it_says_why_it_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("cc", "the floor is a C program")
    peer = FloorPeer(tmp_path)
    monkeypatch.setattr(peer, "_broker_command", lambda _: ["/bin/sh", "-c", "echo no port is free >&2; exit 3"])
    with pytest.raises(PeerError, match="does not start: no port is free"):
        peer.start()
    peer.stop()


def test_its_source_has_no_warnings_and_without_a_compiler_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tool("cc", "the floor is a C program")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = Path(__file__).parents[3] / "appliance" / "bench" / "floor"
    assert compiled_program(folder, "floor", "it is a C program", (*FLAGS, "-Werror")).is_file()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ToolError, match="the floor is a C program"):
        FloorPeer(tmp_path)
