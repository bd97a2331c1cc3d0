"""Measure this broker and Apache RocketMQ: the same load and settings, alternating in one run.

Maven downloads Apache RocketMQ at the first run. The load is a C program, compiled at the first run. The
full run takes about twenty minutes; --quick five.

  gantry bench --quick --peer ours                      GantryMQ alone, a short round of each load
  gantry bench --scenario send-16x8 --scenario pull-8   two loads, all brokers
  gantry bench --peer off --peer checkout:../before     without the fast path, and another checkout, perhaps older
  gantry bench --brokers 4 --pin                        the rates of two and four brokers beside that of one
  gantry bench --touch-memory                           on a virtual machine that was started a short while ago

Exit codes: 0 done, 1 a run failed, lost messages or had errors (the table has the others, a warning names it), 2 wrong
usage.
"""

from __future__ import annotations

import argparse
import itertools
import re
import signal
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import orjson

from appliance.bench.apache_peer import ApachePeer
from appliance.bench.gantry_peer import CHECKOUT, FAST_PATH_OFF, GantryPeer, facts
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.load_spec import Load
from appliance.bench.peer import Peer
from appliance.bench.report import render
from appliance.bench.results import APACHE, GANTRY
from appliance.bench.run import Bench, MakePeer
from appliance.bench.scaling import SCALED, Scaling, pinned, render_scaling, shared
from appliance.bench.scenarios import BY_NAME, SCENARIOS, Scenario
from appliance.bench.warm_up import FULL, QUICK, RunSettings, touch_free_memory
from appliance.cli.parser import did_you_mean
from gantrymq.byte_size import readable
from gantrymq.errors import ConfigError

THIS = "ours"  # checkout, as the option says it
OFF = "gantry-off"
# Start-up and idle memory of Apache's broker are taken with a small heap: what it could do at best.
IDLE_HEAP = "256m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(BY_NAME)
    parser.add_argument("--quick", action="store_true", help="one short round of each load")
    parser.add_argument(
        "--peer",
        action="append",
        metavar="PEER",
        help="what to measure, repeatable: ours (GantryMQ), off (without its fast path), apache, both (the first and "
        "the third), checkout:FOLDER; default: the first three",
    )
    parser.add_argument(
        "--python",
        type=Path,
        metavar="FILE",
        help="interpreter for GantryMQ's processes (default: this one); it must have what the broker needs",
    )
    parser.add_argument(
        "--brokers",
        type=_from_two,
        metavar="N",
        help="don't compare: put each load on one broker of GantryMQ, on 2, 4 and so on up to N, and add up the rates",
    )
    parser.add_argument(
        "--pin", action="store_true", help="with --brokers: run brokers on one half of the cores, loads on the other"
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
    _add_places_and_memory(parser)


def _add_places_and_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE, with every single run")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for the stores, which are removed afterwards")
    parser.add_argument(
        "--touch-memory",
        action="store_true",
        help="use all free memory once before: a virtual machine's is slow at its first use, and the logs need much",
    )
    parser.add_argument(
        "--heap", default="2g", metavar="SIZE", help="heap of Apache's broker under load (default: %(default)s)"
    )


def _from_two(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 2, such as 2")
    return int(text)


def _not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0, such as 3")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 when results are wrong: a row that failed, responses with errors, or missing messages."""
    if arguments.work is not None and not arguments.work.is_dir():
        raise ConfigError(f"--work: there is no folder {arguments.work}")
    if arguments.touch_memory:
        touched = touch_free_memory()
        _say(f"touched {readable(touched.size_bytes)} of free memory: {touched.us_a_kb:.2f} us of CPU a KB")
    settings = _settings(arguments)
    scenarios = _scenarios(arguments.scenario or (SCALED if arguments.brokers else None))
    makers = makers_of(arguments)
    signal.signal(signal.SIGTERM, _leave)  # an exception, so that the large stores are removed in any case
    if arguments.pin and not arguments.brokers:
        raise ConfigError("--pin goes with --brokers N")
    if arguments.brokers:
        return _run_scaling(arguments, settings, scenarios, makers)
    with tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=arguments.work) as work:
        results = Bench(makers, Path(work), settings, _say, load_generator()).run(scenarios)
    print(render(results), flush=True)
    _write_json(arguments, results.as_json())
    return int(not results.are_right)


def _run_scaling(
    arguments: argparse.Namespace, settings: RunSettings, scenarios: list[Scenario], makers: Mapping[str, MakePeer]
) -> int:
    if len(makers) != 1 or APACHE in makers:
        raise ConfigError("--brokers measures GantryMQ alone: leave out --peer, or use --peer off")
    (make,) = makers.values()
    pinning = pinned() if arguments.pin else shared()
    with tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=arguments.work) as work:
        peers = [make(Path(work) / f"broker-{number}", {}, False) for number in range(1, arguments.brokers + 1)]
        rows = Scaling(peers, settings, _say, load_generator(), pinning).run(scenarios)
        print(f"{peers[0].version}\n\n{render_scaling(rows, pinning)}", flush=True)
    _write_json(arguments, [asdict(row) for row in rows])
    return int(any(run.errors for row in rows for runs in row.runs.values() for run in runs))


def _write_json(arguments: argparse.Namespace, results: object) -> None:
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS))


def load_generator() -> Load:
    """Raises ToolError when it cannot be compiled."""
    return LoadProgram(generator_program())


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


def _scenarios(names: Sequence[str] | None) -> list[Scenario]:
    if not names:
        return list(SCENARIOS)
    if unknown := [name for name in names if name not in BY_NAME]:
        guess = did_you_mean(unknown[0], list(BY_NAME))
        raise ConfigError(f"--scenario: there is no {unknown[0]!r}{guess}; there are: {', '.join(BY_NAME)}")
    return [BY_NAME[name] for name in names]


def makers_of(arguments: argparse.Namespace) -> dict[str, MakePeer]:
    """The peers to measure, by their labels. Raises ConfigError for one that there is not or that cannot run."""
    if arguments.brokers and not arguments.peer:
        return {GANTRY: _gantry(arguments, GANTRY)}
    wanted = arguments.peer or [THIS, *(["off"] if _has_fast_path(arguments.python) else []), "apache"]
    makers: dict[str, MakePeer] = {}
    if "both" in wanted:
        wanted = [each for name in wanted for each in ((THIS, APACHE) if name == "both" else (name,))]
    for name in wanted:
        if name == THIS:
            makers[GANTRY] = _gantry(arguments, GANTRY)
        elif name == "off":
            makers[OFF] = _gantry(arguments, OFF, environment=FAST_PATH_OFF)
        elif name == APACHE:
            makers[APACHE] = lambda home, properties, idle: ApachePeer(
                home, heap=IDLE_HEAP if idle else arguments.heap, broker_properties=properties
            )
        elif name.startswith("checkout:"):
            folder = Path(name.removeprefix("checkout:")).resolve()
            label = _label(folder.name, makers)
            makers[label] = _other_checkout(folder, label)
        else:
            raise ConfigError(f"--peer {name}: use {THIS}, off, {APACHE}, both or checkout:FOLDER")
    return makers


def _gantry(arguments: argparse.Namespace, label: str, environment: Mapping[str, str] | None = None) -> MakePeer:
    if arguments.python:
        facts(str(arguments.python), CHECKOUT)  # says now what is wrong with it

    def make(home: Path, properties: Mapping[str, str], idle: bool) -> Peer:
        return GantryPeer(
            home,
            label=label,
            broker_properties=properties,
            python=arguments.python,
            environment=environment,
        )

    return make


def _other_checkout(folder: Path, label: str) -> MakePeer:
    """GantryMQ as it is in another folder, run by the .venv there or else by this interpreter."""
    if not (folder / "appliance" / "__init__.py").is_file():
        raise ConfigError(f"--peer checkout:{folder}: there is no checkout of GantryMQ")
    own = folder / ".venv" / "bin" / "python"
    python = own if own.exists() else Path(sys.executable)
    facts(str(python), folder)
    return lambda home, properties, idle: GantryPeer(
        home, label=label, broker_properties=properties, python=python, checkout=folder
    )


def _label(name: str, taken: Collection[str]) -> str:
    """A name for tables, files and brokers, that no other peer has."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:20] or "checkout"
    numbers = itertools.chain([""], map("-{}".format, itertools.count(2)))
    return next(label for number in numbers if (label := plain + number) not in {*taken, GANTRY, OFF, APACHE})


def _has_fast_path(python: Path | None) -> bool:
    return facts(str(python or sys.executable), CHECKOUT).fast_path == "on"


def _leave(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    sys.exit(128 + number)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
