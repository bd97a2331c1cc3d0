"""The program of this package: see __init__."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from tests.bench.reports.beside import RATE, Beside, measure_beside
from tests.bench.reports.fill import BODY_BYTES
from tests.bench.reports.measure import Measured, measure
from tests.bench.reports.table import render

SIZES, SIZES_QUICK = (1_000_000, 10_000_000), (100_000,)
SLICES, SLICE_S, SLICE_QUICK_S = 9, 8.0, 4.0


def main(words: Sequence[str] | None = None) -> None:
    asked = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, _leave)  # an exception, so that the large stores are removed in any case
    sizes = asked.messages or (SIZES_QUICK if asked.quick else SIZES)
    bodies = (asked.body_bytes,) if asked.body_bytes else BODY_BYTES
    rounds = asked.rounds if asked.rounds is not None else 1 if asked.quick else SLICES
    seconds = asked.seconds or (SLICE_QUICK_S if asked.quick else SLICE_S)
    found: list[Measured] = []
    beside = None
    with tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=asked.work) as work:
        try:
            for count in sizes:
                found.append(measure(Path(work) / "sizes", count, bodies, _say))
                _write(asked.json, found, beside)
            shutil.rmtree(Path(work) / "sizes", ignore_errors=True)
            if rounds:
                load = LoadProgram(generator_program())
                beside = measure_beside(Path(work) / "beside", load, rounds, seconds, _say, asked.rate)
        finally:  # a size or slice that fails leaves the figures before it
            if found:
                print(render(found), flush=True)
            if beside is not None:
                print(f"\n{beside}", flush=True)
    _write(asked.json, found, beside)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reports", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small log, one short slice of each")
    parser.add_argument("--messages", action="append", type=int, metavar="N", help="in the log; repeatable")
    parser.add_argument("--body-bytes", type=int, metavar="N", help="default: of half 128, of half 1024")
    parser.add_argument("--rounds", type=int, metavar="N", help="slices beside runs; 0: none")
    parser.add_argument("--seconds", type=float, metavar="S", help="of a slice")
    parser.add_argument("--rate", type=int, default=RATE, metavar="N", help="messages a second beside runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for the stores, which are removed afterwards")
    return parser


def _write(file: Path | None, found: Sequence[Measured], beside: Beside | None) -> None:
    if file is None:
        return
    facts = {"sizes": [each.as_json() for each in found], "beside": beside.as_json() if beside is not None else None}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(facts, indent=2))


def _leave(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    sys.exit(128 + number)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
