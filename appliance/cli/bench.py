"""Measure this broker and Apache RocketMQ: the same load and settings, alternating in one run.

`gantry bench store` measures the store without a broker: each stage of a message, stalls of the loop, the same load on
GantryMQ's and Apache's store, starts after kill -9. Without a JDK and Maven it measures GantryMQ only, and prints why.

Maven downloads Apache RocketMQ at the first run. The full run takes about six minutes; --quick one and a half.

  gantry bench --quick --peer ours                      GantryMQ alone, a short round of each load
  gantry bench --scenario send-16x8 --scenario pull-8   two loads, both brokers

Exit codes: 0 done, 1 a run lost messages or had errors (a warning names the wrong numbers), 2 the command was wrong.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson

from appliance.bench import maven
from appliance.bench.apache_peer import ApachePeer
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.peer import Peer
from appliance.bench.profile import render_profile
from appliance.bench.report import render
from appliance.bench.run import FULL, QUICK, Bench, MakePeer, RunSettings
from appliance.bench.scenarios import BY_NAME, SCENARIOS, Scenario
from appliance.bench.store.peer import MakeCommand, apache_command, gantry_command
from appliance.bench.store.report import StoreBench
from appliance.cli.parser import did_you_mean
from gantrymq.errors import ConfigError

PROFILED = ("send-16x8", "batch-4x2", "pull-8")
# Start-up and idle memory of Apache's broker are taken with a small heap: what it could do at best.
IDLE_HEAP = "256m"
STORE_FULL = {"count": 20_000, "total_bytes": 1 << 30, "stall_bytes": 3 << 30, "stall_rate": 60_000_000}
STORE_QUICK = {"count": 4_000, "total_bytes": 256 << 20, "stall_bytes": 256 << 20, "stall_rate": 60_000_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(BY_NAME)
    parser.add_argument(
        "what", nargs="?", choices=("broker", "store"), default="broker", help="what to measure (default: %(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one short round of each load")
    parser.add_argument(
        "--peer", choices=("ours", "apache", "both"), default="both", help="measure GantryMQ, Apache RocketMQ, or both"
    )
    parser.add_argument("--scenario", action="append", metavar="NAME", help=f"only this one; repeatable: {names}")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each load and peer; the median counts")
    parser.add_argument("--seconds", type=float, metavar="S", help="measured seconds of each run")
    parser.add_argument(
        "--patience",
        type=_not_negative,
        default=0,
        metavar="N",
        help="repeat runs that other work disturbed, up to N times each",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE, with every single run")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for the stores, which are removed afterwards")
    parser.add_argument(
        "--heap", default="2g", metavar="SIZE", help="heap of Apache's broker under load (default: %(default)s)"
    )
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="don't compare: run this broker under cProfile, write it to FILE"
    )


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on, such as 3")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 when results are wrong: responses with errors, or missing messages."""
    if arguments.what == "store":
        return _run_store(arguments)
    settings = _settings(arguments)
    scenarios = _scenarios(arguments.scenario or (PROFILED if arguments.profile else None))
    signal.signal(signal.SIGTERM, _leave)  # an exception, so that the large stores are removed in any case
    with tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=arguments.work) as work:
        results = Bench(_makers(arguments), Path(work), settings, _say).run(scenarios)
    print(render(results), flush=True)
    if arguments.profile:
        print(render_profile(arguments.profile))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_bytes(orjson.dumps(results.as_json(), option=orjson.OPT_INDENT_2))
    runs = [run for metrics in results.scenarios for load in metrics.loads.values() for run in load.runs]
    return int(any(run["errors"] or run["missing"] for run in runs))


def _run_store(arguments: argparse.Namespace) -> int:
    for name in ("scenario", "profile", "rounds", "seconds", "patience"):
        if getattr(arguments, name):
            raise ConfigError(f"bench store has no --{name}: use --quick, --peer, --json, --work and --heap")
    signal.signal(signal.SIGTERM, _leave)
    size = STORE_QUICK if arguments.quick else STORE_FULL
    peers, stores = _stores(arguments)
    with tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=arguments.work) as work:
        text, metrics = StoreBench(Path(work), _say, **size).run(peers, stores)
    print(text, end="", flush=True)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_bytes(orjson.dumps(metrics, option=orjson.OPT_INDENT_2))
    return 0


def _stores(arguments: argparse.Namespace) -> tuple[dict[str, Callable[[Path], Peer]], dict[str, MakeCommand]]:
    """Brokers and stores to measure. Raises ToolError when only Apache's is requested and its tools are missing."""
    peers: dict[str, Callable[[Path], Peer]] = {}
    stores: dict[str, MakeCommand] = {}
    if arguments.peer != "apache":
        peers["gantry"] = GantryPeer
        stores["gantry"] = gantry_command
    if arguments.peer != "ours":
        try:
            for name in ("java", "javac", "mvn"):
                maven.find_tool(name, "Apache's store needs a JDK and Maven")
        except maven.ToolError as exc:
            if arguments.peer == "apache":
                raise
            _say(f"GantryMQ only: {exc}")
        else:
            peers["apache"] = lambda home: ApachePeer(home, heap=arguments.heap)
            stores["apache"] = lambda work: apache_command(work, arguments.heap)
    return peers, stores


def _settings(arguments: argparse.Namespace) -> RunSettings:
    settings = QUICK if arguments.quick else FULL
    if arguments.rounds is not None:
        if arguments.rounds < 1:
            raise ConfigError(f"--rounds {arguments.rounds}: use 1 or more, such as 3")
        settings = replace(settings, rounds=arguments.rounds, start_rounds=arguments.rounds)
    if arguments.seconds is not None:
        if arguments.seconds <= 0:
            raise ConfigError(f"--seconds {arguments.seconds:g}: use more than 0, such as 2.5")
        settings = replace(settings, measure_s=arguments.seconds, latency_s=arguments.seconds)
    return replace(settings, patience=arguments.patience)


def _scenarios(names: list[str] | tuple[str, ...] | None) -> list[Scenario]:
    if not names:
        return list(SCENARIOS)
    if unknown := [name for name in names if name not in BY_NAME]:
        guess = did_you_mean(unknown[0], list(BY_NAME))
        raise ConfigError(f"--scenario: there is no {unknown[0]!r}{guess}; there are: {', '.join(BY_NAME)}")
    return [BY_NAME[name] for name in names]


def _makers(arguments: argparse.Namespace) -> dict[str, MakePeer]:
    def gantry(home: Path, idle: bool) -> Peer:
        return GantryPeer(home, profile=None if idle else arguments.profile)

    def apache(home: Path, idle: bool) -> Peer:
        return ApachePeer(home, heap=IDLE_HEAP if idle else arguments.heap)

    makers: dict[str, Callable[[Path, bool], Peer]] = {}
    if arguments.peer != "apache" or arguments.profile:
        makers["gantry"] = gantry
    if arguments.peer != "ours" and not arguments.profile:
        makers["apache"] = apache
    return makers


def _leave(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    sys.exit(128 + number)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
